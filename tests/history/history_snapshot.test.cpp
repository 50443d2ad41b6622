// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/history_snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "support/committed_inputs.hpp"
#include "support/fails.hpp"
#include "support/histories.hpp"
#include "support/history_snapshots.hpp"

namespace reprise::history_snapshot_test {
namespace {

using testing::Bytes;
using testing::followed;
using testing::make_memory;
using testing::Random;
using testing::random_tokens;
using testing::saved;
using testing::some_tokenizer;
using testing::texts_in;
using Tokens = std::vector<Token>;

/// Stores sequences of prompts and outputs, some of which repeat a common text. Adds them to `texts`.
template <class Memory>
void live(Memory& memory, Random& random, int sequences, std::vector<Tokens>* texts = nullptr,
          std::uint64_t vocabulary = 500, unsigned repeated = 30) {
  const Tokens common = random_tokens(random, 150, vocabulary);
  for (int i = 0; i < sequences; ++i) {
    memory.begin_sequence(random.below(50));
    Tokens all;
    for (std::size_t turns = 1 + random.below(3); turns > 0; --turns)
      for (const Origin origin : {Origin::prompt, Origin::output}) {
        Tokens part = random_tokens(random, random.below(80), vocabulary);
        if (random.chance(repeated)) part.insert(part.end(), common.begin(), common.end());
        memory.append(part, origin);
        all.insert(all.end(), part.begin(), part.end());
      }
    memory.end_sequence();
    if (texts != nullptr) texts->push_back(std::move(all));
  }
}

template <class Memory>
void load_whole(const Bytes& bytes, Memory& memory) {
  CalibrationState calibration;
  const auto loaded = load_history(bytes, some_tokenizer, memory, calibration);
  ASSERT_TRUE(loaded) << loaded.error().message;
}

/// Expects equal continuations from both, at every third position of the texts.
template <class A, class B>
void expect_same_answers(const A& a, const B& b, const std::vector<Tokens>& texts) {
  std::size_t found = 0;
  for (const Tokens& text : texts)
    for (std::size_t end = 2; end <= text.size(); end += 3) {
      const auto answers = followed(a, TokenSpan(text).first(end), 40);
      ASSERT_TRUE(answers == followed(b, TokenSpan(text).first(end), 40)) << end;
      found += answers.size();
    }
  EXPECT_GT(found, texts.size());
}

TEST(MemorySnapshot, BringsBackAMemoryThatAnswersTheSameAlsoIfItIsLargerAndHasAnotherKey) {
  // N-grams are so rare that no set of an index overflows. A snapshot does not save which of equal places is the
  // latest.
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    HistoryStore memory = make_memory(std::size_t{8} << 20);
    std::vector<Tokens> texts;
    live(memory, random, 60, &texts, 1'000'000, 0);
    ASSERT_EQ(memory.counts().evicted, 0U);
    const Bytes bytes = saved(memory);
    HistoryOptions options;
    options.key = seed % 2 == 0 ? memory.options().key : 77;
    HistoryStore again = make_memory(std::size_t{seed % 2 == 0 ? 8U : 32U} << 20, options);
    load_whole(bytes, again);
    expect_same_answers(memory, again, texts);
    EXPECT_EQ(texts_in(saved(again)), texts_in(bytes));
    EXPECT_EQ(again.counts().stored, memory.counts().stored);
  }
}

TEST(MemorySnapshot, IsLoadedIntoASmallerMemoryWhichKeepsTheYoungest) {
  Random random(3);
  HistoryStore memory = make_memory();
  std::vector<Tokens> texts;
  for (int i = 0; i < 40; ++i) {
    texts.push_back(random_tokens(random, 320, 1'000'000));
    memory.begin_sequence(static_cast<SequenceTag>(i));
    memory.append(texts.back(), Origin::output);
  }
  memory.end_sequence();
  HistoryStore smaller = make_memory(HistoryStore::bytes_for(20 * 320));
  load_whole(saved(memory), smaller);
  EXPECT_EQ(testing::check_memory(smaller), "");
  EXPECT_GT(smaller.counts().evicted, 0U);
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (i != 20) {  // a part of it was evicted
      EXPECT_EQ(followed(smaller, TokenSpan(texts[i]).first(100), 1).size(), i < 20 ? 0U : 1U) << i;
    }
}

template <class Memory>
class MemorySnapshotOf : public ::testing::Test {};
using Memories =
    ::testing::Types<HistoryStore, detail::BasicHistoryStore<std::uint8_t, 8>,
                     detail::BasicHistoryStore<std::uint16_t, 8>, detail::BasicHistoryStore<std::uint16_t, 32>>;
TYPED_TEST_SUITE(MemorySnapshotOf, Memories);

TYPED_TEST(MemorySnapshotOf, WhatRanFullAndWasRemovedFromIsSavedLoadedAndSavedTheSame) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::uint64_t bytes = TypeParam::bytes_for((1 + seed % 30) * TypeParam::segment_tokens);
    auto memory = make_memory<TypeParam>(std::min(bytes, TypeParam::most_bytes));
    for (int round = 0; round < 5; ++round) {
      live(memory, random, 8);
      memory.remove(random.below(50));
      ASSERT_EQ(testing::check_memory(memory), "") << seed;
      std::size_t tokens = 0;
      memory.for_each_run([&](const auto& run) { tokens += run.size; });
      ASSERT_EQ(tokens, memory.counts().stored - memory.counts().evicted - memory.counts().removed);
      auto again = make_memory<TypeParam>(std::min(bytes, TypeParam::most_bytes));
      load_whole(saved(memory), again);
      ASSERT_EQ(testing::check_memory(again), "") << seed;
      ASSERT_EQ(texts_in(saved(again)), texts_in(saved(memory))) << seed;
    }
  }
}

