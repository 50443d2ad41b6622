// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/open_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace reprise::open_round_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct OpenRoundTest : ::testing::Test {
  OpenRound round;
  const std::array<Token, 2> pending = {7, 8};

  void propose(const std::vector<DraftNode>& nodes, std::size_t leaves, std::size_t depth = 2) {
    ASSERT_TRUE(round.reserve(8, true, 1));
    Draft draft = round.blank({.max_leaves = leaves});
    for (const DraftNode& node : nodes) draft.push(node);
    round.propose(draft, leaves);
    round.select(depth);
  }
};
// The last node is deeper than the rounds of these tests allow.
const std::vector<DraftNode> tree = {{.token = 1}, {.token = 2}, {.token = 3, .parent = 0}, {.token = 4, .parent = 2}};
// The path of these nodes that a chain keeps.
const std::vector<DraftNode> path = {{.token = 1}, {.token = 3, .parent = 0}, {.token = 4, .parent = 1}};

TEST_F(OpenRoundTest, BuildsABatchOfPendingTokensDraftAndPadding) {
  propose(tree, 4);
  EXPECT_THAT(round.sendable(), ElementsAre(0, 1, 2));
  ASSERT_TRUE(round.build(pending, {2, 1, Cut::none}, -5));
  EXPECT_THAT(round.batch(), ElementsAre(7, 8, 1, 2, -5));
  EXPECT_THAT(round.parents(), ElementsAre(-1, -1, -1));
  EXPECT_THAT(round.depths(), ElementsAre(1, 1, 1));
  EXPECT_EQ(round.drafted(), 3U);
  EXPECT_EQ(round.padding(), 1U);
  EXPECT_EQ(round.pending(), 2U);
}
TEST_F(OpenRoundTest, PadsAChainByGoingOnWithIt) {
  propose(path, 1);
  EXPECT_THAT(round.sendable(), ElementsAre(0, 1));
  ASSERT_TRUE(round.build(pending, {2, 3, Cut::none}, -5));
  EXPECT_THAT(round.batch(), ElementsAre(7, 8, 1, 3, -5, -5, -5));
  EXPECT_THAT(round.parents(), ElementsAre(-1, 0, 1, 2, 3));
  EXPECT_THAT(round.depths(), ElementsAre(1, 2, 3, 4, 5));
  // The same draft, planned again without padding, then with padding only.
  round.select(2);
  ASSERT_TRUE(round.build(pending, {1, 0, Cut::none}, -5));
  EXPECT_THAT(round.batch(), ElementsAre(7, 8, 1));
  round.select(2);
  ASSERT_TRUE(round.build(pending, {0, 2, Cut::none}, -5));
  EXPECT_THAT(round.batch(), ElementsAre(7, 8, -5, -5));
  EXPECT_THAT(round.parents(), ElementsAre(-1, 0));
  EXPECT_THAT(round.depths(), ElementsAre(1, 2));
  const Outcome outcome = round.outcome({}, Cut::none);
  EXPECT_EQ(outcome.draft[3].parent, anchor_parent);
  EXPECT_EQ(outcome.draft[4].parent, 3);
}
TEST_F(OpenRoundTest, SendsASampledDraftAsAChain) {
  ASSERT_TRUE(round.reserve(8, false, 1));
  Draft draft = round.blank({});
  draft.clear(DraftKind::sampled);
  for (const DraftNode& node : path) draft.push(node);
  round.propose(draft, 4);
  round.select(2);
  EXPECT_TRUE(round.chain());
  EXPECT_THAT(round.sendable(), ElementsAre(0, 1));
}
TEST_F(OpenRoundTest, HasPadRowsForThePathsThatAreLeft) {
  propose(tree, 4);
  EXPECT_EQ(round.most_padding(0), 4U);
  EXPECT_EQ(round.most_padding(1), 3U);
  EXPECT_EQ(round.most_padding(2), 2U);
  EXPECT_EQ(round.most_padding(3), 2U) << "the third goes on with a path";
  propose(tree, 100);
  EXPECT_EQ(round.most_padding(3), 8U) << "as many as there may be nodes";
  OpenRound unpadded;
  ASSERT_TRUE(unpadded.reserve(8, false, 1));
  EXPECT_EQ(unpadded.most_padding(0), 0U);
}
TEST_F(OpenRoundTest, SendsNothingWhereThereCannotBeAsManyPadRows) {
  propose(tree, 4);
  const std::array<std::size_t, 2> widths = {2, 9};
  const PassLimits room{.plain = {1, 1, 10}, .nodes = 8, .widths = widths, .padded = true};
  const DraftChoice choice = round.clamp({.nodes = 3, .padding = 5}, {.nodes = 3}, room);
  EXPECT_EQ(choice.nodes, 0U) << "there are paths for two";
  EXPECT_EQ(choice.padding, 0U);
  EXPECT_EQ(round.clamp({.nodes = 1}, {.nodes = 3}, room).nodes, 1U);
  propose(tree, 2);
  const std::array<std::size_t, 1> four = {4};
  const PassLimits narrow{.plain = {1, 1, 10}, .nodes = 8, .widths = four, .padded = true};
  EXPECT_EQ(round.clamp({.nodes = 2, .padding = 1}, {.nodes = 3}, narrow).nodes, 0U) << "not even for one";
}
TEST_F(OpenRoundTest, KnowsAPathOfItsBatch) {
  propose(tree, 4);
  ASSERT_TRUE(round.build(pending, {3, 0, Cut::none}, 0));  // rows 1: anchor, 2: 1, 3: 2, 4: 3 after 1
  const auto holds = [&](std::vector<std::size_t> rows, std::vector<Token> tokens) {
    return round.holds(Accepted{rows, tokens});
  };
  EXPECT_TRUE(holds({1}, {99}));
  EXPECT_TRUE(holds({1, 2, 4}, {1, 3, 99}));
  EXPECT_TRUE(holds({1, 3}, {2, 99}));
  EXPECT_FALSE(holds({}, {}));
  EXPECT_FALSE(holds({0}, {8})) << "the row before the anchor";
  EXPECT_FALSE(holds({2}, {99}));
  EXPECT_FALSE(holds({1, 4}, {3, 99})) << "two steps at once";
  EXPECT_FALSE(holds({1, 3, 4}, {2, 3, 99})) << "from one path to another";
  EXPECT_FALSE(holds({1, 2}, {2, 99})) << "another token";
  EXPECT_FALSE(holds({1, 2, 2}, {1, 1, 99}));
  EXPECT_FALSE(holds({1, 0}, {7, 99})) << "back to a pending row";
  EXPECT_FALSE(holds({1, 5}, {3, 99}));
  EXPECT_FALSE(holds({1, unlimited}, {3, 99}));
  EXPECT_FALSE(holds({1, 2}, {1}));
}
TEST_F(OpenRoundTest, KeepsThePendingRowsAndThePath) {
  propose(tree, 4);
  ASSERT_TRUE(round.build(pending, {3, 0, Cut::none}, 0));
  const WalkOutput out = round.walk_output();
  out.committed[0] = {1, 1, true};
  out.committed[1] = {3, 2, true};
  out.committed[2] = {99, 4, false};
  out.path[0] = 0;
  out.path[1] = 2;
  Walk walked;
  EXPECT_THAT(round.decision(walked).rows, ElementsAre(0)) << "a refused pick gives the anchor back";
  walked.committed = 1;
  EXPECT_THAT(round.decision(walked).rows, ElementsAre(0, 1));
  walked.committed = 3;
  walked.accepted = 2;
  const Decision decision = round.decision(walked);
  EXPECT_THAT(decision.rows, ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(decision.keep, 4U);
  EXPECT_EQ(decision.tokens.size(), 3U);
  const Outcome outcome = round.outcome(walked, Cut::shape);
  EXPECT_THAT(outcome.sent, ElementsAre(0, 1, 2));
  EXPECT_THAT(outcome.accepted, ElementsAre(0, 2));
  EXPECT_EQ(outcome.draft.size(), 4U);
}
TEST_F(OpenRoundTest, NamesTheNodesOfTheAcceptedRows) {
  // The third node is too deep, so the later rows have other numbers than their nodes.
  propose({{.token = 1}, {.token = 2, .parent = 0}, {.token = 3, .parent = 1}, {.token = 4}, {.token = 5, .parent = 3}},
          4);
  ASSERT_TRUE(round.build(pending, {4, 0, Cut::none}, 0));
  round.walk_output().path[0] = 2;
  round.walk_output().path[1] = 3;
  Walk walked;
  walked.accepted = 2;
  const Outcome outcome = round.outcome(walked, Cut::none);
  EXPECT_THAT(outcome.sent, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(outcome.accepted, ElementsAre(3, 4));
}
TEST_F(OpenRoundTest, ShowsPadRowsAsNodesBehindTheDraft) {
  propose(path, 1);
  ASSERT_TRUE(round.build(pending, {1, 2, Cut::none}, -5));
  const Outcome outcome = round.outcome({}, Cut::none);
  ASSERT_EQ(outcome.draft.size(), 5U);
  EXPECT_THAT(outcome.sent, ElementsAre(0, 3, 4));
  EXPECT_EQ(outcome.draft[3].parent, 0);
  EXPECT_EQ(outcome.draft[4].parent, 3);
  EXPECT_EQ(outcome.draft[4].token, -5);
  EXPECT_EQ(outcome.draft[4].source, DraftSource::padding);
  EXPECT_EQ(outcome.draft[4].path_probability, Probability::zero());
  EXPECT_THAT(outcome.accepted, IsEmpty());
  round.select(2);
  ASSERT_TRUE(round.build(pending, {2, 2, Cut::none}, -5));
  EXPECT_EQ(round.outcome({}, Cut::none).draft[3].parent, 1);
}
TEST_F(OpenRoundTest, StoresTheLikeliestTokensOfItsRows) {
  propose(tree, 4);
  ASSERT_TRUE(round.build(pending, {2, 0, Cut::none}, 0));
  const std::vector<Token> tokens = {5, 6};
  round.report_top_k(0, tokens);
  round.report_top_k(2, tokens);
  round.report_top_k(3, tokens);  // after the last row
  const auto rows = round.outcome({}, Cut::none).top_k;
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i].after, i < 2 ? anchor_parent : 1);
    EXPECT_EQ(rows[i].rank, i % 2);
    EXPECT_EQ(rows[i].token, tokens[i % 2]);
  }
  ASSERT_TRUE(round.build(pending, {2, 0, Cut::none}, 0));
  round.report_top_k(1, std::vector<Token>(1025, 5));
  EXPECT_EQ(round.outcome({}, Cut::none).top_k.size(), 1024U) << "those of the earlier pass are gone";
}
TEST_F(OpenRoundTest, RefusesSizesThatNoMemoryHas) {
  EXPECT_FALSE(round.reserve(unlimited, true, 1));
  EXPECT_FALSE(round.reserve(unlimited / 2 + 1, true, 1));
  EXPECT_FALSE(round.reserve(1, true, unlimited));
}
TEST_F(OpenRoundTest, HasNeitherAFaultNorRoomBeforeItsFirstDraft) {
  EXPECT_FALSE(round.malformed());
  EXPECT_EQ(round.most_padding(0), 0U) << "there is no memory for pad rows";
}
TEST_F(OpenRoundTest, ReservesNoMoreThanItsLargestPassNeeds) {
  constexpr std::size_t per_row = sizeof(DraftNode) + 3 * sizeof(NodeIndex) + sizeof(std::uint32_t) + sizeof(bool) +
                                  sizeof(Token) + sizeof(std::size_t) + sizeof(CommittedToken);
  constexpr std::size_t per_pending = sizeof(Token) + sizeof(std::size_t);
  constexpr std::size_t bonus = sizeof(CommittedToken);
  ASSERT_TRUE(round.reserve(0, true, 3));
  EXPECT_EQ(round.memory_bytes(), 3 * per_pending + bonus);
  ASSERT_TRUE(round.reserve(8, false, 3));
  EXPECT_EQ(round.memory_bytes(), 8 * (per_row + sizeof(Constraint)) + 3 * per_pending + bonus);
  ASSERT_TRUE(round.reserve(8, true, 3));
  EXPECT_EQ(round.memory_bytes(), 16 * per_row + 8 * sizeof(Constraint) + 3 * per_pending + bonus);
}
TEST_F(OpenRoundTest, IsEmptyAfterClear) {
  propose(tree, 4);
  ASSERT_TRUE(round.build(pending, {3, 1, Cut::none}, 0));
  // 8 nodes and 8 pad rows, and one pending token.
  EXPECT_GE(round.memory_bytes(),
            16 * (sizeof(DraftNode) + 3 * sizeof(NodeIndex) + sizeof(std::uint32_t) + sizeof(bool)) +
                17 * (sizeof(Token) + sizeof(std::size_t)) + 17 * sizeof(CommittedToken) + 8 * sizeof(Constraint));
  round.clear();
  EXPECT_TRUE(round.draft().empty());
  EXPECT_EQ(round.drafted(), 0U);
  EXPECT_EQ(round.padding(), 0U);
}

}  // namespace
}  // namespace reprise::open_round_test
