// SPDX-License-Identifier: Apache-2.0
#include "reprise/extras/lookahead_drafter.hpp"

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
using Lent = testing::Lent<LookaheadDrafter>;

TEST(LookaheadDrafterMemory, IsNotAskedForInProposeAndFeedback) {
  const RankedText target{.order = 2};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  std::vector<DraftNode> storage(64);
  std::size_t drafted = 0;
  for (int i = 0; i < 100; ++i) {
    testing::run_round(drafter, target);
    Draft draft(storage, {});
    const AllocationWatch proposing;
    drafter.propose(draft);
    EXPECT_EQ(proposing.allocations(), 0U);
    drafted += draft.size();
  }
  EXPECT_GT(drafted, 1000U);
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
  const RankedText target{.order = 1, .vocabulary = 20};
  const Tokens prompt(300, 4);
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    Lent drafter;
    drafter.reserve(1000);  // no allocation but the drafter's own
    {
      const AllocationWatch watch(fail_at);
      drafter.begin(TokenSpan(prompt).first(20));
      drafter.observe(prompt, Origin::prompt);
      failed = watch.allocations() >= fail_at;
    }
    for (int i = 0; i < 30; ++i) testing::run_round(drafter, target);
    drafter.begin(prompt);
    std::size_t accepted = 0;
    for (int i = 0; i < 100; ++i) accepted += testing::run_round(drafter, target).accepted.size();
    EXPECT_GT(accepted, 100U) << "allocation " << fail_at << " failed";
  }
}

TEST(LookaheadDrafterMemory, MayRunOutInACopy) {
  const RankedText target{.order = 1, .vocabulary = 20};
  Lent drafter;
  drafter.begin(Tokens{1, 2, 3});
  for (int i = 0; i < 50; ++i) testing::run_round(drafter, target);
  testing::for_each_copy_without_memory(drafter.strategy(), [&](const LookaheadDrafter& made) {
    Lent copy(made);
    copy.observe(drafter.context());
    for (int i = 0; i < 20; ++i) testing::run_round(copy, target);
    copy.truncate(2);
    static_cast<void>(copy.propose({}, 8));
  });
}

}  // namespace
}  // namespace reprise
