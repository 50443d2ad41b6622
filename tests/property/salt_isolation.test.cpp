// SPDX-License-Identifier: Apache-2.0
// No action in one salt of a memory affects another salt that is in use. A tenant's life runs twice, with and without a
// neighbour that tries to disturb it, and every observable byte of it is compared. All memories are so small that they
// evict all the time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/memory.hpp"
#include "support/next_tokens.hpp"
#include "support/property_cases.hpp"
#include "support/snapshots.hpp"

namespace reprise::testing::salt_isolation_test {
namespace {

using Tokens = std::vector<Token>;

/// The position of the neighbour. The last four are planted leaks, which the test must find.
enum class Neighbour : std::uint8_t {
  absent,
  beside,
  in_the_memory,
  in_the_calibration,
  in_the_loss_budget,
  in_the_rankings
};

/// How often each event has happened.
struct Pressure {
  HistoryStore::Counts counts;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  std::uint64_t found = 0;
  std::uint64_t next_tokens = 0;
  std::uint64_t table_evictions = 0;
  std::uint64_t ranked = 0;
  std::uint64_t rows_replaced = 0;
};

class Life {
 public:
  Life(std::uint64_t seed, Neighbour neighbour, Pressure* pressure = nullptr)
      : random_(2 * seed),
        of_neighbour_(2 * seed + 1),
        neighbour_(neighbour),
        pressure_(pressure),
        losses_of_neighbour_(LossBudget(), neighbour == Neighbour::in_the_loss_budget ? &budget_ : &other_budget_) {
    MemoryOptions options{.salts = 3, .shared_calibration = false};
    options.max_bytes = HistoryStore::bytes_for(32 * (1 + random_.below(5)));
    options.prompts = random_.chance(80);
    const std::size_t lines = 1 + random_.below(random_.chance(80) ? 8 : 40);
    options.next_token_bytes = 2 * NextTokens::line_bytes * lines;
    options.rankings = true;
    options.key = random_.next();
    vocabulary_ = 2 + random_.below(12);
    memory_ = Memory::make(options).value();
    tenant_ = memory_->options(id);
    other_ = neighbour_ == Neighbour::in_the_memory ? id : other_id;
  }

  /// Rankings are of prompts and outputs, so a memory without one of these has none.
  [[nodiscard]] bool keeps_rankings() const { return store().options().prompts; }

  /// Returns the drafts of the tenant, as bytes.
  Bytes drafts() {
    static_cast<void>(run());
    return std::move(drafts_);
  }

  /// Returns all that was observed of the tenant, as bytes.
  Bytes run() {
    const std::size_t sequences = 2 + random_.below(3);
    for (std::size_t i = 0; i < sequences; ++i) {
      const Tokens text = next_text();
      disturb(text);
      if (random_.chance(3)) {
        memory_->forget(id);
        tenant_ = memory_->options(id);
      }
      decode(text);
      look_inside(text);
      last_ = text;
    }
    observe_snapshot();
    if (pressure_ != nullptr) add_counts();
    return std::move(observed_);
  }

 private:
  static constexpr Memory::Salt id = 1;
  static constexpr Memory::Salt other_id = 2;
  static constexpr Memory::Salt third_id = 3;
  static constexpr std::size_t most_nodes = 8;

  template <class T>
  static void note_in(Bytes& notes, T value) {
    std::array<std::byte, sizeof(T)> bytes;
    detail::store_little(value, bytes.data());
    notes.insert(notes.end(), bytes.begin(), bytes.end());
  }
  template <class T>
  void note(T value) {
    note_in(observed_, value);
  }
  void note_size(std::size_t size) { note(static_cast<std::uint64_t>(size)); }

  Tokens next_text() {
    Tokens text;
    if (random_.chance(50)) text = last_;  // a repeated text
    if (random_.chance(10)) text.insert(text.end(), last_.begin(), last_.end());
    const std::size_t more = 1 + random_.below(random_.chance(15) ? 90 : 30);
    for (std::size_t i = 0; i < more; ++i) text.push_back(static_cast<Token>(random_.below(vocabulary_)));
    return text;
  }

