// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/ngram_drafter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/archetypes.hpp"
#include "support/naive_index.hpp"
#include "support/ngram_world.hpp"
#include "support/strategies.hpp"
#include "support/streams.hpp"

namespace reprise::ngram_drafter_test {
namespace {

using testing::NaiveIndex;
using Tokens = std::vector<Token>;
using Nodes = std::vector<DraftNode>;
using testing::describe;
using testing::draft_of;
using testing::LentNgram;
using testing::same_nodes;
using testing::tokens_of;

static_assert(ReservableStrategy<NgramDrafter<>> && MeasurableStrategy<NgramDrafter<>>);
static_assert(DraftStrategy<NgramDrafter<archetype::Index>> && DraftStrategy<NgramDrafter<archetype::LatestIndex>>);
static_assert(sizeof(NgramDrafter<archetype::Index>) < 25 * 1024);

constexpr DraftBudget tree_of(std::size_t nodes) { return {.max_nodes = nodes, .shape = DraftShape::tree}; }
constexpr DraftBudget chain_of(std::size_t nodes) { return {.max_nodes = nodes, .shape = DraftShape::chain}; }

/// Expects equal drafts, trees and chains, for several budgets.
template <class A, class B>
void expect_same_drafts(A& a, B& b) {
  for (const DraftBudget& budget : {tree_of(64), tree_of(5), chain_of(32)}) {
    const Nodes first = draft_of(a, budget);
    const Nodes second = draft_of(b, budget);
    ASSERT_TRUE(same_nodes(first, second)) << describe(first) << '\n' << describe(second);
  }
}
Outcome outcome_of(const Nodes& nodes, std::span<const NodeIndex> accepted, std::optional<Token> pick) {
  return {DraftView(nodes, DraftKind::ordered), {}, accepted, pick, Cut::none, {}};
}

/// A text with copies, edits and repetition, as conversations have them.
Tokens text_of(std::size_t size, std::uint64_t seed) {
  return testing::make_stream(testing::Stream::trace_like, size, seed, 60);
}

// --- For every index ---

template <class Index>
class NgramDrafterOver : public ::testing::Test {};
using Indexes = ::testing::Types<NaiveIndex, RollingHashIndex, SuffixArrayIndex>;
TYPED_TEST_SUITE(NgramDrafterOver, Indexes);

TYPED_TEST(NgramDrafterOver, CopiesWhatFollowedTheSameTokensBefore) {
  LentNgram<TypeParam> drafter;
  drafter.begin(Tokens{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 10, 11, 12, 13, 14, 15});
  EXPECT_EQ(tokens_of(draft_of(drafter, chain_of(4))), (Tokens{16, 17, 18, 19}));
  const Nodes nodes = draft_of(drafter, chain_of(1));
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].match_length, 6U);
  EXPECT_EQ(nodes[0].source, DraftSource::context);
  EXPECT_GT(nodes[0].path_probability, Probability::ratio(1, 2));
}

TYPED_TEST(NgramDrafterOver, TakesTokensOfAnyValue) {
  constexpr Token lowest = std::numeric_limits<Token>::min();
  constexpr Token highest = std::numeric_limits<Token>::max();
  LentNgram<TypeParam> drafter;
  drafter.begin(Tokens{1, highest, 2, 0, 1, highest, 2, 0, 1});
  EXPECT_EQ(tokens_of(draft_of(drafter, chain_of(3))), (Tokens{highest, 2, 0}));
  drafter.begin(Tokens{lowest, 3, -1, 0, lowest, 3, -1, 0, lowest});
  EXPECT_EQ(tokens_of(draft_of(drafter, chain_of(3))), (Tokens{0})) << "negative ids are placeholders";
}

// --- Budgets ---

TEST(NgramDrafter, ProposesNothingAfterItWasMovedFrom) {
  LentNgram<> drafter;
  drafter.begin(Tokens{1, 2, 3, 1, 2, 3});
  const LentNgram<> taken = std::move(drafter);
  EXPECT_TRUE(draft_of(drafter, tree_of(8)).empty());  // NOLINT(bugprone-use-after-move)
}

