// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace reprise::outcome_test {
namespace {

TEST(Cut, IsNamedLikeTheEnumerator) {
  EXPECT_EQ(to_string(Cut::none), "none");
  EXPECT_EQ(to_string(Cut::no_match), "no_match");
  EXPECT_EQ(to_string(Cut::unlikely), "unlikely");
  EXPECT_EQ(to_string(Cut::throttled), "throttled");
  EXPECT_EQ(to_string(Cut::budget), "budget");
  EXPECT_EQ(to_string(Cut::shape), "shape");
  EXPECT_EQ(to_string(Cut::depth), "depth");
  EXPECT_EQ(to_string(Cut::rows), "rows");
  EXPECT_EQ(to_string(Cut::width), "width");
  EXPECT_EQ(to_string(Cut::rollback), "rollback");
  EXPECT_EQ(to_string(Cut::context), "context");
  EXPECT_EQ(to_string(Cut::max_tokens), "max_tokens");
  EXPECT_EQ(to_string(Cut::out_of_memory), "out_of_memory");
  EXPECT_EQ(to_string(Cut::constraint), "constraint");
  EXPECT_EQ(to_string(Cut::strategy_threw), "strategy_threw");
  EXPECT_EQ(cut_count, static_cast<std::size_t>(Cut::strategy_threw) + 1);
}

TEST(Outcome, SaysThatNothingHappenedByDefault) {
  const Outcome outcome;
  EXPECT_TRUE(outcome.draft.empty());
  EXPECT_TRUE(outcome.sent.empty());
  EXPECT_TRUE(outcome.accepted.empty());
  EXPECT_FALSE(outcome.pick.has_value());
  EXPECT_EQ(outcome.cut, Cut::none);
  EXPECT_TRUE(outcome.top_k.empty());
}

struct Tested : ::testing::Test {
  // Nodes 0 and 1 follow the anchor; 2 and 3 follow 0; 4 follows 1; 5 follows 2.
  std::vector<DraftNode> nodes = {
      {.token = 10},
      {.token = 11},
      {.token = 12, .parent = 0},
      {.token = 13, .parent = 0},
      {.token = 14, .parent = 1},
      {.token = 15, .parent = 2},
  };
  std::vector<std::pair<std::size_t, bool>> seen(const std::vector<NodeIndex>& accepted, std::optional<Token> pick) {
    std::vector<std::pair<std::size_t, bool>> visits;
    const Outcome outcome{DraftView(nodes, DraftKind::ordered), {}, accepted, pick, Cut::none, {}};
    for_each_tested(outcome, [&](std::size_t i, bool hit) { visits.emplace_back(i, hit); });
    return visits;
  }
};
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
TEST_F(Tested, AreTheChildrenOfTheAnchorWhenNothingIsAccepted) {
  EXPECT_THAT(seen({}, 99), ElementsAre(Pair(0, false), Pair(1, false)));
  EXPECT_THAT(seen({}, 11), ElementsAre(Pair(0, false), Pair(1, true))) << "not sent, but right";
}
TEST_F(Tested, AreTheChildrenOfEveryAcceptedNodeInDraftOrder) {
  EXPECT_THAT(seen({0, 2}, 99),
              ElementsAre(Pair(0, true), Pair(1, false), Pair(2, true), Pair(3, false), Pair(5, false)));
  EXPECT_THAT(seen({1}, 14), ElementsAre(Pair(0, false), Pair(1, true), Pair(4, true)));
}
TEST_F(Tested, AreNotTheChildrenOfTheLastNodeWhenItsPickWasNeverRead) {
  EXPECT_THAT(seen({0}, {}), ElementsAre(Pair(0, true), Pair(1, false)));
  EXPECT_THAT(seen({}, {}), IsEmpty());
}
TEST_F(Tested, AreNeitherAuxiliaryNorPaddingNorFollowersOfNothing) {
  nodes[0].auxiliary = true;
  nodes[1].source = DraftSource::padding;
  nodes[2].parent = 77;
  nodes[3].parent = -2;
  EXPECT_THAT(seen({}, 10), IsEmpty());
}
TEST_F(Tested, CountATokenThatWasProposedTwiceTwice) {
  nodes[1].token = 10;
  EXPECT_THAT(seen({0}, {}), ElementsAre(Pair(0, true), Pair(1, true)));
}

TEST(OutcomeRankedToken, IsTheFirstChoiceAfterTheAnchorByDefault) {
  const Outcome::RankedToken candidate;
  EXPECT_EQ(candidate.token, 0);
  EXPECT_EQ(candidate.after, anchor_parent);
  EXPECT_EQ(candidate.rank, 0U);
}

}  // namespace
}  // namespace reprise::outcome_test
