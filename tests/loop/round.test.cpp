// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace reprise::round_test {
namespace {

using ::testing::ElementsAre;

struct WalkFixture : ::testing::Test {
  Limits limits;
  std::size_t max_context = unlimited;
  std::vector<Token> output;
  std::array<CommittedToken, 16> committed{};
  std::array<NodeIndex, 16> path{};
  std::vector<NodeIndex> parents;  // empty: a chain
  std::vector<std::size_t> read;

  template <class Predicate = NeverStop>
  Walk run(const std::vector<Token>& draft, const std::vector<Token>& picks, Predicate predicate = {},
           std::size_t picks_size = unlimited) {
    std::vector<Token> text = output;
    text.resize(output.size() + draft.size() + 1);
    for (std::size_t i = parents.size(); i < draft.size(); ++i) parents.push_back(static_cast<NodeIndex>(i) - 1);
    struct Reading {
      const std::vector<Token>& picks;
      std::vector<std::size_t>& read;
      Token operator[](std::size_t i) const {
        read.push_back(i);
        return picks.at(i);
      }
    };
    return walk({.text = text,
                 .output = output.size(),
                 .context = 100 + output.size(),
                 .max_context = max_context,
                 .draft = draft,
                 .parents = parents,
                 .anchor_row = 3,
                 .picked_rows = picks_size},
                limits, Reading{picks, read}, predicate, {committed, path});
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
TEST_F(WalkFixture, EndsWhereTheContextIsFull) {
  max_context = 102;
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4});
  EXPECT_EQ(walked.finish, FinishReason::context_full);
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

struct TreeWalk : WalkFixture {
  // The paths are 1 -> 3 -> 5, 1 -> 4 and 2 -> 6. Each row's token is its number, from 1 after the anchor.
  const std::vector<Token> draft = {1, 2, 3, 4, 5, 6};
  TreeWalk() { parents = {-1, -1, 0, 0, 2, 1}; }
};
TEST_F(TreeWalk, FollowsTheChildThatWasPicked) {
  //                               after: anchor, 1, 2, 3, 4, 5, 6
  const Walk walked = run(draft, {2, 0, 6, 0, 0, 0, 9});
  EXPECT_EQ(walked.committed, 3U);
  EXPECT_EQ(walked.accepted, 2U);
  EXPECT_EQ(walked.pick, 9);
  EXPECT_THAT(read, ElementsAre(0, 2, 6));
  EXPECT_THAT(std::span(path).first(2), ElementsAre(1, 5));
  EXPECT_EQ(committed[0].row, 3U);
  EXPECT_EQ(committed[1].row, 5U);
  EXPECT_EQ(committed[2].row, 9U);
  EXPECT_TRUE(committed[1].drafted);
  EXPECT_FALSE(committed[2].drafted);
}
TEST_F(TreeWalk, ShowsThePredicateTheAcceptedPathInOnePiece) {
  output = {7, 8};
  std::vector<std::vector<Token>> seen;
  const auto predicate = [&](TokenSpan before, Token) {
    seen.emplace_back(before.begin(), before.end());
    return StopDecision::proceed;
  };
  run(draft, {2, 0, 6, 0, 0, 0, 9}, predicate);
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_THAT(seen[2], ElementsAre(7, 8, 2, 6));
}
TEST_F(TreeWalk, TakesTheFirstOfTwoThatAreTheSame) {
  parents = {-1, -1, 0, 1};
  const Walk walked = run({4, 4, 5, 6}, {4, 5, 6, 9, 9});
  EXPECT_THAT(read, ElementsAre(0, 1, 3));
  EXPECT_EQ(walked.accepted, 2U);
}
TEST_F(TreeWalk, StopsAtTheRowsThatHaveAPick) {
  const Walk walked = run(draft, {2, 0}, NeverStop(), 2);
  EXPECT_EQ(walked.committed, 1U);
  EXPECT_EQ(walked.accepted, 1U);
  EXPECT_FALSE(walked.pick.has_value());
}

TEST(WalkOfATree, PassesOverAuxiliaryRows) {
  const std::vector<Token> draft = {5, 5, 6};
  const std::vector<NodeIndex> parents = {-1, -1, 1};
  const std::array<bool, 3> marks = {true, false, false};
  std::array<Token, 8> text{};
  std::array<CommittedToken, 4> committed;
  std::array<NodeIndex, 3> path{};
  Walk::Input in{.text = text, .context = 1, .draft = draft, .parents = parents, .auxiliary = marks};
  const std::vector<Token> picks = {5, 9, 6, 7};
  const Limits limits;
  Walk walked = walk(in, limits, picks, NeverStop(), {committed, path});
  EXPECT_EQ(walked.accepted, 2U);
  EXPECT_EQ(path[0], 1);
  EXPECT_EQ(committed[2].token, 7);
  const std::array<bool, 3> all = {true, true, true};
  in.auxiliary = all;
  walked = walk(in, limits, picks, NeverStop(), {committed, path});
  EXPECT_EQ(walked.accepted, 0U);
  EXPECT_EQ(walked.committed, 1U);
}

}  // namespace
}  // namespace reprise::round_test
