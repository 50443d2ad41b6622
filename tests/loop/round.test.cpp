// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;

std::vector<NodeIndex> chain_of(const std::vector<DraftNode>& nodes) {
  std::array<NodeIndex, 8> chain{};
  const std::size_t length = best_chain(DraftView(nodes, DraftKind::ordered), chain);
  return {chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(length)};
}
DraftNode node(Token token, NodeIndex parent) { return {.token = token, .parent = parent}; }

TEST(BestChain, FollowsTheFirstChildOfEachNode) {
  EXPECT_THAT(chain_of({node(1, -1), node(2, -1), node(3, 0), node(4, 1), node(5, 0), node(6, 2)}),
              ElementsAre(0, 2, 5));
}
TEST(BestChain, OfNothingIsNothing) { EXPECT_TRUE(chain_of({}).empty()); }
TEST(BestChain, NeverReachesNodesWithImpossibleParents) {
  constexpr auto most = std::numeric_limits<NodeIndex>::max();
  constexpr auto least = std::numeric_limits<NodeIndex>::min();
  EXPECT_TRUE(chain_of({node(1, 0), node(2, 1), node(3, 7), node(4, most), node(5, least), node(6, -2)}).empty());
}
TEST(BestChain, PassesOverAuxiliaryNodes) {
  std::vector<DraftNode> nodes = {node(1, -1), node(2, -1), node(3, 1)};
  nodes[0].auxiliary = true;
  EXPECT_THAT(chain_of(nodes), ElementsAre(1, 2));
}
TEST(BestChain, EndsWhereItsStorageDoes) {
  std::vector<DraftNode> nodes;
  for (NodeIndex i = 0; i < 20; ++i) nodes.push_back(node(i, i - 1));
  EXPECT_EQ(chain_of(nodes).size(), 8U);
}

TEST(Room, KeepsTheFirstOfTheBindingRules) {
  Room room(10);
  room.bound(12, Cut::rows);
  EXPECT_EQ(room.cut(), Cut::none);
  room.bound(5, Cut::depth);
  room.bound(5, Cut::context);
  EXPECT_EQ(room.nodes(), 5U);
  EXPECT_EQ(room.cut(), Cut::depth);
  room.bound(0, Cut::max_tokens);
  EXPECT_EQ(room.cut(), Cut::max_tokens);
}
TEST(Room, TakesTheWidestAllowedWidthThatFits) {
  const std::array<std::size_t, 3> widths = {2, 4, 8};
  Room room(5);
  room.bound_width(widths, 1);
  EXPECT_EQ(room.nodes(), 3U);
  EXPECT_EQ(room.cut(), Cut::width);
}
TEST(Room, NeverForbidsAPassWithoutADraft) {
  const std::array<std::size_t, 1> widths = {4};
  Room room(2);
  room.bound_width(widths, 1);
  EXPECT_EQ(room.nodes(), 0U);
  Room wide(5);
  wide.bound_width(widths, 9);
  EXPECT_EQ(wide.nodes(), 0U);
}

struct WalkFixture : ::testing::Test {
  Limits limits;
  std::vector<Token> output;
  std::array<CommittedToken, 16> committed{};
  std::vector<std::size_t> read;

  template <class Predicate = NeverStop>
  Walk run(const std::vector<Token>& draft, const std::vector<Token>& picks, Predicate predicate = {},
           std::size_t picks_size = unlimited) {
    std::vector<Token> both = output;
    both.insert(both.end(), draft.begin(), draft.end());
    struct Reading {
      const std::vector<Token>& picks;
      std::vector<std::size_t>& read;
      Token operator[](std::size_t i) const {
        read.push_back(i);
        return picks.at(i);
      }
    };
    return walk({both, output.size(), 100 + output.size(), unlimited, 3, picks_size}, limits, Reading{picks, read},
                predicate, std::span(committed));
  }
};