  /// The tenant decodes a text. It drafts from its memory, sends what its control chooses, learns, touches, and appends
  /// the text in small parts. The controls of all its sequences share a loss budget.
  void decode(const Tokens& text) {
    NgramOptions options = memory_->options(id);
    options.row_bytes = 40 * sizeof(NextTokens::RankedRow);
    NgramDrafter<> drafter(options);
    const std::size_t prompt = 1 + random_.below(std::min<std::size_t>(text.size(), 12));
    CostControl control({.curve = CostCurve::linear(0.3), .calibrated = true, .loss_budget = &budget_});
    drafter.begin(TokenSpan(text).first(prompt));
    std::array<DraftNode, most_nodes> room;
    for (std::size_t size = prompt; size < text.size();) {
      DraftBudget budget;
      budget.max_nodes = 1 + random_.below(room.size());
      budget.shape = random_.chance(50) ? DraftShape::chain : DraftShape::tree;
      Draft draft(room, budget);
      drafter.propose(TokenSpan(text).first(size), draft);
      const TokenSpan committed = verify(drafter, control, draft.view(), text, size);
      size += committed.size();
      drafter.observe(TokenSpan(text).first(size), committed.size(), Origin::output);
      if (random_.chance(20)) disturb(text);
    }
    if (pressure_ != nullptr) pressure_->rows_replaced += rows_to_replace(drafter.rows());
    drafter.keep();
  }

  /// Verifies the draft after the first `size` tokens with a target whose output is this text. Returns the committed
  /// tokens.
  TokenSpan verify(NgramDrafter<>& drafter, CostControl& control, DraftView draft, const Tokens& text,
                   std::size_t size) {
    const TokenSpan truth = TokenSpan(text).subspan(size);
    std::array<NodeIndex, most_nodes> sent{};
    std::array<NodeIndex, most_nodes> accepted{};
    std::size_t depth = 0;
    NodeIndex last = anchor_parent;
    note_size(draft.size());
    note_in(drafts_, static_cast<std::uint64_t>(draft.size()));
    for (std::size_t i = 0; i < draft.size(); ++i) sent[i] = static_cast<NodeIndex>(i);
    const PassShape plain{1, 1, size};
    const std::size_t chosen = control.choose(draft, std::span(sent).first(draft.size()), {.plain = plain}).nodes;
    note_size(chosen);
    note(budget_.debt());
    for (std::size_t i = 0; i < draft.size(); ++i) {
      const DraftNode& node = draft[i];
      for (Bytes* notes : {&observed_, &drafts_}) {
        note_in(*notes, node.token);
        note_in(*notes, node.parent);
        note_in(*notes, node.path_probability.raw());
        note_in(*notes, node.match_length);
      }
      if (i >= chosen || node.parent != last || depth + 1 >= truth.size() || node.token != truth[depth]) continue;
      accepted[depth++] = last = sent[i];
    }
    Outcome outcome;
    outcome.draft = draft;
    outcome.sent = std::span(sent).first(chosen);
    outcome.accepted = std::span(accepted).first(depth);
    outcome.pick = truth[depth];
    const std::vector<Outcome::RankedToken> top_k = rankings_of(draft.prefix(chosen), TokenSpan(text).first(size));
    outcome.top_k = top_k;
    control.learn(outcome, {plain, {1, 1 + chosen, size}, depth + 1});
    drafter.feedback(TokenSpan(text).first(size), outcome);
    if (pressure_ != nullptr) pressure_->drafted += draft.size();
    if (pressure_ != nullptr) pressure_->accepted += depth;
    return truth.first(depth + 1);
  }

  /// Records all of the memory and the answers to lookups.
  void look_inside(const Tokens& text) {
    const HistoryStore& memory = store();
    for (std::size_t i = 0; i < memory.capacity(); ++i) {
      note(memory.word(static_cast<HistoryStore::Slot>(i)).bits());
      note(memory.after(static_cast<HistoryStore::Slot>(i)));
    }
    std::array<HistoryStore::HistoryMatch, HistoryStore::most_matches> found;
    for (std::size_t i = 2; i <= text.size(); i += 5) {
      const std::size_t count = memory.find(TokenSpan(text).first(i), found);
      note_size(count);
      for (const auto& match : std::span(found).first(count)) {
        note(match.next);
        note(match.agreements);
        note(memory.use_count(match.next));
      }
      if (pressure_ != nullptr) pressure_->found += count;
    }
    const HistoryStore::Counts& counts = memory.counts();
    for (const std::uint64_t count :
         {counts.stored, counts.duplicates, counts.refused, counts.evicted, counts.second_chances, counts.removed})
      note(count);
    note_size(memory.memory_bytes());
    look_inside_counts(text);
    look_inside_rankings(text);
  }

