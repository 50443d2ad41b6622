// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"
#include "reprise_testing/random.hpp"
#include "support/fails.hpp"

namespace reprise::memory_test {
namespace {

using testing::Random;
using Tokens = std::vector<Token>;
using Decoder = Session<NgramDrafter<>>;

constexpr MemoryOptions small = {.max_bytes = 1 << 16, .next_token_bytes = 1 << 12};

Memory make(const MemoryOptions& options = small) { return Memory::make(options).value(); }
Decoder decoder(Memory& memory, Memory::Salt salt = 0) { return Decoder(NgramDrafter<>(memory.options(salt))); }

/// Returns `size` tokens from `first` on, none of them twice.
Tokens text_from(Token first, std::size_t size) {
  Tokens text(size);
  for (std::size_t i = 0; i < size; ++i) text[i] = first + static_cast<Token>(i);
  return text;
}
Tokens part(const Tokens& text, std::size_t begin, std::size_t size) {
  return {text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(begin + size)};
}

/// Lets a target say `output`, and returns all tokens that were drafted.
template <class S>
Tokens say(S& session, const Tokens& output) {
  const Limits limits{.max_tokens = output.size()};
  Tokens drafted;
  while (!session.finished()) {
    const std::size_t said = session.output().size();
    session.propose(limits, DraftShape::chain);
    const auto pass = session.plan();
    if (!pass) break;
    const TokenSpan sent = pass->batch.last(pass->drafted);
    drafted.insert(drafted.end(), sent.begin(), sent.end());
    Tokens picks = part(output, said, std::min(output.size() - said, sent.size() + 1));
    picks.resize(sent.size() + 1, -1);
    EXPECT_TRUE(session.resolve(pass->ticket, picks));
    EXPECT_TRUE(session.commit(pass->ticket));
  }
  return drafted;
}
template <class S>
Tokens decode(S& session, const Tokens& prompt, const Tokens& output) {
  EXPECT_TRUE(session.begin(prompt));
  return say(session, output);
}
/// Returns the first draft after a prompt.
Tokens first_draft(const NgramOptions& options, const Tokens& prompt) {
  Decoder session{NgramDrafter<>(options)};
  EXPECT_TRUE(session.begin(prompt));
  const Limits limits;
  session.propose(limits, DraftShape::chain);
  const auto pass = session.plan();
  return pass ? Tokens(pass->batch.last(pass->drafted).begin(), pass->batch.last(pass->drafted).end()) : Tokens();
}
bool drafts_after(const NgramOptions& options, const Tokens& prompt, Token next) {
  const Tokens draft = first_draft(options, prompt);
  return !draft.empty() && draft.front() == next;
}

// --- What is kept ---

TEST(Memory, LetsLaterRequestsDraftFromPromptsAndOutputsOfEarlierOnes) {
  Memory memory = make();
  const Tokens text = text_from(100, 80);
  Decoder session = decoder(memory);
  decode(session, part(text, 0, 40), part(text, 40, 40));
  EXPECT_FALSE(drafts_after(memory.options(), part(text, 10, 8), text[18])) << "the request has not ended";
  session.keep();
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 10, 8), text[18])) << "the prompt";
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 50, 8), text[58])) << "the output";
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 34, 6), text[40])) << "from one into the other";
}

TEST(Memory, HasASequenceWhenItsSessionBeginsAnother) {
  Memory memory = make();
  Speculator session(memory.options());
  const Tokens text = text_from(100, 60);
  decode(session, part(text, 0, 30), part(text, 30, 30));
  const Tokens drafted = decode(session, part(text, 5, 10), part(text, 15, 40));
  EXPECT_GT(drafted.size(), 20U) << "its own earlier request";
}

