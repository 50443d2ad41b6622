// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/detail/fixed_log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise_testing/random.hpp"
#include "support/streams.hpp"

namespace reprise::detail::fixed_log_test {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

static_assert(log2_q8(1024) == 10 * 256 && log_odds(7, 7) == 0 && logistic(0).raw() == Probability::scale / 2,
              "all of it can be computed at compile time");

double log2_error(std::uint64_t x) { return std::abs(log2_q8(x) - 256 * std::log2(static_cast<double>(x))); }
double probability(LogOdds x) { return logistic(x).to_double(); }

TEST(Log2, IsExactForPowersOfTwo) {
  for (int i = 0; i < 64; ++i) EXPECT_EQ(log2_q8(std::uint64_t{1} << i), 256 * i);
}

TEST(Log2, ReadsZeroAsOne) { EXPECT_EQ(log2_q8(0), 0); }

TEST(Log2, IsWithinFiveOfTheLogarithm) {
  for (std::uint64_t x = 1; x < 1 << 16; ++x) ASSERT_LE(log2_error(x), 5.0) << x;
  testing::SplitMix random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t x = random.next() >> random.below(64) | 1;
    ASSERT_LE(log2_error(x), 5.0) << x;
  }
  EXPECT_LE(log2_error(largest), 5.0);
}

TEST(Log2, NeverFalls) {
  std::int32_t before = 0;
  for (std::uint64_t x = 0; x < 1 << 20; ++x) {
    ASSERT_GE(log2_q8(x), before) << x;
    before = log2_q8(x);
  }
  for (int shift = 21; shift < 63; ++shift)
    for (std::uint64_t part = 0; part < 1024; ++part) {
      const std::uint64_t x = (1024 + part) << (shift - 10);
      ASSERT_GE(log2_q8(x), before) << x;
      before = log2_q8(x);
    }
  EXPECT_GE(log2_q8(largest), before);
}

TEST(LogOdds, AreWithinSixOfTheLogarithmOfTheOdds) {
  testing::SplitMix random(2);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t part = random.next() >> random.below(64) | 1;
    const std::uint64_t rest = random.next() >> random.below(64) | 1;
    const double exact = 256 * (std::log(static_cast<double>(part)) - std::log(static_cast<double>(rest)));
    ASSERT_NEAR(log_odds(part, rest), exact, 6.0) << part << " : " << rest;
  }
}

TEST(LogOdds, ChangeSignWhenTheSidesChangePlaces) {
  testing::SplitMix random(3);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t part = random.next() >> random.below(64);
    const std::uint64_t rest = random.next() >> random.below(64);
    ASSERT_NEAR(log_odds(part, rest), -log_odds(rest, part), 1) << "rounding is downwards";
  }
}

TEST(LogOdds, TakeEveryCount) {
  EXPECT_EQ(log_odds(0, 0), 0);
  EXPECT_EQ(log_odds(largest, largest), 0);
  EXPECT_NEAR(log_odds(largest, 0), 64 * std::log(2.0) * 256, 6.0);
  EXPECT_NEAR(log_odds(0, largest), -64 * std::log(2.0) * 256, 6.0);
}

TEST(Logistic, IsWithinTwoThousandthsOfTheRealOne) {  // the cap, plus rounding
  for (LogOdds x = -6000; x <= 6000; ++x) ASSERT_NEAR(probability(x), 1 / (1 + std::exp(-x / 256.0)), 0.00202) << x;
}

TEST(Logistic, IsPreciseWhereItIsNotCapped) {
  for (LogOdds x = -1500; x <= 1500; ++x) ASSERT_NEAR(probability(x), 1 / (1 + std::exp(-x / 256.0)), 0.0008) << x;
}

TEST(Logistic, NeverFalls) {
  Probability before = Probability::zero();
  for (LogOdds x = -5000; x <= 5000; ++x) {
    ASSERT_GE(logistic(x), before) << x;
    before = logistic(x);
  }
}

TEST(Logistic, IsSymmetricUpToTheCap) {
  const Probability cap = logistic(5000);
  int compared = 0;
  for (LogOdds x = 0; x <= 5000; ++x) {
    if (logistic(x) == cap) break;
    ASSERT_EQ(logistic(x).raw() + logistic(-x).raw(), Probability::scale) << x;
    ++compared;
  }
  EXPECT_GT(compared, 1500);
}

TEST(Logistic, HasATableOfTheNearestValues) {
  for (std::size_t i = 0; i < logistic_tail.size(); ++i)
    EXPECT_EQ(logistic_tail[i], std::lround(16'777'216 / (1 + std::exp(static_cast<double>(i) / 4)))) << i;
}

TEST(Logistic, IsNeverCertain) {
  constexpr LogOdds far = std::numeric_limits<LogOdds>::max();
  EXPECT_EQ(logistic(-far).raw(), Probability::scale >> 15);
  EXPECT_NEAR(probability(far), 0.998, 0.0001);
  for (const LogOdds x : {-far, -100'000, -3072, -3071, 3071, 3072, 100'000, far}) {
    EXPECT_GT(logistic(x), Probability::zero()) << x;
    EXPECT_LT(logistic(x), Probability::one()) << x;
  }
}

TEST(FixedLog, IsTheLogarithm) {
  testing::Random random(1);
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t x = 1 + (random.next() >> random.below(64)) / 2;
    EXPECT_NEAR(static_cast<double>(fixed_log2(x)) / 65536, std::log2(static_cast<double>(x)), 1.0 / 16384) << x;
  }
  EXPECT_EQ(fixed_log2(0), 0);
  EXPECT_EQ(fixed_log2(1), 0);
  EXPECT_EQ(fixed_log2(1 << 20), 20 << 16);
  EXPECT_NEAR(static_cast<double>(fixed_ln(3 << 16)) / 65536, std::log(3.0), 1e-4);
  EXPECT_NEAR(static_cast<double>(fixed_ln(1 << 14)) / 65536, -std::log(4.0), 1e-4);
}

TEST(FixedLog, HasTheNearestLogarithmOfTwo) { EXPECT_EQ(ln_2, std::lround(std::log(2.0) * 65536)); }

TEST(FixedLog, NeverFallsAsItsArgumentRises) {
  for (std::uint64_t x = 1; x < 100000; ++x) ASSERT_LE(fixed_log2(x), fixed_log2(x + 1)) << x;
}

TEST(CoarseLog, IsOffByLessThanTwoSteps) {
  testing::Random random(2);
  for (int round = 0; round < 20000; ++round) {
    const auto x = static_cast<std::uint32_t>(1 + (random.next() >> 33 >> random.below(31)));
    const double exact = 32 * std::log2(static_cast<double>(x));
    ASSERT_LE(coarse_log2(x), exact + 1e-9) << x;
    ASSERT_GT(coarse_log2(x), exact - 2) << x;
  }
}

}  // namespace
}  // namespace reprise::detail::fixed_log_test
