// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/ngram_world.hpp"
#include "support/streams.hpp"

namespace reprise {
namespace {

using testing::AllocationWatch;
using Tokens = std::vector<Token>;

Tokens text_of(std::size_t size, std::uint64_t seed) {
  return support::make_stream(support::Stream::trace_like, size, seed, 60);
}
constexpr DraftBudget tree = {.max_nodes = 64, .shape = DraftShape::tree};

TEST(NgramDrafterMemory, IsNotAskedForInProposeOrFeedback) {
  NgramDrafter<> drafter;
  drafter.begin(text_of(500, 1));
  std::vector<DraftNode> storage(64);
  for (const DraftShape shape : {DraftShape::chain, DraftShape::tree}) {
    DraftBudget budget = tree;
    budget.shape = shape;
    Draft draft(storage);
    const AllocationWatch watch;
    drafter.propose(budget, draft);
    drafter.feedback({draft.view(), {}, {}, 5, Cut::none, {}});
    EXPECT_EQ(watch.allocations(), 0U);
    EXPECT_FALSE(draft.empty());
  }
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserve) {
  NgramDrafter<> drafter;
  const Tokens text = support::make_stream(support::Stream::random_small, 4000, 2);
  drafter.begin(TokenSpan(text).first(8));
  drafter.reserve(text.size());
  const AllocationWatch watch;
  for (std::size_t at = 8; at < text.size(); at += 4) drafter.observe(TokenSpan(text).subspan(at, 4), Origin::prompt);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveWhateverIsSaid) {
  // New tokens, and turns.
  NgramDrafter<> drafter;
  const Tokens text = support::make_stream(support::Stream::all_distinct, 4000, 2);
  drafter.begin(TokenSpan(text).first(8));
  drafter.reserve(text.size());
  const AllocationWatch watch;
  for (std::size_t at = 8; at < text.size(); at += 4)
    drafter.observe(TokenSpan(text).subspan(at, 4), at % 200 == 0 ? Origin::prompt : Origin::output);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveOfManyTurnsAfterReserve) {
  for (const std::size_t turn : {64U, 65U, 66U, 200U}) {
    NgramDrafter<> drafter;
    const Tokens text = support::make_stream(support::Stream::random_small, 4000, 2);
    drafter.begin(TokenSpan(text).first(8));
    drafter.reserve(text.size());
    const AllocationWatch watch;
    for (std::size_t at = 8; at + turn <= text.size(); at += turn)
      drafter.observe(TokenSpan(text).subspan(at, turn), Origin::prompt);
    EXPECT_EQ(watch.allocations(), 0U) << turn;
  }
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveWhenTheContextHasChanged) {
  NgramDrafter<> drafter;
  const Tokens text = support::make_stream(support::Stream::random_small, 4000, 2);
  drafter.begin(TokenSpan(text).first(1000));
  drafter.reserve(text.size());
  drafter.rebase(TokenSpan(text).first(8));
  ASSERT_GT(drafter.evidence(), 900U);
  const AllocationWatch watch;
  for (std::size_t at = 8; at < text.size(); at += 4) drafter.observe(TokenSpan(text).subspan(at, 4), Origin::prompt);
  EXPECT_EQ(watch.allocations(), 0U);
}

/// Runs the calls of a sequence in which some allocations fail, from one on; true when one did.
bool survive_failures(std::size_t fail_at, std::size_t failures) {
  static const Tokens text = text_of(900, 3);
  static const Tokens next = text_of(300, 4);
  static const std::vector<DraftNode> wanted = [] {
    NgramDrafter<> expected;
    expected.begin(next);
    return testing::draft_of(expected, tree);
  }();
  NgramDrafter<> drafter;
  bool failed = false;
  {
    const AllocationWatch watch(fail_at, failures);
    drafter.begin(TokenSpan(text).first(100));
    for (std::size_t at = 100; at < 500; at += 3) drafter.observe(TokenSpan(text).subspan(at, 3), Origin::output);
    drafter.observe(TokenSpan(text).subspan(502), Origin::prompt);
    drafter.truncate(700);
    drafter.observe(TokenSpan(text).subspan(700), Origin::output);
    drafter.rebase(TokenSpan(text).subspan(300));
    drafter.observe(TokenSpan(text).subspan(700), Origin::output);
    failed = watch.allocations() >= fail_at;
  }
  EXPECT_EQ(testing::fault_of(testing::draft_of(drafter, tree), tree, Probability::zero()), "");
  drafter.truncate(350);
  drafter.observe(next, Origin::output);
  testing::draft_of(drafter, tree);
  drafter.begin(next);
  EXPECT_TRUE(testing::same_nodes(testing::draft_of(drafter, tree), wanted)) << "allocation " << fail_at << " failed";
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
  const std::vector<DraftNode> wanted = testing::draft_of(drafter, tree);
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    const auto copy_without = [&] {
      const AllocationWatch watch(fail_at);
      NgramDrafter<> copy = drafter;
      failed = watch.allocations() >= fail_at;
      return copy;
    };
    NgramDrafter<> copy = copy_without();
    for (const std::size_t size : {800U, 700U, 100U, 0U}) {
      copy.observe(text, Origin::output);
      const std::vector<DraftNode> nodes = testing::draft_of(copy, tree);
      ASSERT_EQ(testing::fault_of(nodes, tree, Probability::zero()), "") << "allocation " << fail_at << " failed";
      copy.truncate(size);
      testing::draft_of(copy, tree);
    }
    copy.begin(text);
    ASSERT_TRUE(testing::same_nodes(testing::draft_of(copy, tree), wanted)) << "allocation " << fail_at;
    ASSERT_TRUE(testing::same_nodes(testing::draft_of(drafter, tree), wanted));
  }
}

}  // namespace
}  // namespace reprise