/// Whatever is handed over when, the table counts each token once, and the store has the text.
TEST(Memory, HasEachTokenOnceHoweverOftenASequenceIsHandedOver) {
  Random random(1);
  for (int run = 0; run < 200; ++run) {
    Memory memory = make();
    NextTokens once =
        NextTokens::make({.max_bytes = 1 << 12, .key = memory.options().next_tokens->options().key}).value();
    Decoder session = decoder(memory);
    Tokens text = text_from(1, 1 + random.below(50));
    ASSERT_TRUE(session.begin(text));
    const std::size_t turns = 1 + random.below(6);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      Tokens more;
      for (std::size_t i = 1 + random.below(40); i-- > 0;) more.push_back(static_cast<Token>(1 + random.below(60)));
      if (random.chance(50)) {
        ASSERT_TRUE(session.append(more));
      } else {
        ASSERT_TRUE(session.append(more, Origin::output));
      }
      text.insert(text.end(), more.begin(), more.end());
      for (std::size_t i = random.below(3); i-- > 0;) random.chance(50) ? session.keep_running() : session.keep();
    }
    ASSERT_TRUE(session.begin(Tokens{1}));
    once.add(text);
    const NextTokens& kept = *memory.options().next_tokens;
    for (std::size_t i = 0; i < kept.lines(); ++i)
      EXPECT_EQ(kept.words(NextTokens::Part::counts, i), once.words(NextTokens::Part::counts, i));
  }
}

TEST(Memory, HasTheTextOfARunningSequenceButWhatItLearnedOnlyAtItsEnd) {
  Memory memory = make();
  const Tokens text = text_from(100, 80);
  Decoder session = decoder(memory);
  decode(session, part(text, 0, 40), part(text, 40, 40));
  const CalibrationState before = memory.options().memory->calibration();
  session.keep_running();
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 50, 8), text[58]));
  EXPECT_EQ(memory.options().memory->calibration(), before);
  session.keep();
  EXPECT_NE(memory.options().memory->calibration(), before) << "no new text, but an end";
}

