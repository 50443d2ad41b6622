// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/token.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace reprise::probability_test {
namespace {

constexpr std::uint32_t largest = std::numeric_limits<std::uint32_t>::max();

TEST(Probability, IsZeroByDefault) { EXPECT_EQ(Probability(), Probability::zero()); }

TEST(Probability, ReadsValuesAboveOneAsOne) {
  EXPECT_EQ(Probability::from_raw(Probability::scale + 1), Probability::one());
  EXPECT_EQ(Probability::from_raw(largest), Probability::one());
}

TEST(Probability, RatioIsRoundedDown) {
  EXPECT_EQ(Probability::ratio(1, 2).raw(), Probability::scale / 2);
  EXPECT_EQ(Probability::ratio(1, 3).raw(), Probability::scale / 3);
  EXPECT_EQ(Probability::ratio(2, 3).raw(), 715827882U);
  EXPECT_EQ(Probability::ratio(largest - 1, largest).raw(), Probability::scale - 1);
}

TEST(Probability, RatioKeepsBetweenZeroAndOne) {
  EXPECT_EQ(Probability::ratio(0, 5), Probability::zero());
  EXPECT_EQ(Probability::ratio(5, 5), Probability::one());
  EXPECT_EQ(Probability::ratio(6, 5), Probability::one());
  EXPECT_EQ(Probability::ratio(largest, largest), Probability::one());
}

TEST(Probability, RatioOfNothingIsZero) {
  EXPECT_EQ(Probability::ratio(0, 0), Probability::zero());
  EXPECT_EQ(Probability::ratio(3, 0), Probability::zero());
}

TEST(Probability, MultipliesExactlyWithOneAndZero) {
  for (const std::uint32_t raw : {0U, 1U, 12345U, Probability::scale - 1, Probability::scale}) {
    const auto p = Probability::from_raw(raw);
    EXPECT_EQ(p * Probability::one(), p);
    EXPECT_EQ(Probability::one() * p, p);
    EXPECT_EQ(p * Probability::zero(), Probability::zero());
  }
}

TEST(Probability, ProductsAreRoundedDownAndNeverGrow) {
  const auto half = Probability::ratio(1, 2);
  EXPECT_EQ(half * half, Probability::ratio(1, 4));
  EXPECT_EQ(Probability::from_raw(1) * half, Probability::zero());
  auto p = Probability::ratio(9, 10);
  for (int depth = 0; depth < 300; ++depth) {
    const auto next = p * Probability::ratio(9, 10);
    EXPECT_LE(next, p);
    p = next;
  }
  EXPECT_LT(p.raw(), 10U);
}

TEST(Probability, ComparesByValue) {
  EXPECT_LT(Probability::ratio(1, 3), Probability::ratio(1, 2));
  EXPECT_GT(Probability::one(), Probability::ratio(99, 100));
}

TEST(Probability, CanBeShownToPeople) {
  EXPECT_DOUBLE_EQ(Probability::one().to_double(), 1.0);
  EXPECT_DOUBLE_EQ(Probability::ratio(1, 4).to_double(), 0.25);
  EXPECT_DOUBLE_EQ(Probability::zero().to_double(), 0.0);
}

TEST(Probability, CanBeWorkedOutByTheCompiler) {
  static_assert(Probability::ratio(1, 2) * Probability::ratio(1, 2) == Probability::ratio(1, 4));
}

}  // namespace
}  // namespace reprise::probability_test
