// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/pass_rows.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace reprise::accepted_path_test {
namespace {

using detail::is_path;

TEST(AcceptedPath, IsAPathOfThePass) {
  const std::array<Token, 5> batch = {7, 8, 1, 2, 3};  // rows 1: anchor, 2: 1, 3: 2, 4: 3 after 1
  const std::array<NodeIndex, 3> parents = {-1, -1, 0};
  Pass pass;
  pass.batch = batch;
  pass.pending = 2;
  pass.drafted = 3;
  pass.parents = parents;
  const auto holds = [&](std::vector<std::size_t> rows, std::vector<Token> tokens) {
    return is_path(pass, {rows, tokens});
  };
  EXPECT_TRUE(holds({1}, {99}));
  EXPECT_TRUE(holds({1, 2, 4}, {1, 3, 99}));
  EXPECT_TRUE(holds({1, 3}, {2, 99}));
  EXPECT_FALSE(holds({}, {}));
  EXPECT_FALSE(holds({0}, {8})) << "the row before the anchor";
  EXPECT_FALSE(holds({2}, {99}));
  EXPECT_FALSE(holds({1, 4}, {3, 99})) << "two steps at once";
  EXPECT_FALSE(holds({1, 3, 4}, {2, 3, 99})) << "from one path to another";
  EXPECT_FALSE(holds({1, 2}, {2, 99})) << "another token";
  EXPECT_FALSE(holds({1, 2, 2}, {1, 1, 99}));
  EXPECT_FALSE(holds({1, 0}, {7, 99})) << "back to a pending row";
  EXPECT_FALSE(holds({1, 5}, {3, 99}));
  EXPECT_FALSE(holds({1, unlimited}, {3, 99}));
  EXPECT_FALSE(holds({1, 2}, {1}));
}

}  // namespace
}  // namespace reprise::accepted_path_test
