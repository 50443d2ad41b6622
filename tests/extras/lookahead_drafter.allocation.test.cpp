// SPDX-License-Identifier: Apache-2.0
#include "reprise/extras/lookahead_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "support/allocation_counter.hpp"
#include "support/ranked_memory.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::lookahead_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::RankedText;
using Tokens = std::vector<Token>;
using Lent = testing::Lent<LookaheadDrafter>;

TEST(LookaheadDrafterMemory, IsNotAskedForInProposeAndFeedback) {
  const RankedText target{.order = 2};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  EXPECT_GT(testing::propose_without_allocating(drafter, target), 1000U);
  std::vector<DraftNode> storage(64);
  Draft draft(storage, {});
  drafter.propose(draft);
  std::vector<NodeIndex> all;
  for (std::size_t i = 0; i < draft.size(); ++i) all.push_back(static_cast<NodeIndex>(i));
  const auto revealed = testing::revealed_by(target, drafter.context(), draft.view(), all, 1);
  const AllocationWatch watch;
  drafter.feedback({draft.view(), all, {}, 1, Cut::none, revealed});
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(LookaheadDrafterMemory, MayRunOutAndThenItDraftsLessUntilTheNextSequence) {
  testing::expect_recovery_from_failures<LookaheadDrafter>({.order = 1, .vocabulary = 20}, {Tokens(300, 4)});
}

TEST(LookaheadDrafterMemory, MayRunOutInACopy) {
  testing::expect_usable_copies<LookaheadDrafter>({.order = 1, .vocabulary = 20});
}

}  // namespace
}  // namespace reprise::lookahead_drafter_allocation_test
