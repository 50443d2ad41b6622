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

using ::testing::Each;
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

TEST(Draft, RefusesNodesWhenFullAndKeepsWhatItHas) {
  std::array<DraftNode, 2> storage;
  Draft draft(storage, {});
  EXPECT_TRUE(draft.push({.token = 1}));
  EXPECT_TRUE(draft.push({.token = 2}));
  EXPECT_FALSE(draft.push({.token = 3}));
  EXPECT_FALSE(draft.extend({.token = 4}));
  EXPECT_THAT(tokens_of(draft.view()), ElementsAre(1, 2));
}

TEST(Draft, RemembersThatANodeOfAnotherDraftWasMalformed) {
  Draft draft({}, {});
  EXPECT_FALSE(draft.malformed());
  draft.mark_malformed();
  EXPECT_TRUE(draft.malformed());
}
TEST(Draft, WithoutStorageHoldsNothing) {
  Draft draft({}, {});
  EXPECT_FALSE(draft.push({.token = 1}));
  EXPECT_TRUE(draft.empty());
}

TEST(Draft, ExtendMakesAChainFromTheAnchorOn) {
  std::array<DraftNode, 3> storage;
  Draft draft(storage, {});
  for (const Token token : {5, 6, 7}) EXPECT_TRUE(draft.extend({.token = token, .parent = 99}));
  EXPECT_EQ(draft[0].parent, anchor_parent);
  EXPECT_EQ(draft[1].parent, 0);
  EXPECT_EQ(draft[2].parent, 1);
}

TEST(Draft, PushKeepsTheParentThatItIsGiven) {
  std::array<DraftNode, 3> storage;
  Draft draft(storage, {});
  EXPECT_TRUE(draft.push({.token = 5}));
  EXPECT_TRUE(draft.push({.token = 6}));
  EXPECT_TRUE(draft.push({.token = 7, .parent = 0}));
  EXPECT_EQ(draft[1].parent, anchor_parent);
  EXPECT_EQ(draft[2].parent, 0);
}

