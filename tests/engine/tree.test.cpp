// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::tree_test {
namespace {

using ::testing::ElementsAre;
using Parents = std::vector<NodeIndex>;

/// True if row `i` of [pending | drafted] sees row `j`, written straight from the contract.
bool sees(const Parents& parents, std::size_t pending, std::size_t i, std::size_t j) {
  if (i == j) return true;
  if (i < pending) return j < i;
  if (j < pending) return true;
  for (NodeIndex up = parents[i - pending]; up != anchor_parent; up = parents[static_cast<std::size_t>(up)])
    if (static_cast<std::size_t>(up) == j - pending) return true;
  return false;
}

Parents random_tree(testing::Random& random, std::size_t rows) {
  Parents parents;
  for (std::size_t row = 0; row < rows; ++row) parents.push_back(static_cast<NodeIndex>(random.below(row + 1)) - 1);
  return parents;
}

TEST(Tree, KnowsParentsThatComeLaterOrAreNoRows) {
  EXPECT_TRUE(is_tree({}));
  EXPECT_TRUE(is_tree(Parents{-1, 0, 0, -1, 3}));
  EXPECT_FALSE(is_tree(Parents{0}));
  EXPECT_FALSE(is_tree(Parents{-1, 2, -1}));
  EXPECT_FALSE(is_tree(Parents{-2}));
}

TEST(Tree, IsAChainWhereEveryRowFollowsTheOneBefore) {
  EXPECT_TRUE(is_chain({}));
  EXPECT_TRUE(is_chain(Parents{-1}));
  EXPECT_TRUE(is_chain(Parents{-1, 0, 1, 2}));
  EXPECT_FALSE(is_chain(Parents{-1, -1}));
  EXPECT_FALSE(is_chain(Parents{-1, 0, 0}));
  EXPECT_FALSE(is_chain(Parents{-1, 0, 1, 1}));
  EXPECT_FALSE(is_chain(Parents{0, 1})) << "no tree at all";
}

TEST(Tree, CountsDepthsFromTheAnchor) {
  const Parents parents = {-1, 0, -1, 1, 2};
  std::vector<std::int32_t> depths(parents.size());
  tree_depths<std::int32_t>(parents, depths);
  EXPECT_THAT(depths, ElementsAre(1, 2, 1, 3, 2));
}

TEST(Tree, LeavesAreThoseThatARowLeadsTo) {
  std::vector<std::uint64_t> leaves(5, 7);
  EXPECT_EQ(tree_leaves(Parents{-1, 0, -1, 1, 2}, leaves), 2U);  // paths: nodes 0 1 3 and 2 4
  EXPECT_THAT(leaves, ElementsAre(2, 2, 1, 2, 1));
  EXPECT_EQ(tree_leaves(Parents{}, leaves), 0U);
  testing::Random random(2);
  for (std::size_t round = 0; round < 300; ++round) {
    const Parents parents = random_tree(random, random.below(64) + 1);
    std::vector<std::uint64_t> of(parents.size());
    const std::size_t count = tree_leaves(parents, of);
    std::uint64_t seen = 0;
    for (std::size_t row = 0; row < parents.size(); ++row) {
      const bool is_leaf = std::count(parents.begin(), parents.end(), static_cast<NodeIndex>(row)) == 0;
      if (!is_leaf) continue;
      ASSERT_EQ(std::popcount(of[row]), 1);
      ASSERT_EQ(seen & of[row], 0U);
      seen |= of[row];
      for (std::size_t other = 0; other < parents.size(); ++other)
        ASSERT_EQ((of[other] & of[row]) != 0, other == row || sees(parents, 0, row, other)) << row << ' ' << other;
    }
    ASSERT_EQ(std::popcount(seen), static_cast<int>(count));
  }
}

TEST(Tree, HasADifferentBitForEachOf64Leaves) {
  std::vector<std::uint64_t> leaves(64);
  EXPECT_EQ(tree_leaves(Parents(64, anchor_parent), leaves), 64U);
  std::uint64_t seen = 0;
  for (const std::uint64_t leaf : leaves) seen |= leaf;
  EXPECT_EQ(std::popcount(seen), 64);
}

TEST(Tree, LinksVisitEveryChildInDraftOrder) {
  const Parents parents = {-1, 0, -1, 0, 2};
  std::vector<std::int32_t> child(6);
  std::vector<std::int32_t> sibling(6);
  tree_links<std::int32_t>(parents, child, sibling);
  EXPECT_THAT(child, ElementsAre(1, 2, -1, 5, -1, -1));
  EXPECT_THAT(sibling, ElementsAre(-1, 3, 4, -1, -1, -1));

  testing::Random random(2);
  for (std::size_t round = 0; round < 200; ++round) {
    const Parents tree = random_tree(random, random.below(40));
    std::vector<std::int64_t> first(tree.size() + 1);
    std::vector<std::int64_t> next(tree.size() + 1);
    tree_links<std::int64_t>(tree, first, next);
    for (std::size_t node = 0; node <= tree.size(); ++node) {
      std::vector<std::int64_t> wanted;
      for (std::size_t row = 0; row < tree.size(); ++row)
        if (tree[row] + 1 == static_cast<NodeIndex>(node)) wanted.push_back(static_cast<std::int64_t>(row) + 1);
      std::vector<std::int64_t> found;
      for (std::int64_t at = first[node]; at != -1; at = next[static_cast<std::size_t>(at)]) found.push_back(at);
      ASSERT_EQ(found, wanted);
    }
  }
}

}  // namespace
}  // namespace reprise::tree_test