  /// The same for the counts of next tokens.
  void look_inside_counts(const Tokens& text) {
    const NextTokens& table = *tenant_.next_tokens;
    for (std::size_t line = 0; line < table.lines(); ++line)
      for (const reprise::detail::NextTokenWord word : counts_in(table, line)) note(word.bits());
    for (std::size_t i = 1; i < text.size(); i += 3)
      for (const NextTokens::Context& context : {table.after(text[i]), table.after(text[i - 1], text[i])}) {
        const NextTokens::CountedTokens next = context.counts();
        note(next.total());
        for (const NextTokens::CountedToken& token : next.listed()) {
          note(token.token);
          note(token.count);
        }
        if (pressure_ != nullptr) pressure_->next_tokens += next.size();
      }
    note(table.evictions());
    note_size(table.memory_bytes());
    if (pressure_ != nullptr) pressure_->table_evictions += table.evictions();
  }

  /// Records a snapshot, which has the calibration too.
  void observe_snapshot() {
    Bytes bytes(memory_->snapshot_bytes(id));
    EXPECT_TRUE(memory_->save(bytes, some_tokenizer, id));
    observed_.insert(observed_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] const HistoryStore& store() const {
    return static_cast<const detail::SaltMemory&>(*tenant_.memory).store();
  }

  /// The neighbour fills its memory with noise, with the tenant's text, and with the same prefixes continued otherwise.
  /// It marks entries as used, and asks for more salts than there are.
  void disturb(const Tokens& text) {
    if (neighbour_ == Neighbour::absent) return;
    Random& random = of_neighbour_;
    if (neighbour_ == Neighbour::in_the_rankings) {
      const std::vector<NextTokens::RankedRow> rows = rows_of(text);
      tenant_.memory->keep({.rows = rows});
      return;
    }
    if (neighbour_ == Neighbour::in_the_calibration) {
      CalibrationState learned;
      learned.all = 100'000;
      learned.lessons = 1;
      tenant_.memory->keep({.calibration = &learned});
      return;
    }
    static_cast<void>(losses_of_neighbour_.change(static_cast<std::int64_t>(random.below(LossBudget::burst))));
    if (random.chance(50)) losses_of_neighbour_.settle(static_cast<std::int64_t>(random.below(2 * cost_one)));
    for (std::size_t parts = 1 + random.below(3); parts > 0; --parts) {
      Tokens said;
      if (random.chance(60))
        said.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(random.below(text.size())));
      for (std::size_t i = random.below(40); i > 0; --i) said.push_back(static_cast<Token>(random.below(15)));
      memory_->add(said, random.chance(50) ? said.size() : 0, other_);
      const NgramOptions other = memory_->options(other_);
      std::array<StoreMatch, 1> found;
      if (!other.stores[0].empty() && other.stores[0].find(text, found) > 0) other.stores[0].touch(found[0].next);
    }
    if (neighbour_ == Neighbour::beside && random.chance(20)) {
      if (random.chance(50)) memory_->forget(third_id);
      NgramDrafter<> third(memory_->options(third_id + random.below(3)));
      third.begin(text);
      third.keep();
    }
  }

  void add_counts() {
    const HistoryStore::Counts& counts = store().counts();
    pressure_->counts.stored += counts.stored;
    pressure_->counts.duplicates += counts.duplicates;
    pressure_->counts.evicted += counts.evicted;
    pressure_->counts.second_chances += counts.second_chances;
  }