TEST(Draft, ClearEmptiesItAndSetsTheKind) {
  std::array<DraftNode, 3> storage;
  Draft draft(storage, {});
  EXPECT_TRUE(draft.push({.token = 5}));
  EXPECT_EQ(draft.view().kind(), DraftKind::ordered);
  draft.clear(DraftKind::sampled);
  EXPECT_TRUE(draft.empty());
  EXPECT_EQ(draft.view().kind(), DraftKind::sampled);
  draft.clear();
  EXPECT_EQ(draft.view().kind(), DraftKind::ordered);
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

TEST(Draft, TruncateKeepsTheFirstNodesAndNeverGrows) {
  std::array<DraftNode, 3> storage;
  Draft draft(storage, {});
  for (const Token token : {5, 6, 7}) EXPECT_TRUE(draft.extend({.token = token}));
  draft.truncate(9);
  EXPECT_EQ(draft.size(), 3U);
  draft.truncate(1);
  EXPECT_THAT(tokens_of(draft.view()), ElementsAre(5));
  EXPECT_TRUE(draft.extend({.token = 8}));
  EXPECT_EQ(draft[1].parent, 0);
}

// ------------------------------------------------------------------------------------- the rules that push() enforces

DraftNode node(Token token, NodeIndex parent) { return {.token = token, .parent = parent}; }
DraftNode likely(Token token, std::uint32_t percent, NodeIndex parent = anchor_parent) {
  return {.token = token, .parent = parent, .path_probability = Probability::ratio(percent, 100)};
}
DraftNode auxiliary(Token token, NodeIndex parent) { return {.token = token, .parent = parent, .auxiliary = true}; }

/// A draft after these pushes, and the result of each push.
struct Pushed {
  std::array<DraftNode, 24> storage;
  Draft draft;
  std::vector<bool> taken;

  explicit Pushed(const std::vector<DraftNode>& nodes, const DraftBudget& budget = {},
                  DraftKind kind = DraftKind::ordered)
      : draft(storage, budget) {
    draft.clear(kind);
    for (const DraftNode& node : nodes) taken.push_back(draft.push(node));
  }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;
  ~Pushed() = default;
  [[nodiscard]] std::vector<Token> tokens() const { return tokens_of(draft.view()); }
};
constexpr DraftBudget chain = {.shape = DraftShape::chain};

TEST(DraftPushChain, FollowsTheFirstChildOfEachNode) {
  const Pushed pushed({node(1, -1), node(2, -1), node(3, 0), node(5, 0), node(6, 1)}, chain);
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(pushed.tokens(), ElementsAre(1, 3, 6));
  EXPECT_FALSE(pushed.draft.malformed()) << "a path too many is no malformed node";
}
TEST(DraftPushChain, IsALeafAtMostWhateverTheBudgetSaysOfLeaves) {
  EXPECT_TRUE(Pushed({node(1, -1)}, {.max_leaves = 0}).draft.empty());
  EXPECT_TRUE(Pushed({node(1, -1)}, {.max_leaves = 0, .shape = DraftShape::chain}).draft.empty());
  EXPECT_TRUE(Pushed({}, {.max_leaves = 1}).draft.chain());
  EXPECT_EQ(Pushed({}, {.max_leaves = 1}).draft.budget().shape, DraftShape::chain);
  EXPECT_EQ(Pushed({}, {.max_leaves = 7, .shape = DraftShape::chain}).draft.budget().max_leaves, 1U);
  EXPECT_FALSE(Pushed({}, {.max_leaves = 2}).draft.chain());
}
TEST(DraftPushChain, NeverReachesNodesWithImpossibleParents) {
  constexpr auto most = std::numeric_limits<NodeIndex>::max();
  constexpr auto least = std::numeric_limits<NodeIndex>::min();
  for (const DraftBudget& budget : {chain, DraftBudget{}}) {
    const Pushed pushed({node(1, 0), node(2, 1), node(3, 7), node(4, most), node(5, least), node(6, -2)}, budget);
    EXPECT_TRUE(pushed.draft.empty());
    EXPECT_TRUE(pushed.draft.malformed());
  }
}
TEST(DraftPushChain, PassesOverAuxiliaryNodes) {
  const Pushed pushed({auxiliary(1, -1), node(2, -1), node(3, 0)}, chain);
  EXPECT_THAT(pushed.tokens(), ElementsAre(2, 3));
}
TEST(DraftPushChain, EndsWhereItsStorageOrItsBudgetDoes) {
  std::vector<DraftNode> nodes;
  for (NodeIndex i = 0; i < 30; ++i) nodes.push_back(node(i, i - 1));
  EXPECT_EQ(Pushed(nodes, {.max_nodes = 100, .shape = DraftShape::chain}).draft.size(), 24U);
  const Pushed eight(nodes, {.max_nodes = 8, .shape = DraftShape::chain});
  EXPECT_EQ(eight.draft.size(), 8U);
  EXPECT_TRUE(eight.draft.full());
  EXPECT_FALSE(eight.draft.malformed());
}
TEST(DraftPushChain, EndsAtTheDepthOfItsBudget) {
  const Pushed pushed({node(1, -1), node(2, 0), node(3, 1)}, {.max_depth = 2, .shape = DraftShape::chain});
  EXPECT_THAT(pushed.tokens(), ElementsAre(1, 2));
  EXPECT_FALSE(pushed.draft.malformed() || pushed.draft.left_out());
}

TEST(DraftPushTree, KeepsTheOrderAndTheParents) {
  const Pushed pushed({node(1, -1), node(2, -1), node(3, 1), node(4, 0), node(5, 1)});
  EXPECT_THAT(pushed.tokens(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(pushed.taken, Each(true));
}
TEST(DraftPushTree, GoesOnAfterARefusedNode) {
  const Pushed pushed({node(1, 9), node(2, -1), node(3, 1), node(4, 0), node(5, 0)});
  EXPECT_THAT(pushed.taken, ElementsAre(false, true, false, true, true));
  EXPECT_THAT(pushed.tokens(), ElementsAre(2, 4, 5));
}
TEST(DraftPushTree, RefusesAPathTooManyButGoesOnWithThoseItHas) {
  // There are two paths, through nodes 0 and 1. A third child of the anchor would start a third path, and so would a
  // second child of node 0.
  const Pushed pushed({node(1, -1), node(2, -1), node(3, -1), node(4, 0), node(5, 0), node(6, 1), node(7, 2)},
                      {.max_leaves = 2});
  EXPECT_THAT(pushed.taken, ElementsAre(true, true, false, true, false, true, true));
}
TEST(DraftPushTree, TakesATokenOnceForEachParent) {
  const Pushed pushed({node(1, -1), node(1, -1), node(1, 0), node(1, 0)});
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, true, false));
  EXPECT_TRUE(pushed.draft.malformed());
}
TEST(DraftPushTree, RefusesWhatIsTooDeepAndTakesWhatIsNot) {
  const Pushed pushed({node(1, -1), node(2, 0), node(3, 1), node(4, -1), node(5, 2)}, {.max_depth = 2});
  EXPECT_THAT(pushed.taken, ElementsAre(true, true, false, true, true));
}
TEST(DraftPushTree, CarriesAuxiliaryNodesBesideOthersWithTheSameToken) {
  const Pushed pushed({auxiliary(1, -1), node(1, -1), auxiliary(1, -1), auxiliary(2, 0), node(2, 1)});
  EXPECT_THAT(pushed.taken, Each(true));
}
TEST(DraftPushTree, NeverCarriesANodeAfterAnAuxiliaryOne) {
  const Pushed pushed({auxiliary(1, -1), node(2, 0), auxiliary(4, 0)});
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, true));
  EXPECT_TRUE(pushed.draft.malformed());
}
TEST(DraftPushTree, CountsAuxiliaryNodesAsPathsAndLevels) {
  EXPECT_THAT(Pushed({auxiliary(1, -1), node(2, -1), node(3, -1)}, {.max_leaves = 2}).taken,
              ElementsAre(true, true, false));
  EXPECT_THAT(Pushed({auxiliary(1, -1), auxiliary(2, 0)}, {.max_depth = 1, .max_leaves = 2}).taken,
              ElementsAre(true, false));
}
TEST(DraftPush, RefusesANodeMoreProbableThanAnEarlierOne) {
  const Pushed pushed({likely(1, 50), likely(2, 51), likely(3, 50), likely(4, 50, 0), likely(5, 20, 1), likely(6, 21)});
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, true, true, true, false));
  EXPECT_TRUE(pushed.draft.malformed());
}
TEST(DraftPush, RefusesWhatIsTooUnlikelyAndSaysSo) {
  const Pushed pushed({likely(1, 50), likely(2, 29), likely(3, 30)},
                      {.min_path_probability = Probability::ratio(30, 100)});
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, true));
  EXPECT_TRUE(pushed.draft.left_out());
  EXPECT_FALSE(pushed.draft.malformed());
}
TEST(DraftPushSampled, KeepsTheOrderInWhichItWasDrawn) {
  const Pushed pushed({likely(1, 20), likely(2, 90, 0), likely(3, 50, 1)}, {}, DraftKind::sampled);
  EXPECT_THAT(pushed.taken, Each(true));
}
TEST(DraftPushSampled, EndsAtItsFirstRefusal) {
  const Pushed unlikely({likely(1, 50), likely(2, 10, 0), likely(3, 50, 0)},
                        {.min_path_probability = Probability::ratio(30, 100)}, DraftKind::sampled);
  EXPECT_THAT(unlikely.taken, ElementsAre(true, false, false));
  EXPECT_TRUE(unlikely.draft.left_out());
  const Pushed malformed({node(1, -1), node(2, 7), node(3, 0)}, {}, DraftKind::sampled);
  EXPECT_THAT(malformed.taken, ElementsAre(true, false, false));
}
TEST(DraftPushSampled, IsAChainInAnyBudget) {
  const Pushed pushed({node(1, -1), node(2, -1), node(3, 0)}, {}, DraftKind::sampled);
  EXPECT_TRUE(pushed.draft.chain());
  EXPECT_THAT(pushed.taken, ElementsAre(true, false, false));
}
TEST(DraftTruncate, GivesBackThePathsAndTheNodes) {
  Pushed pushed({node(1, -1), node(2, -1), node(3, 0), node(4, 1)}, {.max_nodes = 4, .max_leaves = 2});
  EXPECT_FALSE(pushed.draft.push(node(5, 2)));
  pushed.draft.truncate(3);
  EXPECT_FALSE(pushed.draft.push(node(5, -1))) << "two paths are there";
  EXPECT_TRUE(pushed.draft.push(node(5, 2)));
  pushed.draft.truncate(1);
  EXPECT_TRUE(pushed.draft.push(node(6, -1)));
  EXPECT_FALSE(pushed.draft.push(node(7, -1)));
  EXPECT_TRUE(pushed.draft.push(node(7, 1)));
}

TEST(DraftView, IsEmptyByDefault) {
  const DraftView view;
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.begin(), view.end());
  EXPECT_THAT(tokens_of(view.prefix(3)), IsEmpty());
}

TEST(DraftView, PrefixIsTheFirstNodesOfTheSameKind) {
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
