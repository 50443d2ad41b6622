// SPDX-License-Identifier: Apache-2.0
#include "reprise/extras/token_recycling_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/allocation_counter.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise {
namespace {

using testing::AllocationWatch;
using testing::RankedText;
using Tokens = std::vector<Token>;
using Lent = testing::Lent<TokenRecyclingDrafter>;

TEST(RecyclingDrafterMemory, IsNotAskedForInProposeAndFeedback) {
  const RankedText target{.order = 2, .vocabulary = 500};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  std::vector<DraftNode> storage(64);
  std::size_t drafted = 0;
  for (int i = 0; i < 100; ++i) {
    Draft draft(storage, {});
    const AllocationWatch proposing;
    drafter.propose(draft);
    EXPECT_EQ(proposing.allocations(), 0U);
    drafted += draft.size();
    testing::run_round(drafter, target);
  }
  EXPECT_GT(drafted, 200U);
  // Tokens that the matrix has no row for yet.
  const DraftNode node{.token = 70'000};
  const NodeIndex sent = 0;
  const RankedToken revealed[] = {{anchor_parent, 0, 90'000}, {0, 0, 80'000}};
  const std::size_t rows = drafter->rows();
  {
    const AllocationWatch watch;
    drafter.feedback({DraftView({&node, 1}, DraftKind::ordered), {&sent, 1}, {}, 1, Cut::none, revealed});
    EXPECT_EQ(watch.allocations(), 0U);
  }
  EXPECT_EQ(drafter->rows(), rows);
  drafter.observe(Tokens{1}, Origin::output);
  EXPECT_GT(drafter->rows(), 90'000U);
}

TEST(RecyclingDrafterMemory, IsNotAskedForInObserveWhereItWasReserved) {
  Lent drafter{TokenRecyclingDrafter::make({.vocabulary = 1000}).value()};
  drafter.reserve(500);
  drafter.begin(Tokens{1, 2});
  const Tokens more(400, 999);
  const AllocationWatch watch;
  drafter.observe(more, Origin::output);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(RecyclingDrafterMemory, MayRunOutAndThenItKnowsLessUntilTheNextSequence) {
  const RankedText target{.order = 1, .vocabulary = 40};
  const Tokens prompt(300, 4);
  const Tokens high = {39};
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    Lent drafter;
    drafter.reserve(1000);  // no allocation but the drafter's own
    {
      const AllocationWatch watch(fail_at, fail_at % 3 + 1);
      drafter.begin(TokenSpan(prompt).first(20));
      drafter.observe(prompt, Origin::prompt);
      drafter.observe(high, Origin::prompt);
      failed = watch.allocations() >= fail_at;
    }
    for (int i = 0; i < 30; ++i) testing::run_round(drafter, target);
    drafter.begin(prompt);
    std::size_t accepted = 0;
    for (int i = 0; i < 100; ++i) accepted += testing::run_round(drafter, target).accepted.size();
    EXPECT_GT(accepted, 100U) << "allocation " << fail_at << " failed";
  }
}

TEST(RecyclingDrafterMemory, MayRunOutInACopy) {
  const RankedText target{.order = 1, .vocabulary = 40};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  for (int i = 0; i < 50; ++i) testing::run_round(drafter, target);
  testing::for_each_copy_without_memory(drafter.strategy(), [&](const TokenRecyclingDrafter& made) {
    Lent copy(made);
    copy.observe(drafter.context());
    for (int i = 0; i < 20; ++i) testing::run_round(copy, target);
  });
}

}  // namespace
}  // namespace reprise