TEST(NgramDrafter, ASmallerDraftIsAPrefixOfALargerOne) {
  // The decision to consider a token that is merely frequent must not depend on the number of wanted nodes.
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    LentNgram<> drafter;
    drafter.begin(text_of(300, seed));
    const Nodes largest = draft_of(drafter, tree_of(64));
    for (const std::size_t size : {1U, 2U, 5U, 11U, 32U}) {
      const Nodes smaller = draft_of(drafter, tree_of(size));
      ASSERT_EQ(smaller.size(), std::min<std::size_t>(size, largest.size()));
      ASSERT_TRUE(same_nodes(smaller, std::span(largest).first(smaller.size()))) << describe(smaller) << '\n'
                                                                                 << describe(largest);
    }
  }
}

// --- Truncation, forks ---

/// Passes a text to a drafter in pieces of many sizes, some from a prompt, as sessions do.
template <class Drafter>
void observe_in_pieces(Drafter& drafter, TokenSpan text) {
  for (std::size_t at = 0, i = 0; at < text.size(); ++i) {
    constexpr std::array<std::size_t, 7> sizes = {1, 9, 3, 65, 2, 230, 5};
    const TokenSpan piece = text.subspan(at).first(std::min(sizes[i % sizes.size()], text.size() - at));
    drafter.observe(piece, i % 3 == 0 ? Origin::prompt : Origin::output);
    at += piece.size();
  }
}

TEST(NgramDrafter, ACopyTakenBetweenProposeAndFeedbackLearnsTheSame) {
  LentNgram<> first;
  first.begin(text_of(300, 12));
  const Nodes nodes = draft_of(first, tree_of(32));
  LentNgram<> second = first;
  first.feedback(outcome_of(nodes, {}, nodes[1].token));
  second.feedback(outcome_of(nodes, {}, nodes[1].token));
  EXPECT_GT(first.calibration().lessons, 0U);
  EXPECT_EQ(first.calibration(), second.calibration());
  expect_same_drafts(first, second);
}

// --- Memory ---

