// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/random.hpp"

#include <gtest/gtest.h>

namespace reprise::testing::random_test {
namespace {

TEST(Random, GivesTheSameNumbersOnEveryMachine) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafU);  // the first output of SplitMix64 with seed 0
  Random random(0);
  EXPECT_EQ(random.next(), mix(0));
  EXPECT_EQ(random.next(), mix(1));
}
TEST(Random, StaysBelowItsBound) {
  Random random(1);
  EXPECT_EQ(random.below(0), 0U);
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(7), 7U);
  EXPECT_FALSE(random.chance(0));
  EXPECT_TRUE(random.chance(100));
}

}  // namespace
}  // namespace reprise::testing::random_test
