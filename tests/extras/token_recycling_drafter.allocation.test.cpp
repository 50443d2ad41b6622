// SPDX-License-Identifier: Apache-2.0
#include "reprise/extras/token_recycling_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/allocation_counter.hpp"
#include "support/ranked_memory.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::token_recycling_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::RankedText;
using Tokens = std::vector<Token>;
using Lent = testing::Lent<TokenRecyclingDrafter>;

TEST(RecyclingDrafterMemory, IsNotAskedForInProposeAndFeedback) {
  const RankedText target{.order = 2, .vocabulary = 500};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_GT(testing::propose_without_allocating(drafter, target), 200U);
  // Tokens without a row in the matrix so far.
  const DraftNode node{.token = 70'000};
  const NodeIndex sent = 0;
  const Outcome::RankedToken revealed[] = {{anchor_parent, 0, 90'000}, {0, 0, 80'000}};
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
  testing::expect_recovery_from_failures<TokenRecyclingDrafter>({.order = 1, .vocabulary = 40},
                                                                {Tokens(300, 4), Tokens{39}});
}

TEST(RecyclingDrafterMemory, MayRunOutInACopy) {
  testing::expect_usable_copies<TokenRecyclingDrafter>({.order = 1, .vocabulary = 40});
}

}  // namespace
}  // namespace reprise::token_recycling_drafter_allocation_test
