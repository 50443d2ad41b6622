// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/pass_limits.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reprise::pass_limits_test {
namespace {

/// A round with a chain of ten nodes, after a context of `prompt` tokens.
struct LimitDraft : ::testing::Test {
  Sequence sequence;
  OpenRound round;
  Limits limits;

  void begin(const Capabilities& can, std::size_t nodes = 10) {
    ASSERT_TRUE(sequence.begin(std::vector<Token>{1, 2}, can, {}));
    ASSERT_TRUE(round.reserve(16, false, 1));
    Draft draft = round.blank({});
    for (std::size_t i = 0; i < nodes; ++i) ASSERT_TRUE(draft.extend({.token = static_cast<Token>(i)}));
    round.propose(draft, 1);
  }
  DraftLimit limit(std::size_t max_nodes = unlimited) {
    return limit_draft(sequence, limits, max_nodes, Cut::budget, round);
  }
};

TEST_F(LimitDraft, IsTheWholeDraftWhereNothingBinds) {
  begin({});
  EXPECT_EQ(limit().nodes, 10U);
  EXPECT_EQ(limit().cut, Cut::none);
  begin({.max_rows = 13});
  EXPECT_EQ(limit().nodes, 10U);
  EXPECT_EQ(limit().rows, 12U) << "the anchor takes one";
  EXPECT_EQ(limit().cut, Cut::none);
}
TEST_F(LimitDraft, KeepsTheFirstOfTheBindingRules) {
  begin({.max_rows = 6, .max_context = 8, .max_depth = 5});
  EXPECT_EQ(limit().nodes, 5U);
  EXPECT_EQ(limit().cut, Cut::depth) << "rows and context allow as few, but come later";
  EXPECT_EQ(limit(5).cut, Cut::budget) << "the caller's number comes before";
  limits.max_tokens = 1;
  EXPECT_EQ(limit().nodes, 0U);
  EXPECT_EQ(limit().cut, Cut::max_tokens) << "stricter than the others";
}
TEST_F(LimitDraft, KnowsTheRowsThatTheDraftDoesNotFill) {
  begin({.max_rows = 8}, 3);
  EXPECT_EQ(limit().nodes, 3U);
  EXPECT_EQ(limit().rows, 7U);
  EXPECT_EQ(limit(2).nodes, 2U);
  EXPECT_EQ(limit(2).rows, 2U);
  EXPECT_EQ(limit(2).cut, Cut::budget);
}
TEST_F(LimitDraft, SaysThatTheStrategyPushedAMalformedNode) {
  begin({});
  Draft draft = round.blank({});
  EXPECT_TRUE(draft.extend({.token = 1}));
  EXPECT_FALSE(draft.push({.token = 2, .parent = 7}));
  round.propose(draft, 1);
  EXPECT_EQ(limit().nodes, 1U);
  EXPECT_EQ(limit().cut, Cut::shape);
  EXPECT_EQ(limit(0).cut, Cut::budget) << "a rule that leaves fewer is the one that counts";
}
TEST_F(LimitDraft, CutsTheRowsOfATreeOnlyWhereNoneMayBeDrafted) {
  begin({.max_rows = 8});
  Draft draft = round.blank({.max_leaves = 4});
  EXPECT_TRUE(draft.push({.token = 1}));
  EXPECT_TRUE(draft.push({.token = 2}));
  round.propose(draft, 4);
  limits.draft.max_depth = 2;
  EXPECT_EQ(limit().rows, 7U) << "pad rows follow the anchor";
  limits.max_tokens = 1;
  EXPECT_EQ(limit().rows, 0U);
}
TEST_F(LimitDraft, LetsALongPendingPartSettleBeforeItRidesAgain) {
  begin({.rollback = Rollback::snapshot, .max_replay = 0});
  EXPECT_EQ(limit().nodes, 0U);
  EXPECT_EQ(limit().cut, Cut::rollback);
}

TEST(Pads, NeedATokenAndWidths) {
  Capabilities can;
  EXPECT_FALSE(pads(can));
  can.pad_token = 0;
  EXPECT_FALSE(pads(can));
  can.allowed_widths = {1, 4};
  EXPECT_TRUE(pads(can));
  can.pad_token.reset();
  EXPECT_FALSE(pads(can));
}
TEST(MaxLeaves, AreThoseThatCallerEngineAndShapeAllow) {
  Limits limits;
  limits.draft.max_leaves = 4;
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 4U);
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 3}, DraftShape::tree), 3U);
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::chain), 1U);
  limits.draft.shape = DraftShape::chain;
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 1U);
  limits.draft = {.max_leaves = 0};
  EXPECT_EQ(max_leaves(limits, {.max_leaves = 8}, DraftShape::tree), 1U);
}

}  // namespace
}  // namespace reprise::pass_limits_test
