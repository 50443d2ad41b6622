// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/lent_context.hpp"
#include "support/ngram_world.hpp"
#include "support/ranked_memory.hpp"
#include "support/streams.hpp"

namespace reprise::ngram_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::LentNgram;
using Tokens = std::vector<Token>;

Tokens text_of(std::size_t size, std::uint64_t seed) {
  return testing::make_stream(testing::Stream::trace_like, size, seed, 60);
}
Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
constexpr DraftBudget tree = {.max_nodes = 64, .shape = DraftShape::tree};

TEST(NgramDrafterMemory, IsNotAskedForInProposeOrFeedback) {
  LentNgram<> drafter;
  drafter.begin(text_of(500, 1));
  std::vector<DraftNode> storage(64);
  for (const DraftShape shape : {DraftShape::chain, DraftShape::tree}) {
    DraftBudget budget = tree;
    budget.shape = shape;
    Draft draft(storage, budget);
    const AllocationWatch watch;
    drafter.propose(draft);
    drafter.feedback({draft.view(), {}, {}, 5, Cut::none, {}});
    EXPECT_EQ(watch.allocations(), 0U);
    EXPECT_FALSE(draft.empty());
  }
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveHoweverLongTheTurnsAre) {
  for (const testing::Stream stream : {testing::Stream::random_small, testing::Stream::all_distinct})
    for (const std::size_t turn : {4U, 64U, 65U, 66U, 200U}) {
      LentNgram<> drafter;
      const Tokens text = testing::make_stream(stream, 4000, 2);
      drafter.begin(TokenSpan(text).first(8));
      drafter.reserve(text.size());
      const AllocationWatch watch;
      for (std::size_t at = 8; at + turn <= text.size(); at += turn)
        drafter.observe(TokenSpan(text).subspan(at, turn), at % 200 == 0 ? Origin::output : Origin::prompt);
      EXPECT_EQ(watch.allocations(), 0U) << turn;
    }
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveWhenTheContextHasChanged) {
  NgramDrafter<> drafter;
  const Tokens text = testing::make_stream(testing::Stream::random_small, 4000, 2);
  const auto context = [&](std::size_t size) { return TokenSpan(text).first(size); };
  drafter.begin(context(1000));
  drafter.reserve(text.size());
  drafter.rebase(context(1000), context(8));
  ASSERT_GT(drafter.evidence(), 900U);
  const AllocationWatch watch;
  for (std::size_t at = 8; at < text.size(); at += 4) drafter.observe(context(at + 4), 4, Origin::prompt);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(NgramDrafterMemory, OfRowsIsAskedForOnceInObserve) {
  LentNgram<> drafter;
  const Tokens text = text_of(500, 1);
  drafter.begin(TokenSpan(text).first(100));
  drafter.reserve(text.size());
  std::vector<DraftNode> storage(64);
  const std::array<Outcome::RankedToken, 2> rows = {Outcome::RankedToken{anchor_parent, 0, 500},
                                                    Outcome::RankedToken{0, 0, 501}};
  for (std::size_t at = 100; at < text.size(); ++at) {
    Draft draft(storage, tree);
    const AllocationWatch watch;
    drafter.propose(draft);
    drafter.feedback({draft.view(), {}, {}, text[at], Cut::none, rows});
    EXPECT_EQ(watch.allocations(), 0U);
    drafter.observe(TokenSpan(text).subspan(at, 1));
    EXPECT_EQ(watch.allocations(), at == 100 ? 1U : 0U) << at;
  }
  const AllocationWatch watch;
  drafter.learn_row(text, Tokens(text.begin(), text.begin() + 5));
  EXPECT_EQ(watch.allocations(), 1U) << "the test's own";
}

TEST(NgramDrafterMemory, OfRowsIsAskedForByTheFirstRowOfAPrompt) {
  LentNgram<> drafter;
  const Tokens text = text_of(500, 1);
  drafter.begin(TokenSpan(text).first(100));
  drafter.reserve(text.size());
  const Tokens row = {500, 501};
  {
    const AllocationWatch watch(1, 1);  // the first allocation fails
    drafter.learn_row(text, row);
    EXPECT_EQ(watch.allocations(), 1U);
    EXPECT_TRUE(drafter.strategy().rows().empty());
  }
  const AllocationWatch watch;
  drafter.learn_row(text, row);
  drafter.learn_row(TokenSpan(text).first(50), row);
  drafter.observe(TokenSpan(text).subspan(100, 50));
  EXPECT_EQ(watch.allocations(), 1U);
}

TEST(NgramDrafterMemory, OfRowsMayFail) {
  testing::expect_recovery_from_failures<NgramDrafter<>>({.order = 1, .vocabulary = 40}, {Tokens(300, 4), Tokens{39}});
  testing::expect_usable_copies<NgramDrafter<>>({.order = 1, .vocabulary = 40});
}

/// Runs the calls of a sequence with `failures` failing allocations from number `fail_at` on. Returns whether one
/// failed.
bool survive_failures(std::size_t fail_at, std::size_t failures) {
  static const Tokens text = text_of(900, 3);
  static const Tokens next = text_of(300, 4);
  static const Tokens changed(text.begin() + 300, text.end());
  static const Tokens longer = changed + Tokens(text.begin() + 700, text.end());
  static const Tokens other = Tokens(longer.begin(), longer.begin() + 350) + next;
  static const std::vector<DraftNode> wanted = [] {
    LentNgram<> expected;
    expected.begin(next);
    return testing::draft_of(expected, tree);
  }();
  // A LentNgram would allocate for its context as well.
  NgramDrafter<> drafter;
  bool failed = false;
  {
    const AllocationWatch watch(fail_at, failures);
    const TokenSpan whole = text;
    drafter.begin(whole.first(100));
    for (std::size_t at = 100; at < 500; at += 3) drafter.observe(whole.first(at + 3), 3, Origin::output);
    drafter.observe(whole, whole.size() - 502, Origin::prompt);
    drafter.truncate(whole, 700);
    drafter.observe(whole, 200, Origin::output);
    drafter.rebase(whole, changed);
    drafter.observe(longer, 200, Origin::output);
    failed = watch.allocations() >= fail_at;
  }
  EXPECT_EQ(testing::fault_of(testing::propose(drafter, longer, tree).nodes, tree, Probability::zero()), "");
  drafter.truncate(longer, 350);
  drafter.observe(other, next.size(), Origin::output);
  testing::propose(drafter, other, tree);
  drafter.begin(next);
  EXPECT_TRUE(testing::same_nodes(testing::propose(drafter, next, tree).nodes, wanted))
      << "allocation " << fail_at << " failed";
  return failed;
}

TEST(NgramDrafterMemory, MayFailOnceAndThenIsMissedUntilTheNextSequenceAtMost) {
  std::size_t fail_at = 1;
  while (survive_failures(fail_at, 1) && !HasFailure()) ++fail_at;
  EXPECT_GT(fail_at, 10U);
}

TEST(NgramDrafterMemory, MayEndAndComeBackWithTheNextSequence) {
  for (const std::size_t failures : {2U, 3U, 5U, 9U, 100'000U})
    for (std::size_t fail_at = 1; survive_failures(fail_at, failures) && !HasFailure();) ++fail_at;
}

TEST(NgramDrafterMemory, MayFailInACopyThatIsThenOnlyPoorer) {
  const Tokens text = text_of(900, 5);
  NgramDrafter<> drafter;
  drafter.begin(text);
  const auto drafted = [&](NgramDrafter<>& strategy, const Tokens& context) {
    return testing::propose(strategy, context, tree).nodes;
  };
  const std::vector<DraftNode> wanted = drafted(drafter, text);
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    const auto copy_without = [&] {
      const AllocationWatch watch(fail_at);
      NgramDrafter<> copy = drafter;
      failed = watch.allocations() >= fail_at;
      return copy;
    };
    NgramDrafter<> copy = copy_without();
    Tokens context = text;
    for (const std::size_t size : {800U, 700U, 100U, 0U}) {
      context = context + text;
      copy.observe(context, text.size(), Origin::output);
      ASSERT_EQ(testing::fault_of(drafted(copy, context), tree, Probability::zero()), "")
          << "allocation " << fail_at << " failed";
      copy.truncate(context, size);
      context.resize(size);
      drafted(copy, context);
    }
    copy.begin(text);
    ASSERT_TRUE(testing::same_nodes(drafted(copy, text), wanted)) << "allocation " << fail_at;
    ASSERT_TRUE(testing::same_nodes(drafted(drafter, text), wanted));
  }
}

}  // namespace
}  // namespace reprise::ngram_drafter_allocation_test
