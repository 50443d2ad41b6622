// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/argmax.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace reprise::argmax_test {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

Token best(const std::vector<float>& scores) { return argmax(scores); }

TEST(Argmax, IsTheHighestScore) {
  EXPECT_EQ(best({0.5F, 2, -1}), 1);
  EXPECT_EQ(best({-3, -2, -1}), 2);
  EXPECT_EQ(best({-infinite, -1e38F, infinite}), 2);
}
TEST(Argmax, IsTheLowestIdOfEqualScores) {
  EXPECT_EQ(best({1, 2, 2, 2}), 1);
  EXPECT_EQ(best({0.0F, -0.0F}), 0);
  EXPECT_EQ(best({-infinite, -infinite}), 0);
}
TEST(Argmax, PassesOverNan) {
  EXPECT_EQ(best({nan_value, -infinite, nan_value}), 1);
  EXPECT_EQ(best({nan_value, 1, nan_value, 2, nan_value}), 3);
  EXPECT_EQ(best({1, nan_value}), 0);
}
TEST(Argmax, IsTokenZeroWhereThereIsNone) {
  EXPECT_EQ(best({}), 0);
  EXPECT_EQ(best({nan_value, nan_value}), 0);
}

}  // namespace
}  // namespace reprise::argmax_test