TEST(Memory, DoesNotStoreARepeatedPromptAgain) {
  Memory memory = make();
  const Tokens prompt = text_from(100, 500);
  for (int i = 0; i < 20; ++i) {
    Decoder session = decoder(memory);
    decode(session, prompt, text_from(10'000 + 100 * i, 50));
    session.keep();
  }
  const auto options = memory.options();
  EXPECT_TRUE(drafts_after(options, part(prompt, 300, 8), prompt[308]));
  // The store has room for about 3,600 tokens, which is less than 20 x 550.
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(drafts_after(options, text_from(10'010 + 100 * i, 8), 10'018 + 100 * i))
        << "nothing was evicted: " << i;
}

TEST(Memory, LeavesOutPromptsOrOutputsOnRequest) {
  for (const auto& [prompts, outputs] : {std::pair{true, false}, {false, true}, {false, false}}) {
    MemoryOptions options = small;
    options.prompts = prompts;
    options.outputs = outputs;
    Memory memory = make(options);
    Decoder session = decoder(memory);
    const Tokens text = text_from(100, 120);
    decode(session, part(text, 0, 40), part(text, 40, 40));
    ASSERT_TRUE(session.append(part(text, 80, 40)));
    session.keep();
    EXPECT_EQ(drafts_after(memory.options(), part(text, 10, 8), text[18]), prompts);
    EXPECT_EQ(drafts_after(memory.options(), part(text, 50, 8), text[58]), outputs);
    EXPECT_EQ(drafts_after(memory.options(), part(text, 90, 8), text[98]), prompts);
    const NextTokens& counts = *memory.options().next_tokens;
    EXPECT_EQ(counts.after(text[20]).counts().total() == 1, prompts);
    EXPECT_EQ(counts.after(text[60]).counts().total() == 1, outputs);
    EXPECT_EQ(counts.after(text[100]).counts().total() == 1, prompts);
    EXPECT_TRUE(counts.after(text[39]).counts().empty()) << "no count leads from one kind to the other";
    EXPECT_TRUE(counts.after(text[39], text[40]).counts().empty());
  }
}

TEST(Memory, WithoutBytesKeepsNoText) {
  Memory memory = make({.max_bytes = 0});
  const NgramOptions options = memory.options();
  EXPECT_TRUE(options.stores[0].empty());
  EXPECT_EQ(options.next_tokens, nullptr);
  EXPECT_FALSE(options.memory.empty()) << "but what was learned";
  EXPECT_LT(memory.memory_bytes(), 40'000U);
}

TEST(Memory, KeepsWhatIsRemovedOnlyIfItWasHandedOverBefore) {
  Memory memory = make();
  Decoder session = decoder(memory);
  const Tokens text = text_from(100, 60);
  decode(session, part(text, 0, 20), part(text, 20, 40));
  ASSERT_TRUE(session.truncate(30));
  ASSERT_TRUE(session.append(text_from(500, 30), Origin::output));
  session.keep();
  EXPECT_FALSE(drafts_after(memory.options(), part(text, 40, 8), text[48]));
  EXPECT_TRUE(drafts_after(memory.options(), text_from(505, 8), 513));
  ASSERT_TRUE(session.rebase(text_from(900, 30)));
  ASSERT_TRUE(session.append(text_from(930, 30), Origin::output));
  session.keep();
  EXPECT_TRUE(drafts_after(memory.options(), text_from(935, 8), 943));
}

TEST(Memory, HasAllTextThatCameByRebase) {
  Memory memory = make();
  Decoder session = decoder(memory);
  Tokens text = text_from(100, 60);
  decode(session, part(text, 0, 20), part(text, 20, 40));
  text.erase(text.begin() + 20, text.begin() + 50);  // what a template drops, and the next turn
  const Tokens turn = text_from(500, 60);
  text.insert(text.end(), turn.begin(), turn.end());
  ASSERT_TRUE(session.rebase(text));
  session.keep();
  for (const Tokens& said : {part(text, 5, 8), text_from(130, 8), text_from(150, 8), text_from(510, 8)})
    EXPECT_TRUE(drafts_after(memory.options(), said, said.back() + 1)) << said.front();
  const std::uint64_t counted = memory.options().next_tokens->after(505).counts().total();
  EXPECT_EQ(counted, 1U);
  text.erase(text.begin() + 5, text.begin() + 15);
  ASSERT_TRUE(session.rebase(text));
  session.keep();
  EXPECT_EQ(memory.options().next_tokens->after(505).counts().total(), counted) << "a text that lost a part";
}
TEST(Memory, HasTheTextBeforeAForkOnce) {
  Memory memory = make();
  Decoder session = decoder(memory);
  const Tokens text = text_from(100, 50);
  ASSERT_TRUE(session.begin(text));
  for (Token first = 1000; first < 1400; first += 100) {
    auto fork = session.fork();
    ASSERT_TRUE(fork);
    ASSERT_TRUE(fork->append(text_from(first, 20), Origin::output));
    fork->keep();
    EXPECT_TRUE(drafts_after(memory.options(), text_from(first + 5, 8), first + 13));
  }
  session.keep();
  EXPECT_EQ(memory.options().next_tokens->after(text[20]).counts().total(), 1U);
}
TEST(Memory, LeavesOutTheRankingsOfWhatItLeavesOut) {
  for (const bool prompts : {true, false}) {
    MemoryOptions options = small;
    options.rankings = true;
    options.prompts = prompts;
    Memory memory = make(options);
    NgramDrafter<> drafter(memory.options());
    const Tokens text = text_from(100, 8);
    drafter.begin(text);
    for (std::size_t i = 1; i < text.size(); ++i) drafter.learn_row(TokenSpan(text).first(i), Tokens{text[i], 7});
    drafter.keep();
    EXPECT_EQ(memory.options().next_tokens->after(102, 103).ranking().empty(), !prompts);
  }
}

TEST(Memory, StoresATextWithoutADrafter) {
  Memory memory = make();
  const Tokens text = text_from(100, 60);
  memory.add(text, 20);
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 10, 8), text[18]));
  EXPECT_TRUE(drafts_after(memory.options(), part(text, 30, 8), text[38]));
  EXPECT_FALSE(drafts_after(memory.options(1), part(text, 30, 8), text[38]));
  memory.add({}, 5);
  memory.add(text, 5000);
}

// --- What was learned ---

/// From any state, equal ends win: the carried state comes as near to them as whole numbers allow.
TEST(CarriedCalibration, ReachesWhatSequencesTeachFromAnyState) {
  Random random(2);
  const auto random_state = [&] {
    CalibrationState state;
    detail::for_each_bias(
        [&](auto& bias) { bias = static_cast<std::remove_reference_t<decltype(bias)>>(random.below(60'000)) - 30'000; },
        state);
    state.lessons = 1 + random.below(1000);
    return state;
  };
  for (int run = 0; run < 20; ++run) {
    detail::CarriedCalibration carried;
    for (std::size_t i = random.below(20); i-- > 0;) carried.learn(random_state());
    const CalibrationState wanted = random_state();
    for (int i = 0; i < 120; ++i) carried.learn(wanted);
    detail::for_each_bias([](auto now, auto end) { EXPECT_LT(std::abs(now - end), 8); }, carried.state(), wanted);
    EXPECT_EQ(carried.state().lessons, 0U) << "they belong to a sequence";
    EXPECT_EQ(carried.state().recent, CalibrationState().recent);
    const CalibrationState before = carried.state();
    carried.learn(CalibrationState());
    EXPECT_EQ(carried.state(), before) << "a sequence without a lesson";
  }
}

TEST(Memory, HandsOnWhatWasLearnedAlsoToDraftersThatExist) {
  Memory memory = make({.max_bytes = 0});
  Decoder existing = decoder(memory);
  Decoder session = decoder(memory);
  for (int i = 0; i < 5; ++i) {
    Tokens text = text_from(100, 30);
    text.insert(text.end(), text.begin(), text.end());
    decode(session, text, part(text, 0, 30));
  }
  session.keep();
  ASSERT_TRUE(existing.begin(Tokens{1}));
  EXPECT_GT(existing.strategy().calibration().all, 0);
}

TEST(Memory, SharesOnlyStructureAmongSalts) {
  for (const bool shared : {true, false}) {
    MemoryOptions options = small;
    options.shared_calibration = shared;
    Memory memory = make(options);
    Decoder session = decoder(memory, 1);
    Tokens text = text_from(100, 30);
    text.insert(text.end(), text.begin(), text.end());
    decode(session, text, part(text, 0, 30));
    session.keep();
    const CalibrationState own = memory.options(1).memory->calibration();
    CalibrationState other = memory.options(2).memory->calibration();
    EXPECT_NE(own.by_token, CalibrationState().by_token);
    EXPECT_EQ(other.all, shared ? own.all : 0);
    EXPECT_EQ(other.by_length, shared ? own.by_length : CalibrationState().by_length);
    other.all = 0;
    other.by_length = {};
    other.by_depth = {};
    other.by_next = {};
    EXPECT_EQ(other, CalibrationState()) << "no token of another salt";
  }
}

TEST(Memory, KeepsCostsForDraftersThatAreMadeLater) {
  Memory memory = make();
  EXPECT_EQ(memory.costs().size(), 0U);
  CostPrior costs;
  costs.assume(4, CostPrior::least_cost);
  memory.keep_costs(costs);
  EXPECT_EQ(memory.costs().cost(4), CostPrior::least_cost);
}

// --- Salts ---

/// Requests of several salts in any order. Each salt has tokens of its own, so a token of another one shows.
TEST(Memory, NeverDraftsTextOfAnotherSalt) {
  constexpr Token range = 1000;
  Random random(3);
  Memory memory = make({.max_bytes = 1 << 14, .next_token_bytes = 1 << 10, .salts = 3});
  std::optional<Decoder> open[4];
  std::size_t drafted = 0;
  for (int request = 0; request < 4000; ++request) {
    const auto salt = static_cast<Memory::Salt>(random.below(5));
    std::optional<Decoder>& slot = open[random.below(4)];
    slot.reset();
    slot.emplace(decoder(memory, salt));
    const Token first = range * static_cast<Token>(salt) + static_cast<Token>(random.below(range - 60));
    for (const Token token : decode(*slot, text_from(first, 10), text_from(first + 10, 20))) {
      ASSERT_EQ(token / range, static_cast<Token>(salt)) << request;
      ++drafted;
    }
    if (random.chance(70)) slot->keep();
    if (random.chance(2)) memory.forget(salt);
  }
  EXPECT_GT(drafted, 1000U);
}

TEST(Memory, ReplacesTheSaltThatWasUsedLeastRecentlyAndIsNotInUse) {
  MemoryOptions options = small;
  options.salts = 2;
  Memory memory = make(options);  // has salt 0
  const Tokens text = text_from(100, 40);
  const auto knows = [&](Memory::Salt salt) { return drafts_after(memory.options(salt), part(text, 10, 8), text[18]); };
  memory.add(text, 0, 0);
  memory.add(text, 0, 1);
  EXPECT_TRUE(knows(0));
  memory.add(text, 0, 2);  // in place of 1
  EXPECT_TRUE(knows(0));
  EXPECT_TRUE(knows(2));
  const Decoder uses_0 = decoder(memory, 0);
  const Decoder uses_2 = decoder(memory, 2);
  memory.add(text, 0, 3);
  EXPECT_FALSE(knows(3)) << "both places are in use";
  EXPECT_TRUE(knows(0));
  EXPECT_TRUE(knows(2));
}

TEST(Memory, ForgetsASaltAlsoInUse) {
  Memory memory = make();
  const Tokens text = text_from(100, 40);
  for (const bool used : {false, true}) {
    memory.add(text);
    memory.add(text, 0, 7);
    std::optional<Decoder> session = decoder(memory);
    decode(*session, text_from(1000, 30), text_from(1030, 30));
    const NgramOptions options = memory.options();
    if (!used) session.reset();
    memory.forget(0);
    memory.forget(8);
    EXPECT_FALSE(drafts_after(options, part(text, 10, 8), text[18]));
    EXPECT_TRUE(options.next_tokens->after(text[10]).counts().empty());
    EXPECT_TRUE(drafts_after(memory.options(7), part(text, 10, 8), text[18])) << "another salt";
    if (!used) continue;
    session->keep();
    EXPECT_TRUE(drafts_after(memory.options(), text_from(1010, 8), 1018)) << "what ends later";
    std::vector<std::byte> room(memory.snapshot_bytes());
    EXPECT_GT(memory.save(room, 1)->size(), Memory(make()).snapshot_bytes());
  }
}

TEST(Memory, SavesAndRefusesWithoutAChangeOfItsSalts) {
  MemoryOptions options = small;
  options.salts = 2;
  Memory memory = make(options);
  const Tokens text = text_from(100, 40);
  const auto knows = [&](Memory::Salt salt) { return drafts_after(memory.options(salt), part(text, 10, 8), text[18]); };
  memory.add(text, 0, 0);
  memory.add(text, 0, 1);
  std::vector<std::byte> room(1 << 16);
  EXPECT_EQ(memory.snapshot_bytes(2), 0U);
  EXPECT_THAT(memory.save(room, 7, 2), testing::fails(ErrorCode::invalid_argument, 2));
  EXPECT_THAT(memory.load(std::span(room).first(100), 7, 3), testing::fails(ErrorCode::not_a_snapshot));
  const auto saved = memory.save(room, 7, 1);
  ASSERT_TRUE(saved);
  EXPECT_THAT(memory.load(*saved, 8, 3), testing::fails(ErrorCode::other_tokenizer));
  EXPECT_TRUE(knows(0));
  EXPECT_TRUE(knows(1));
  {
    const Decoder uses_0 = decoder(memory, 0);
    const Decoder uses_1 = decoder(memory, 1);
    EXPECT_THAT(memory.load(*saved, 7, 3), testing::fails(ErrorCode::out_of_memory, 2)) << "both salts are in use";
  }
  ASSERT_TRUE(memory.load(*saved, 7, 3));
  EXPECT_TRUE(knows(3));
}

TEST(Memory, IsOutlivedByItsDrafters) {
  std::optional<Memory> memory = make();
  Decoder session = decoder(*memory);
  memory.reset();
  const Tokens text = text_from(100, 60);
  decode(session, part(text, 0, 30), part(text, 30, 30));
  decode(session, part(text, 0, 30), part(text, 30, 30));
}

TEST(Memory, PutsItsStoreIntoTheFirstEmptyPlace) {
  Memory memory = make();
  const HistoryStore other = HistoryStore::make({.max_bytes = 1 << 14}).value();
  NgramOptions base;
  base.stores[0] = other;
  base.top_k = 3;
  const NgramOptions options = memory.options(0, base);
  EXPECT_EQ(options.top_k, 3U);
  EXPECT_FALSE(options.stores[1].empty());
  base.stores.fill(other);
  EXPECT_FALSE(memory.options(0, base).memory.empty()) << "it is written, and not read";
}

TEST(Memory, RefusesOptionsThatAreTooSmall) {
  EXPECT_THAT(Memory::make({.max_bytes = 10}), testing::fails(ErrorCode::size_out_of_range));
  EXPECT_THAT(Memory::make({.max_bytes = 1 << 14, .next_token_bytes = 10}),
              testing::fails(ErrorCode::size_out_of_range));
}

// --- Snapshots ---

TEST(Memory, GoesOnFromASnapshot) {
  Memory memory = make();
  Decoder session = decoder(memory, 5);
  const Tokens text = text_from(100, 80);
  decode(session, part(text, 0, 40), part(text, 40, 40));
  decode(session, part(text, 0, 40), part(text, 40, 40));
  session.keep();
  std::vector<std::byte> room(memory.snapshot_bytes(5));
  const auto saved = memory.save(room, 7, 5);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->size(), room.size());
  EXPECT_THAT(memory.save(std::span(room).first(9), 7, 5), testing::fails(ErrorCode::out_of_room, room.size()));

  Memory later = make();
  EXPECT_THAT(later.load(*saved, 8, 5), testing::fails(ErrorCode::other_tokenizer));
  EXPECT_FALSE(drafts_after(later.options(5), part(text, 10, 8), text[18]));
  ASSERT_TRUE(later.load(*saved, 7, 5));
  EXPECT_TRUE(drafts_after(later.options(5), part(text, 10, 8), text[18]));
  EXPECT_FALSE(drafts_after(later.options(0), part(text, 10, 8), text[18]));
  EXPECT_EQ(later.options(5).memory->calibration(), memory.options(5).memory->calibration());
  EXPECT_EQ(later.options(5).next_tokens->after(text[20]).counts().total(), 2U);
}

// --- Followers ---

TEST(MemoryOfFollowers, HasARequestWhenItIsForgottenOrReplaced) {
  for (const bool forgotten : {true, false}) {
    Memory memory = make();
    Follower<Speculator> follower{Speculator(memory.options())};
    const Tokens text = text_from(100, 60);
    ASSERT_TRUE(follower.draft(text, 0));
    if (forgotten)
      follower.forget();
    else
      ASSERT_TRUE(follower.draft(Tokens{1, 2}, 0));
    EXPECT_TRUE(drafts_after(memory.options(), part(text, 10, 8), text[18]));
  }
}

TEST(MemoryOfFollowers, HasTheRequestsOfABatchWhoseSlotsAreReusedEmptyOrAssigned) {
  Memory memory = make();
  auto batch = BatchFollower<NgramDrafter<>>::make(3, NgramDrafter<>(memory.options())).value();
  const std::vector<Tokens> texts = {text_from(100, 40), text_from(1000, 40), text_from(2000, 40)};
  std::vector<FollowedSlot> slots;
  for (std::size_t i = 0; i < 3; ++i) slots.push_back({.slot = i, .ids = texts[i]});
  ASSERT_TRUE(batch.draft(slots));
  const auto knows = [&](std::size_t i) { return drafts_after(memory.options(), part(texts[i], 10, 8), texts[i][18]); };
  Tokens other = text_from(5000, 9);
  slots = {{.slot = 0, .ids = other}, {.slot = 1, .ids = texts[1]}};
  ASSERT_TRUE(batch.draft(slots));
  EXPECT_TRUE(knows(0)) << "replaced";
  EXPECT_FALSE(knows(1)) << "goes on";
  EXPECT_FALSE(knows(2)) << "may pause";
  for (int call = 0; call < 62; ++call) ASSERT_TRUE(batch.draft(slots));
  EXPECT_FALSE(knows(2));
  ASSERT_TRUE(batch.draft(slots));
  EXPECT_TRUE(knows(2)) << "absent for 64 calls";
  ASSERT_TRUE(batch.assign(1, NgramDrafter<>()));
  EXPECT_TRUE(knows(1)) << "assigned";
}

/// The drafts of a batch do not depend on the threads that read and draft, since ended requests are kept before.
TEST(MemoryOfFollowers, KeepsRequestsOfABatchInTheOrderOfTheCall) {
  const auto run = [](bool backwards) {
    Memory memory = make({.max_bytes = 1 << 13, .next_token_bytes = 1 << 9});
    auto batch = BatchFollower<NgramDrafter<>>::make(4, NgramDrafter<>(memory.options())).value();
    Random random(4);
    std::vector<Tokens> texts(4);
    std::vector<Tokens> all;
    for (int call = 0; call < 300; ++call) {
      std::vector<FollowedSlot> slots;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty() || random.chance(10)) texts[i] = text_from(static_cast<Token>(random.below(300)), 12);
        if (random.chance(10)) texts[i].front() += 1000;  // a turn of a conversation that was changed
        if (random.chance(5)) texts[i].resize(6);
        for (std::size_t more = 1 + random.below(3); more-- > 0;) texts[i].push_back(texts[i].back() + 1);
        slots.push_back({.slot = i, .ids = texts[i]});
        if (i % 2 == 0) slots.back().conversation = 1;
      }
      const auto drafts = batch.draft(slots, {}, [backwards](std::size_t count, const auto& body) {
        for (std::size_t i = 0; i < count; ++i) body(backwards ? count - 1 - i : i);
      });
      for (const TokenSpan draft : *drafts) all.emplace_back(draft.begin(), draft.end());
    }
    return all;
  };
  EXPECT_EQ(run(false), run(true));
}