TEST_F(WalkFixture, TakesTheAgreedPathAndOneTokenMore) {
  const Walk walked = run({1, 2, 9}, {1, 2, 3, 4});
  EXPECT_EQ(walked.committed, 3U);
  EXPECT_EQ(walked.accepted, 2U);
  EXPECT_EQ(walked.pick, 3);
  EXPECT_EQ(walked.finish, FinishReason::none);
  EXPECT_EQ(committed[2].token, 3);
  EXPECT_EQ(committed[2].row, 5U);
  EXPECT_TRUE(committed[1].drafted);
  EXPECT_FALSE(committed[2].drafted);
  EXPECT_THAT(read, ElementsAre(0, 1, 2));
}
TEST_F(WalkFixture, TakesABonusTokenWhenAllIsAccepted) {
  const Walk walked = run({1, 2}, {1, 2, 3});
  EXPECT_EQ(walked.committed, 3U);
  EXPECT_EQ(walked.accepted, 2U);
}
TEST_F(WalkFixture, CommitsThePickAndNotTheDraft) {
  run({-5}, {std::numeric_limits<Token>::min(), 8});
  EXPECT_EQ(committed[0].token, std::numeric_limits<Token>::min());
  EXPECT_THAT(read, ElementsAre(0));
}
TEST_F(WalkFixture, EndsAtAnEosInsideTheBlockAndReadsNoFurther) {
  limits.eos = {2};
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4});
  EXPECT_EQ(walked.finish, FinishReason::eos);
  EXPECT_EQ(walked.committed, 2U);
  EXPECT_EQ(walked.accepted, 2U);
  EXPECT_EQ(walked.trim, 1U);
  EXPECT_FALSE(walked.pick.has_value());
  EXPECT_THAT(read, ElementsAre(0, 1));
}
TEST_F(WalkFixture, FindsAStopSequenceThatBeganInAnEarlierPass) {
  output = {4, 5};
  limits.stop_sequences = {{5, 6, 7}};
  const Walk walked = run({6, 7, 8}, {6, 7, 8, 9});
  EXPECT_EQ(walked.finish, FinishReason::stop_sequence);
  EXPECT_EQ(walked.committed, 2U);
  EXPECT_EQ(walked.trim, 3U);
}
TEST_F(WalkFixture, IgnoresAStopSequenceLongerThanTheOutput) {
  limits.stop_sequences = {{0, 0, 0, 0, 0, 1}, {}};
  EXPECT_EQ(run({1}, {1, 2}).finish, FinishReason::none);
}
TEST_F(WalkFixture, EndsAtMaxTokensInsideTheBlock) {
  limits.max_tokens = 2;
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4});
  EXPECT_EQ(walked.finish, FinishReason::max_tokens);
  EXPECT_EQ(walked.committed, 2U);
}
TEST_F(WalkFixture, LetsAPredicateRefuseAToken) {
  const auto predicate = [](TokenSpan seen, Token next) {
    return seen.size() == 1 && next == 2 ? StopDecision::stop_before : StopDecision::proceed;
  };
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4}, predicate);
  EXPECT_EQ(walked.finish, FinishReason::predicate);
  EXPECT_EQ(walked.committed, 1U);
  EXPECT_EQ(walked.accepted, 1U);
  EXPECT_EQ(walked.pick, 2);
}
TEST_F(WalkFixture, PrefersEosToThePredicateAndThePredicateToTheLimit) {
  limits.max_tokens = 1;
  const auto after = [](TokenSpan, Token) { return StopDecision::stop_after; };
  EXPECT_EQ(run({}, {7}, after).finish, FinishReason::predicate);
  limits.eos = {7};
  EXPECT_EQ(run({}, {7}, after).finish, FinishReason::eos);
}
TEST_F(WalkFixture, StopsWhereTheSpanOfPicksEnds) {
  const Walk walked = run({1, 2, 3}, {1, 2}, NeverStop(), 2);
  EXPECT_EQ(walked.committed, 2U);
  EXPECT_FALSE(walked.pick.has_value());
}

}  // namespace
}  // namespace reprise