TEST(MemorySnapshot, EndsTheSequenceThatWasOpen) {
  Random random(12);
  HistoryStore memory = make_memory();
  const Tokens theirs = random_tokens(random, 40, 1'000'000);
  memory.begin_sequence(99);
  memory.append(theirs, Origin::output);
  memory.end_sequence();
  HistoryStore other = make_memory();
  const Tokens before = random_tokens(random, 40, 1'000'000);
  const Tokens after = random_tokens(random, 40, 1'000'000);
  other.begin_sequence(5);
  other.append(before, Origin::prompt);
  load_whole(saved(memory), other);
  other.append(after, Origin::prompt);
  const auto holds = [&](const Tokens& text) { return !followed(other, TokenSpan(text).first(20), 1).empty(); };
  other.remove(5);
  EXPECT_FALSE(holds(before));
  other.remove(99);
  EXPECT_FALSE(holds(theirs));
  EXPECT_TRUE(holds(after)) << "stored under neither name";
  other.remove(0);
  EXPECT_FALSE(holds(after)) << "but under none";
}

TEST(MemorySnapshot, ThatIsRefusedLeavesTheOpenSequenceOpen) {
  HistoryStore memory = make_memory();
  CalibrationState calibration;
  memory.begin_sequence(5);
  memory.append(Tokens{1, 2, 3}, Origin::prompt);
  ASSERT_FALSE(load_history(Bytes(10), some_tokenizer, memory, calibration));
  memory.append(Tokens{4, 5, 6}, Origin::prompt);
  memory.end_sequence();
  ASSERT_EQ(followed(memory, Tokens{1, 2}, 8).size(), 1U);
  EXPECT_EQ(followed(memory, Tokens{1, 2}, 8)[0].words.size(), 4U);
  memory.remove(5);
  EXPECT_TRUE(followed(memory, Tokens{4, 5}, 8).empty());
}

TEST(MemorySnapshot, BringsBackWhatDraftsHadUseOf) {
  Random random(13);
  HistoryStore memory = make_memory();
  const Tokens useful = random_tokens(random, 64, 1'000'000);
  for (int i = 0; i < 20; ++i) {
    memory.begin_sequence(static_cast<SequenceTag>(i));
    memory.append(i == 0 ? useful : random_tokens(random, 64, 1'000'000), Origin::output);
  }
  memory.end_sequence();
  std::array<HistoryStore::HistoryMatch, 4> found;
  for (const std::size_t end : {10U, 40U}) {
    ASSERT_EQ(memory.find(TokenSpan(useful).first(end), found), 1U);
    for (int i = 0; i < 5; ++i) memory.touch(found[0].next);
  }
  HistoryStore again = make_memory();
  load_whole(saved(memory), again);
  ASSERT_EQ(again.find(TokenSpan(useful).first(40), found), 1U);
  EXPECT_EQ(again.use_count(found[0].next), 5);
  HistoryStore smaller = make_memory(HistoryStore::bytes_for(10 * 64));
  load_whole(saved(memory), smaller);
  EXPECT_FALSE(followed(smaller, TokenSpan(useful).first(40), 1).empty()) << "it was used, so it gets a second chance";
}

TEST(MemorySnapshot, WithoutASectionLeavesItsPartAlone) {
  HistoryStore memory = make_memory();
  CalibrationState calibration = testing::taught_state(1);
  Bytes bytes(snapshot_bytes({}));
  ASSERT_TRUE(SnapshotWriter(bytes, some_tokenizer).finish());
  ASSERT_TRUE(load_history(bytes, some_tokenizer, memory, calibration));
  EXPECT_EQ(calibration, testing::taught_state(1));
  EXPECT_EQ(memory.counts(), HistoryStore::Counts());
}

TEST(MemorySnapshot, IsTakenAsFarAsTheOptionsOfTheMemorySay) {
  HistoryStore memory = make_memory();
  memory.begin_sequence(1);
  memory.append(Tokens{1, 2, 3, 4}, Origin::prompt);
  memory.append(Tokens{5, 6, 7}, Origin::output);
  memory.end_sequence();
  HistoryOptions options;
  options.prompts = false;
  HistoryStore outputs = make_memory(1 << 20, options);
  load_whole(saved(memory), outputs);
  EXPECT_EQ(outputs.counts().stored, 3U);
  EXPECT_EQ(followed(outputs, Tokens{5, 6}, 8).size(), 1U);
  HistoryStore none;
  load_whole(saved(memory), none);
  EXPECT_EQ(none.memory_bytes(), 0U);
}

