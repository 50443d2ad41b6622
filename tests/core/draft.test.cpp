// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/draft.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <type_traits>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace reprise::draft_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<Token> tokens_of(DraftView view) {
  std::vector<Token> tokens;
  for (const DraftNode& node : view) tokens.push_back(node.token);
  return tokens;
}

// A strategy must not be able to replace the session's draft by one over other memory.
static_assert(!std::is_copy_assignable_v<Draft> && !std::is_move_assignable_v<Draft>);

TEST(Draft, StartsEmpty) {
  std::array<DraftNode, 4> storage;
  const Draft draft(storage, {});
  EXPECT_TRUE(draft.empty());
  EXPECT_EQ(draft.budget().max_nodes, 4U) << "no more than the storage holds";
  EXPECT_TRUE(draft.view().empty());
}

TEST(Draft, SaysWhyItIsEmptyUntilItIsCleared) {
  Draft draft({}, {});
  EXPECT_FALSE(draft.left_out() || draft.held_back());
  draft.leave_out();
  EXPECT_TRUE(draft.left_out());
  EXPECT_FALSE(draft.held_back());
  draft.hold_back();
  EXPECT_TRUE(draft.held_back());
  draft.clear();
  EXPECT_FALSE(draft.left_out() || draft.held_back());
}

// draft_push.test.cpp compares the rules of push() with a naive reference.

TEST(Draft, OfOnePathAtMostIsAChain) {
  std::array<DraftNode, 3> storage;
  EXPECT_TRUE(Draft(storage, {.max_leaves = 1}).chain());
  EXPECT_EQ(Draft(storage, {.max_leaves = 1}).budget().shape, DraftShape::chain);
  EXPECT_EQ(Draft(storage, {.max_leaves = 7, .shape = DraftShape::chain}).budget().max_leaves, 1U);
  EXPECT_FALSE(Draft(storage, {.max_leaves = 2}).chain());
}

TEST(Draft, RefusesImpossibleParents) {
  std::array<DraftNode, 3> storage;
  for (const NodeIndex parent : {std::numeric_limits<NodeIndex>::max(), std::numeric_limits<NodeIndex>::min()}) {
    Draft draft(storage, {});
    EXPECT_FALSE(draft.push({.token = 1, .parent = parent}));
    EXPECT_TRUE(draft.malformed());
  }
}

TEST(DraftView, PrefixIsTheFirstNodesOfTheSameKind) {
  EXPECT_TRUE(DraftView().empty());
  EXPECT_THAT(tokens_of(DraftView().prefix(3)), IsEmpty());
  std::array<DraftNode, 3> storage = {DraftNode{.token = 1}, DraftNode{.token = 2}, DraftNode{.token = 3}};
  const DraftView view(storage, DraftKind::sampled);
  EXPECT_THAT(tokens_of(view.prefix(2)), ElementsAre(1, 2));
  EXPECT_THAT(tokens_of(view.prefix(0)), IsEmpty());
  EXPECT_THAT(tokens_of(view.prefix(unlimited)), ElementsAre(1, 2, 3));
  EXPECT_EQ(view.prefix(2).kind(), DraftKind::sampled);
}

TEST(DraftNode, IsACertainChildOfTheAnchorByDefault) {
  const DraftNode node;
  EXPECT_EQ(node.parent, anchor_parent);
  EXPECT_EQ(node.path_probability, Probability::one());
  EXPECT_EQ(node.match_length, 0U);
  EXPECT_EQ(node.source, DraftSource::unknown);
  EXPECT_FALSE(node.auxiliary);
}

TEST(DraftBudget, IsThirtyTwoNodesInAnyShapeByDefault) {
  const DraftBudget budget;
  EXPECT_EQ(budget.max_nodes, 32U);
  EXPECT_EQ(budget.max_depth, unlimited);
  EXPECT_EQ(budget.max_leaves, unlimited);
  EXPECT_EQ(budget.shape, DraftShape::tree);
  EXPECT_EQ(budget.min_path_probability, Probability::zero());
}

TEST(DraftSource, CountIsOneMoreThanTheLastSource) {
  EXPECT_EQ(draft_source_count, static_cast<std::size_t>(DraftSource::padding) + 1);
}

TEST(ConditionalProbability, IsThatOfTheNodeOverThatOfItsParent) {
  const auto part = [](std::uint32_t of) { return Probability::ratio(1, of); };
  const std::array<DraftNode, 6> nodes = {{{.token = 1, .path_probability = part(2)},
                                           {.token = 2, .parent = 0, .path_probability = part(8)},
                                           {.token = 3, .parent = 0, .path_probability = part(2)},
                                           {.token = 4, .parent = 1, .path_probability = part(4)},
                                           {.token = 5, .path_probability = Probability::zero()},
                                           {.token = 6, .parent = 4, .path_probability = Probability::zero()}}};
  const DraftView draft(nodes, DraftKind::ordered);
  EXPECT_EQ(conditional_probability(draft, 0), part(2));
  EXPECT_EQ(conditional_probability(draft, 1), part(4));
  EXPECT_EQ(conditional_probability(draft, 2), Probability::one());
  EXPECT_EQ(conditional_probability(draft, 3), Probability::one()) << "more probable than its parent";
  EXPECT_EQ(conditional_probability(draft, 4), Probability::zero());
  EXPECT_EQ(conditional_probability(draft, 5), Probability::one()) << "of nothing, all";
}

}  // namespace
}  // namespace reprise::draft_test
