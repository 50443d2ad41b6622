// SPDX-License-Identifier: Apache-2.0
// The rules that limit the pass of a round.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "reprise/loop/detail/open_round.hpp"

namespace reprise::open_round_limits_test {
namespace {

using detail::OpenRound;
using detail::Sequence;

/// A round with a chain of ten nodes, after a context of two tokens.
struct OpenRoundLimits : ::testing::Test {
  Capabilities can;
  Limits limits;
  std::size_t leaves = 1;
  std::function<void(Draft&)> write;

  void begin(const Capabilities& capabilities, std::size_t nodes = 10) {
    can = capabilities;
    write = [nodes](Draft& draft) {
      for (std::size_t i = 0; i < nodes; ++i) ASSERT_TRUE(draft.extend({.token = static_cast<Token>(i)}));
    };
  }
  struct Limit {
    std::size_t nodes;  // of this draft
    std::size_t rows;   // of any draft
    Cut cut;
  };
  /// Plans and commits a pass with as many nodes as a new round allows.
  Limit limit(std::size_t max_nodes = unlimited) {
    Sequence sequence;
    OpenRound round;
    EXPECT_TRUE(sequence.begin(std::vector<Token>{1, 2}, can, {}));
    EXPECT_TRUE(round.reserve(16, can, 1));
    round.open(limits);
    Draft draft = round.blank({.max_leaves = leaves});
    write(draft);
    round.propose(draft, leaves, false);
    const auto room = round.fit(sequence, max_nodes, Cut::budget);
    EXPECT_TRUE(room && round.plan(sequence, {.nodes = unlimited}, *room, true));
    const Pass pass = round.pass(sequence);
    EXPECT_TRUE(round.resolve(sequence, pass.ticket, std::vector<Token>{-1}, NeverStop{}));
    return {pass.drafted, room->nodes, round.commit(sequence, {}).cut};
  }
};

TEST_F(OpenRoundLimits, KeepsTheFirstOfTheBindingRules) {
  begin({.max_rows = 6, .max_context = 8, .max_depth = 5});
  EXPECT_EQ(limit().nodes, 5U);
  EXPECT_EQ(limit().cut, Cut::depth) << "rows and context allow as few, but come later";
  EXPECT_EQ(limit(5).cut, Cut::budget) << "the caller's number comes before";
  limits.max_tokens = 1;
  EXPECT_EQ(limit().nodes, 0U);
  EXPECT_EQ(limit().cut, Cut::max_tokens) << "stricter than the others";
}
TEST_F(OpenRoundLimits, KnowsTheRowsThatTheDraftDoesNotFill) {
  begin({.max_rows = 8}, 3);
  EXPECT_EQ(limit().nodes, 3U);
  EXPECT_EQ(limit().rows, 7U);
  EXPECT_EQ(limit(2).nodes, 2U);
  EXPECT_EQ(limit(2).rows, 2U);
  EXPECT_EQ(limit(2).cut, Cut::budget);
}
TEST_F(OpenRoundLimits, SaysThatTheStrategyPushedAMalformedNode) {
  begin({});
  write = [](Draft& draft) {
    EXPECT_TRUE(draft.extend({.token = 1}));
    EXPECT_FALSE(draft.push({.token = 2, .parent = 7}));
  };
  EXPECT_EQ(limit().nodes, 1U);
  EXPECT_EQ(limit().cut, Cut::shape);
  EXPECT_EQ(limit(0).cut, Cut::budget) << "a rule that leaves fewer is the one that counts";
}
TEST_F(OpenRoundLimits, CutsTheRowsOfATreeOnlyWhereNoneMayBeDrafted) {
  begin({.max_rows = 8});
  write = [](Draft& draft) {
    EXPECT_TRUE(draft.push({.token = 1}));
    EXPECT_TRUE(draft.push({.token = 2}));
  };
  leaves = 4;
  limits.draft.max_depth = 2;
  EXPECT_EQ(limit().rows, 7U) << "pad rows follow the anchor";
  limits.max_tokens = 1;
  EXPECT_EQ(limit().rows, 0U);
}

}  // namespace
}  // namespace reprise::open_round_limits_test
