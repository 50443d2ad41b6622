// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/detail/fixed_point.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <type_traits>

namespace reprise::detail::fixed_point_test {
namespace {

static_assert(UnitScale::one == 65536 && UnitScale::multiply(3 * UnitScale::one, 7) == 21,
              "all of it can be computed at compile time");
static_assert(std::is_same_v<decltype(UnitScale::multiply(std::uint32_t{1}, std::uint64_t{1})), std::uint64_t>,
              "products have the type of the expression");

TEST(Fixed, TakesWholeNumbersInAndOut) {
  EXPECT_EQ(LogOddsScale::from(3), 768);
  EXPECT_EQ(LogOddsScale::floor(767), 2);
  EXPECT_EQ(LogOddsScale::fraction(767), 255);
}

TEST(Fixed, RoundsDownBelowZeroToo) {
  EXPECT_EQ(LogOddsScale::floor(-1), -1);
  EXPECT_EQ(LogOddsScale::fraction(-1), 255);
  EXPECT_EQ(UnitScale::multiply(-1, 1), -1);
}

TEST(Fixed, DividesTowardsZero) {
  EXPECT_EQ(UnitScale::divide(std::int64_t{1}, 3), 21845);
  EXPECT_EQ(UnitScale::divide(std::int64_t{-1}, 3), -21845);
}

TEST(Fixed, InterpolatesBetweenTwoNumbers) {
  EXPECT_EQ(LogOddsScale::between(10, 20, 0), 10);
  EXPECT_EQ(LogOddsScale::between(10, 20, 128), 15);
  EXPECT_EQ(LogOddsScale::between<std::int64_t>(10, 20, LogOddsScale::one), 20);
  EXPECT_EQ(LogOddsScale::between(0, -1, 1), -1);
}

TEST(Rescaled, ShiftsToTheOtherScale) {
  EXPECT_EQ((rescaled<UnitScale, ProbabilityScale>(std::uint32_t{65536})), std::uint32_t{1} << 30);
  EXPECT_EQ((rescaled<ProbabilityScale, UnitScale>((std::uint32_t{1} << 30) - 1)), 65535U);
  EXPECT_EQ((rescaled<BiasScale, LogOddsScale>(-1)), -1);
  EXPECT_EQ((rescaled<UnitScale, ProbabilityScale>(std::uint64_t{3})), 3U << 14) << "in 64 bits a wrong shift shows";
  EXPECT_EQ((rescaled<UnitScale, UnitScale>(7)), 7);
}

TEST(Rounded, IsTheNearest) {
  EXPECT_EQ((rounded<BiasScale, SmallBiasScale>(63)), 0);
  EXPECT_EQ((rounded<BiasScale, SmallBiasScale>(64)), 1);
  EXPECT_EQ((rounded<BiasScale, SmallBiasScale>(-64)), 0);
  EXPECT_EQ((rounded<BiasScale, SmallBiasScale>(-65)), -1);
}

}  // namespace
}  // namespace reprise::detail::fixed_point_test