  /// A ranking that depends on the last token and on the length of the text. A real one depends on the whole text.
  static Ranking ranking_after(Token last, std::size_t length) {
    Ranking ranking;
    for (std::size_t rank = 0; rank < Ranking::most; ++rank)
      ranking.tokens[rank] = static_cast<Token>((static_cast<std::size_t>(last) + length + rank) % 15);
    return ranking;
  }
  /// The target's rankings after the anchor and after all of these nodes.
  static std::vector<Outcome::RankedToken> rankings_of(DraftView sent, TokenSpan context) {
    std::vector<Outcome::RankedToken> top_k;
    for (NodeIndex node = anchor_parent; node < static_cast<NodeIndex>(sent.size()); ++node) {
      const Token last = node == anchor_parent ? context.back() : sent[static_cast<std::size_t>(node)].token;
      const Ranking ranking = ranking_after(last, context.size());
      for (std::size_t rank = 0; rank < Ranking::most; ++rank)
        top_k.push_back({node, static_cast<std::uint16_t>(rank), ranking.tokens[rank]});
    }
    return top_k;
  }
  /// The rows that a drafter would be shown with this text.
  static std::vector<NextTokens::RankedRow> rows_of(const Tokens& text) {
    std::vector<NextTokens::RankedRow> rows;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const Ranking ranking = ranking_after(text[i], i * i);
      rows.push_back({.last = text[i], .ranking = ranking});
      if (i > 0) rows.push_back({text[i - 1], text[i], ranking});
    }
    return rows;
  }
  /// The rows of the tenant that add() would replace with different ones.
  [[nodiscard]] std::uint64_t rows_to_replace(std::span<const NextTokens::RankedRow> rows) const {
    NextTokens changed = (*tenant_.next_tokens).copy().value();
    changed.add(rows);
    std::uint64_t count = 0;
    for (std::size_t line = 0; line < changed.lines(); ++line) {
      const RankedLine before = ranking_in((*tenant_.next_tokens), line);
      count += !before.ranking.empty() && before != ranking_in(changed, line) ? 1U : 0U;
    }
    return count;
  }
  /// Records all rankings of the table, and the answers to lookups.
  void look_inside_rankings(const Tokens& text) {
    const NextTokens& table = *tenant_.next_tokens;
    const auto note_ranking = [this](const Ranking& ranking) {
      for (const Token token : ranking.tokens) note(token);
      if (pressure_ != nullptr) pressure_->ranked += ranking.empty() ? 0U : 1U;
    };
    for (std::size_t line = 0; line < table.lines(); ++line) {
      const RankedLine row = ranking_in(table, line);
      note(row.tag);
      for (const Token token : row.ranking.tokens) note(token);
    }
    for (std::size_t i = 1; i < text.size(); i += 3) {
      note_ranking(table.after(text[i]).ranking());
      note_ranking(table.after(text[i - 1], text[i]).ranking());
    }
  }

  Random random_;
  Random of_neighbour_;
  Neighbour neighbour_;
  Pressure* pressure_;
  std::optional<Memory> memory_;
  NgramOptions tenant_;  // keeps the salt in use
  Memory::Salt other_ = other_id;
  LossBudget budget_;
  LossBudget other_budget_;
  detail::LossAccount losses_of_neighbour_;
  std::size_t vocabulary_ = 0;
  Tokens last_;
  Bytes observed_;
  Bytes drafts_;
};

TEST(SaltIsolation, ANeighbourChangesNoByteOfWhatATenantIs) {
  const std::uint64_t cases = property_cases(100);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    ASSERT_TRUE(Life(seed, Neighbour::absent).run() == Life(seed, Neighbour::beside).run()) << run_again(seed);
  }
}

TEST(SaltIsolation, ANeighbourInAnythingOfTheTenantWouldBeSeen) {
  for (const Neighbour leak : {Neighbour::in_the_memory, Neighbour::in_the_calibration, Neighbour::in_the_loss_budget,
                               Neighbour::in_the_rankings}) {
    int lives = 0;
    int seen = 0;
    int drafted_otherwise = 0;
    for (std::uint64_t seed = 0; lives < 100; ++seed) {
      if (leak == Neighbour::in_the_rankings && !Life(seed, leak).keeps_rankings()) continue;
      ++lives;
      seen += Life(seed, Neighbour::absent).run() != Life(seed, leak).run() ? 1 : 0;
      drafted_otherwise += Life(seed, Neighbour::absent).drafts() != Life(seed, leak).drafts() ? 1 : 0;
    }
    EXPECT_GE(seen, 95) << static_cast<int>(leak);
    if (leak == Neighbour::in_the_memory) {
      EXPECT_GE(drafted_otherwise, 99) << "the drafter reads the memory";
    }
  }
}

TEST(SaltIsolation, TheMemoriesThatAreComparedRunOverAndAreOfUse) {
  Pressure all;
  std::uint64_t bytes = 0;
  constexpr std::uint64_t lives = 500;
  for (std::uint64_t seed = 0; seed < lives; ++seed) bytes += Life(seed, Neighbour::absent, &all).run().size();
  EXPECT_GT(all.counts.evicted, lives * 25);
  EXPECT_GT(all.counts.second_chances, lives / 5);
  EXPECT_GT(all.counts.duplicates, lives / 4);
  EXPECT_GT(all.drafted, lives * 100);
  EXPECT_GT(all.accepted, lives * 10);
  EXPECT_GT(all.found, lives * 15);
  EXPECT_GT(all.next_tokens, lives * 50);
  EXPECT_GT(all.table_evictions, lives * 25);
  EXPECT_GT(all.ranked, lives * 5);
  EXPECT_GT(all.rows_replaced, lives * 5);
  EXPECT_GT(bytes, lives * 5000);
}

}  // namespace
}  // namespace reprise::testing::salt_isolation_test
