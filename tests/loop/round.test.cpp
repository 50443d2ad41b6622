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

static_assert(!CommittedToken().drafted);

struct WalkFixture : ::testing::Test {
  Limits limits;
  std::array<CommittedToken, 16> committed{};
  std::array<NodeIndex, 16> path{};
  std::vector<NodeIndex> parents;  // empty: a chain
  std::array<bool, 16> auxiliary{};
  std::size_t max_context = unlimited;
  std::vector<std::size_t> read;

  template <class Predicate = NeverStop>
  Walk run(const std::vector<Token>& draft, const std::vector<Token>& picks, std::size_t picks_size = unlimited,
           Predicate predicate = {}) {
    std::vector<Token> text(draft.size() + 1);
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
                 .context = 100,
                 .max_context = max_context,
                 .draft = draft,
                 .parents = parents,
                 .auxiliary = std::span(auxiliary).first(draft.size()),
                 .anchor_row = 3,
                 .picked_rows = picks_size},
                limits, Reading{picks, read}, predicate, {committed, path});
  }
};

// Every way to stop, to refuse and to accept is tried by property/small_world.test.cpp, small_trees.test.cpp and
// lossless.test.cpp. These are the rows that are read, and the ends that no session has.

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
TEST_F(WalkFixture, LetsAPredicateRefuseAToken) {
  const auto refuse = [](TokenSpan seen, Token) {
    return seen.empty() ? StopDecision::proceed : StopDecision::stop_before;
  };
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4}, unlimited, refuse);
  EXPECT_EQ(walked.finish, FinishReason::predicate);
  EXPECT_EQ(walked.committed, 1U);
  EXPECT_EQ(walked.accepted, 1U);
  EXPECT_EQ(walked.pick, 2);
}
TEST_F(WalkFixture, LetsAPredicateTakeTheLastToken) {
  const auto last = [](TokenSpan, Token next) { return next == 2 ? StopDecision::stop_after : StopDecision::proceed; };
  const Walk walked = run({1, 2, 3}, {1, 2, 3, 4}, unlimited, last);
  EXPECT_EQ(walked.finish, FinishReason::predicate);
  EXPECT_EQ(walked.committed, 2U);
}
TEST_F(WalkFixture, StopsWhereTheSpanOfPicksEnds) {
  const Walk walked = run({1, 2, 3}, {1, 2}, 2);
  EXPECT_EQ(walked.committed, 2U);
  EXPECT_FALSE(walked.pick.has_value());
}

TEST_F(WalkFixture, EndsWhereTheContextIsFullUnlessItHasEndedAtAToken) {
  max_context = 102;
  const Walk full = run({1, 2, 3}, {1, 2, 3, 4});
  EXPECT_EQ(full.finish, FinishReason::context_full);
  EXPECT_EQ(full.committed, 2U);
  limits.eos = {2};
  EXPECT_EQ(run({1, 2, 3}, {1, 2, 3, 4}).finish, FinishReason::eos);
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
TEST_F(TreeWalk, PassesOverAuxiliaryRows) {
  parents = {-1, -1};
  auxiliary[0] = true;
  const Walk walked = run({7, 7}, {7, 8, 9});
  EXPECT_EQ(walked.pick, 9);
  EXPECT_THAT(std::span(path).first(1), ElementsAre(1));
}
TEST_F(TreeWalk, StopsAtTheRowsThatHaveAPick) {
  const Walk walked = run(draft, {2, 0}, 2);
  EXPECT_EQ(walked.committed, 1U);
  EXPECT_EQ(walked.accepted, 1U);
  EXPECT_FALSE(walked.pick.has_value());
}

}  // namespace
}  // namespace reprise::round_test
