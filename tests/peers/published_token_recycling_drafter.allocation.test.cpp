// SPDX-License-Identifier: Apache-2.0
#include "peers/published_token_recycling_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/allocation_counter.hpp"
#include "support/ranked_memory.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::peers::published_token_recycling_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::RankedText;
using Tokens = std::vector<Token>;
using Drafter = PublishedTokenRecyclingDrafter;
using Lent = testing::Lent<Drafter>;

TEST(PublishedTokenRecyclingMemory, IsNotAskedForInProposeAndFeedback) {
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_GT(testing::propose_without_allocating(drafter, {.order = 2, .vocabulary = 500}), 200U);
  // Tokens without a row in the matrix so far.
  const DraftNode node{.token = 70'000};
  const NodeIndex sent = 0;
  const Outcome::RankedToken revealed[] = {{anchor_parent, 0, 90'000}, {0, 0, 80'000}};
  const std::size_t bytes = drafter->memory_bytes();
  {
    const AllocationWatch watch;
    drafter.feedback({DraftView({&node, 1}, DraftKind::ordered), {&sent, 1}, {}, 1, Cut::none, revealed});
    EXPECT_EQ(watch.allocations(), 0U);
  }
  EXPECT_EQ(drafter->memory_bytes(), bytes);
  drafter.observe(Tokens{1}, Origin::output);
  EXPECT_GT(drafter->memory_bytes(), 90'000U * 32);
}

TEST(PublishedTokenRecyclingMemory, IsNotAskedForInObserveWhereItWasReserved) {
  Lent drafter{Drafter({.vocabulary = 1000})};
  drafter.reserve(500);
  drafter.begin(Tokens{1, 2});
  const Tokens more(400, 999);
  const AllocationWatch watch;
  drafter.observe(more, Origin::output);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(PublishedTokenRecyclingMemory, MayRunOutAndThenItKnowsLessUntilTheNextSequence) {
  testing::expect_recovery_from_failures<Drafter>({.order = 1, .vocabulary = 40}, {Tokens(300, 4), Tokens{39}});
}

TEST(PublishedTokenRecyclingMemory, MayRunOutInACopy) {
  testing::expect_usable_copies<Drafter>({.order = 1, .vocabulary = 40});
}

}  // namespace
}  // namespace reprise::peers::published_token_recycling_drafter_allocation_test