// --- Threads ---

TEST(Memory, ServesManyThreads) {
  Memory memory = make({.max_bytes = 1 << 14, .next_token_bytes = 1 << 10, .salts = 2});
  std::atomic<std::size_t> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread)
    threads.emplace_back([&memory, &wrong, thread] {
      Random random(thread);
      for (int request = 0; request < 60; ++request) {
        const auto salt = static_cast<Memory::Salt>(random.below(3));
        Decoder session = decoder(memory, salt);
        const Token first = 1000 * static_cast<Token>(salt) + static_cast<Token>(random.below(100));
        for (const Token token : decode(session, text_from(first, 10), text_from(first + 10, 20)))
          if (token / 1000 != static_cast<Token>(salt)) ++wrong;
        session.keep();
        if (random.chance(5)) memory.forget(salt);
        if (random.chance(5)) static_cast<void>(memory.memory_bytes());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
}

// Not beside the other tests of NgramOptions::Prior, because ThreadSanitizer runs this program.
TEST(NgramOptionsPrior, HasCopiesOnSeveralThreads) {
  CalibrationState learned;
  learned.lessons = 9;
  std::vector<std::thread> threads;
  {
    const NgramOptions::Prior first = learned;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([copy = first] {
        for (int round = 0; round < 1000; ++round) {
          const NgramOptions::Prior again = copy;
          EXPECT_EQ(again.state().lessons, 9U);
        }
      });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace reprise::memory_test