TYPED_TEST(NgramDrafterOver, DraftsNothingWithoutMemoryAndAgainAfterABegin) {
  NgramOptions options;
  options.max_bytes = 16'384;
  LentNgram<TypeParam> drafter(options);
  const Tokens text = text_of(20'000, 14);
  drafter.begin(TokenSpan(text).first(50));
  EXPECT_FALSE(drafter.exhausted());
  for (std::size_t at = 50; at < 10'000; at += 50) {
    drafter.observe(TokenSpan(text).subspan(at, 50), Origin::output);
    const Nodes nodes = draft_of(drafter, tree_of(16));
    ASSERT_FALSE(drafter.exhausted() && !nodes.empty());
    drafter.feedback(outcome_of(nodes, {}, 5));
    ASSERT_LE(drafter.index().memory_bytes(), options.max_bytes);
  }
  EXPECT_TRUE(drafter.exhausted());
  drafter.observe(TokenSpan(text).subspan(10'000), Origin::output);
  drafter.truncate(19'000);
  EXPECT_TRUE(draft_of(drafter, tree_of(16)).empty());
  drafter.begin(TokenSpan(text).first(50));
  EXPECT_FALSE(drafter.exhausted());
  LentNgram<TypeParam> fresh;
  fresh.begin(TokenSpan(text).first(50));
  expect_same_drafts(drafter, fresh);
}

TYPED_TEST(NgramDrafterOver, DraftsAgainWhenATruncationLeavesOnlyWhatIsIndexed) {
  testing::SplitMix random(10);
  for (int round = 0; round < 60; ++round) {
    NgramOptions options;
    options.max_bytes = random.between(6'000, 15'000);
    const Tokens text = text_of(4000, random.next());
    LentNgram<TypeParam> drafter(options);
    drafter.begin({});
    observe_in_pieces(drafter, text);
    ASSERT_TRUE(drafter.exhausted());
    // The memory limit decides how many tokens are indexed. The matches at exactly that size are unknown.
    const std::size_t indexed = drafter.index().tokens().size();
    if (indexed == 0) continue;
    const std::size_t size = round % 2 == 0 ? indexed : random.below(indexed);
    drafter.truncate(size);
    ASSERT_TRUE(size == indexed || !drafter.exhausted());
    LentNgram<TypeParam> never;
    never.begin({});
    observe_in_pieces(never, TokenSpan(text).first(size));
    expect_same_drafts(drafter, never);
    if (this->HasFatalFailure()) FAIL() << "round " << round << ", cut to " << size << " of " << indexed;
  }
}

/// Has room for 100 tokens, and drops all of them when more arrive. RollingHashIndex does so if it can allocate neither
/// the new memory nor the old.
class ForgetfulIndex {
 public:
  explicit ForgetfulIndex(const IndexOptions& options) : inner_(options) {}
  void append(TokenSpan tokens) {
    size_ += tokens.size();
    if (size_ > 100) inner_.clear();
    if (!exhausted_ && size_ <= 100) inner_.append(tokens);
    exhausted_ |= size_ > 100;
  }
  void truncate(std::size_t size) {
    size_ = std::min(size_, size);
    inner_.truncate(size);
    exhausted_ &= size_ > inner_.tokens().size();
  }
  void clear() { truncate(0); }
  [[nodiscard]] std::size_t find(const MatchLimits& limits, std::span<Match> out) const {
    return exhausted_ ? 0 : inner_.find(limits, out);
  }
  [[nodiscard]] TokenSpan tokens() const { return inner_.tokens(); }
  [[nodiscard]] bool exhausted() const { return exhausted_; }
  [[nodiscard]] std::size_t memory_bytes() const { return inner_.memory_bytes(); }
  Result<void> reserve(std::size_t tokens) { return inner_.reserve(tokens); }

 private:
  NaiveIndex inner_;
  std::size_t size_ = 0;
  bool exhausted_ = false;
};
static_assert(LookupIndex<ForgetfulIndex>);

TEST(NgramDrafter, SurvivesAnIndexThatHadToForgetEverything) {
  LentNgram<ForgetfulIndex> drafter;
  const Tokens text = text_of(300, 15);
  drafter.begin(TokenSpan(text).first(90));
  for (std::size_t at = 90; at < 300; at += 10) drafter.observe(TokenSpan(text).subspan(at, 10), Origin::output);
  EXPECT_TRUE(drafter.exhausted());
  EXPECT_TRUE(draft_of(drafter, tree_of(16)).empty());
  drafter.truncate(50);
  EXPECT_TRUE(drafter.exhausted());
  drafter.truncate(0);
  EXPECT_FALSE(drafter.exhausted());
  drafter.observe(TokenSpan(text).first(60), Origin::prompt);
  LentNgram<ForgetfulIndex> fresh;
  fresh.begin(TokenSpan(text).first(60));
  expect_same_drafts(drafter, fresh);
}

TEST(NgramDrafter, TakesLittleMemoryBesidesTheIndex) {
  LentNgram<> drafter;
  drafter.begin({});
  const Tokens text = testing::make_stream(testing::Stream::random_small, 100'000, 1);
  for (std::size_t at = 0; at < text.size(); at += 5) drafter.observe(TokenSpan(text).subspan(at, 5), Origin::output);
  const std::size_t besides = drafter.memory_bytes() - drafter.index().memory_bytes();
  EXPECT_LE(besides, text.size());
}

TEST(NgramDrafter, TakesLittleMemoryAlsoWhereEveryRoundIsTruncated) {
  LentNgram<> drafter;
  drafter.begin(Tokens{1, 2, 3});
  for (std::size_t size = 4; size < 5000; ++size) {
    drafter.observe(Tokens{1, 2}, Origin::output);
    drafter.truncate(size);
  }
  EXPECT_LE(drafter.memory_bytes() - drafter.index().memory_bytes(), 10'000U);
}

}  // namespace
}  // namespace reprise::ngram_drafter_test
