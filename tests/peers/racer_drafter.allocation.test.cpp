// SPDX-License-Identifier: Apache-2.0
#include "peers/racer_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/allocation_counter.hpp"
#include "support/ranked_memory.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::peers::racer_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::RankedText;
using Tokens = std::vector<Token>;
using Lent = testing::Lent<RacerDrafter>;

TEST(RacerDrafterMemory, IsNotAskedForInProposeAndFeedback) {
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_GT(testing::propose_without_allocating(drafter, {.order = 2, .vocabulary = 500}), 200U);
  // Tokens without a row in the matrix so far.
  const DraftNode node{.token = 70'000};
  const NodeIndex sent = 0;
  const Outcome::RankedToken revealed[] = {{anchor_parent, 0, 90'000}, {0, 0, 80'000}};
  const AllocationWatch watch;
  drafter.feedback({DraftView({&node, 1}, DraftKind::ordered), {&sent, 1}, {}, 1, Cut::none, revealed});
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(RacerDrafterMemory, IsNotAskedForInObserveWhereItWasReserved) {
  Lent drafter{RacerDrafter::make({.trie_nodes = 100, .keep = false, .vocabulary = 1000}).value()};
  drafter.reserve(500);
  drafter.begin(Tokens{1, 2});
  const Tokens more(400, 999);
  const AllocationWatch watch;
  drafter.observe(more, Origin::output);
  drafter.truncate(100);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(RacerDrafterMemory, MayRunOutAndThenItKnowsLessUntilTheNextSequence) {
  testing::expect_recovery_from_failures<RacerDrafter>({.order = 1, .vocabulary = 40}, {Tokens(300, 4), Tokens{39}});
}

TEST(RacerDrafterMemory, MayRunOutInACopy) {
  testing::expect_usable_copies<RacerDrafter>({.order = 1, .vocabulary = 40});
}

}  // namespace
}  // namespace reprise::peers::racer_drafter_allocation_test
