// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/detail/draft_length.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace reprise::detail::path_products_test {
namespace {

constexpr std::uint32_t half = UnitScale::one / 2;
constexpr std::uint32_t quarter = UnitScale::one / 4;

TEST(PathProducts, MultipliesTheFactorsOfEachPath) {
  // The anchor has two children, each with one child.
  const std::vector<DraftNode> nodes = {{.token = 1, .parent = anchor_parent},
                                        {.token = 2, .parent = anchor_parent},
                                        {.token = 3, .parent = 0},
                                        {.token = 4, .parent = 1}};
  const DraftView draft(nodes, DraftKind::ordered);
  const std::vector<NodeIndex> sendable = {0, 1, 2, 3};
  PathProducts<4> paths;
  EXPECT_EQ(paths.extend(draft, sendable, 0, half), half);
  EXPECT_EQ(paths.extend(draft, sendable, 1, UnitScale::one), UnitScale::one);
  EXPECT_EQ(paths.extend(draft, sendable, 2, half), quarter);
  EXPECT_EQ(paths.extend(draft, sendable, 3, half), half);
}

TEST(PathProducts, FindsParentsWhereNodesAreLeftOut) {
  const std::vector<DraftNode> nodes = {
      {.token = 1, .parent = anchor_parent}, {.token = 2, .parent = anchor_parent}, {.token = 3, .parent = 1}};
  const DraftView draft(nodes, DraftKind::ordered);
  const std::vector<NodeIndex> sendable = {1, 2};
  PathProducts<2> paths;
  EXPECT_EQ(paths.extend(draft, sendable, 0, half), half);
  EXPECT_EQ(paths.extend(draft, sendable, 1, half), quarter);
}

}  // namespace
}  // namespace reprise::detail::path_products_test