// Damage and forgery: the memory must stay unchanged.

/// A memory with some content, and its state before a load.
struct Untouched {
  Untouched() {
    Random random(9);
    live(memory, random, 3);
    before = saved(memory, calibration);
    counts = memory.counts();
  }
  [[nodiscard]] bool still() const { return saved(memory, calibration) == before && memory.counts() == counts; }
  HistoryStore memory = make_memory(20'000);
  CalibrationState calibration = testing::taught_state(2);
  Bytes before;
  HistoryStore::Counts counts;
};

Bytes small_snapshot() {
  Random random(10);
  HistoryStore memory = make_memory(20'000);
  live(memory, random, 4);
  return saved(memory, testing::taught_state(5));
}

TEST(ForgedMemorySnapshot, WithOneWrongRunOrCalibrationIsRefusedAsAWhole) {
  const Bytes whole = small_snapshot();
  const auto expect_forged = [](const Bytes& bytes) {
    Untouched untouched;
    EXPECT_THAT(load_history(bytes, some_tokenizer, untouched.memory, untouched.calibration),
                testing::fails(ErrorCode::snapshot_forged));
    EXPECT_TRUE(untouched.still());
  };
  Bytes last_word = whole;  // of the last run: only its use count follows
  Bytes cut = whole;
  for (std::size_t i = 2; i < 30; ++i) last_word[last_word.size() - i] = std::byte{0xff};
  testing::repair(last_word);
  expect_forged(last_word);
  cut.pop_back();
  testing::repair(cut);
  expect_forged(cut);
  Bytes short_calibration = whole;
  short_calibration.erase(short_calibration.begin() + 1000);
  detail::store_little(std::uint64_t{calibration_bytes - 1}, short_calibration.data() + 52);
  testing::repair(short_calibration);
  expect_forged(short_calibration);
}

TEST(ForgedMemorySnapshot, WithATokenOutsideTheVocabularyIsRefusedBeforeAnythingChanges) {
  HistoryOptions options;
  options.vocabulary = 1000;
  const auto snapshot_of = [](const Tokens& tokens) {
    HistoryStore memory = make_memory();
    memory.begin_sequence(3);
    memory.append(tokens, Origin::output);
    memory.end_sequence();
    return saved(memory, testing::taught_state(7));
  };
  HistoryStore memory = make_memory(20'000, options);
  Random random(14);
  live(memory, random, 3);
  CalibrationState calibration = testing::taught_state(2);
  const Bytes before = saved(memory, calibration);
  const HistoryStore::Counts counts = memory.counts();
  for (const Token token : {1000, 1001, 0x7ffffffe}) {
    EXPECT_THAT(load_history(snapshot_of({1, 2, 3, token, 5}), some_tokenizer, memory, calibration),
                testing::fails(ErrorCode::token_out_of_range, static_cast<std::uint64_t>(token), 1000U));
    EXPECT_EQ(saved(memory, calibration), before);
    EXPECT_EQ(memory.counts(), counts);
  }
  EXPECT_TRUE(load_history(snapshot_of({1, 2, 3, 999, 5}), some_tokenizer, memory, calibration));
  EXPECT_EQ(calibration, testing::taught_state(7));
}

TEST(ForgedMemorySnapshot, OfNoTokenFitsAVocabularyOfNone) {
  HistoryOptions options;
  options.vocabulary = 0;
  HistoryStore memory = make_memory(20'000, options);
  load_whole(saved(make_memory()), memory);
}

TEST(AnyMemorySnapshot, WithAnyDamageAndRightChecksumsIsLoadedOrRefused) {
  const std::array wholes = {testing::sample_snapshot(5), testing::sample_snapshot(20, false), small_snapshot()};
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    Bytes bytes = wholes[random.below(wholes.size())];
    for (std::size_t changes = random.below(4); changes > 0; --changes) {
      const std::size_t at = random.below(bytes.size());
      if (random.chance(50)) {
        bytes[at] = static_cast<std::byte>(random.next() & 255);
      } else {
        bytes.resize(std::max<std::size_t>(1, bytes.size() - random.below(bytes.size()) / 4));
      }
    }
    ASSERT_EQ(testing::load_any_snapshot(bytes), "") << "case " << i;
  }
}

TEST(AnyMemorySnapshot, OfTheFuzzerIsLoadedOrRefused) {
  for (const auto& input : testing::committed_inputs("snapshot"))
    ASSERT_EQ(testing::load_any_snapshot(std::as_bytes(std::span(input.bytes))), "") << input.name;
}

}  // namespace
}  // namespace reprise::history_snapshot_test
