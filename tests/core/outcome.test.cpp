// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/outcome.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise {
namespace {

TEST(Cut, EveryReasonHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < cut_count; ++i) {
    const std::string_view text = name(static_cast<Cut>(i));
    EXPECT_FALSE(text.empty()) << "reason " << i;
    EXPECT_TRUE(names.insert(text).second) << text;
  }
}

TEST(Cut, IsNamedLikeTheEnumerator) {
  EXPECT_EQ(name(Cut::none), "none");
  EXPECT_EQ(name(Cut::no_match), "no_match");
  EXPECT_EQ(name(Cut::unlikely), "unlikely");
  EXPECT_EQ(name(Cut::gated), "gated");
  EXPECT_EQ(name(Cut::budget), "budget");
  EXPECT_EQ(name(Cut::shape), "shape");
  EXPECT_EQ(name(Cut::depth), "depth");
  EXPECT_EQ(name(Cut::rows), "rows");
  EXPECT_EQ(name(Cut::width), "width");
  EXPECT_EQ(name(Cut::rollback), "rollback");
  EXPECT_EQ(name(Cut::context), "context");
  EXPECT_EQ(name(Cut::max_tokens), "max_tokens");
  EXPECT_EQ(name(Cut::memory), "memory");
  EXPECT_EQ(name(Cut::constraint), "constraint");
  EXPECT_EQ(name(Cut::failed), "failed");
  EXPECT_EQ(cut_count, static_cast<std::size_t>(Cut::failed) + 1);
}

TEST(Outcome, SaysThatNothingHappenedByDefault) {
  const Outcome outcome;
  EXPECT_TRUE(outcome.draft.empty());
  EXPECT_TRUE(outcome.sent.empty());
  EXPECT_TRUE(outcome.accepted.empty());
  EXPECT_FALSE(outcome.pick.has_value());
  EXPECT_EQ(outcome.cut, Cut::none);
  EXPECT_TRUE(outcome.revealed.empty());
}

struct Tested : ::testing::Test {
  // 0 and 1 follow the anchor; 2 and 3 follow 0; 4 follows 1; 5 follows 2.
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

TEST(Candidate, IsTheFirstChoiceAfterTheAnchorByDefault) {
  const Candidate candidate;
  EXPECT_EQ(candidate.after, anchor_parent);
  EXPECT_EQ(candidate.rank, 0U);
}

}  // namespace
}  // namespace reprise
