// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/detail/hit_rate.hpp"

#include <gtest/gtest.h>

#include "reprise_testing/random.hpp"

namespace reprise::hit_rate_test {
namespace {

using detail::HitRate;

TEST(HitRate, BeginsAtTheGuess) {
  EXPECT_EQ(HitRate(Probability::ratio(1, 4)).probability(), Probability::ratio(1, 4));
  EXPECT_EQ(HitRate().probability(), Probability::ratio(1, 2));
}

TEST(HitRate, MovesFastAtFirst) {
  HitRate rate;
  rate.learn(true);
  EXPECT_NEAR(rate.probability().to_double(), 0.5 + 0.5 / 9, 1e-6);
  rate.learn(false);
  EXPECT_NEAR(rate.probability().to_double(), 0.5, 0.01);
}

TEST(HitRate, ComesToTheShareOfHits) {
  for (const std::size_t percent : {10U, 50U, 90U}) {
    testing::Random random(percent);
    HitRate rate;
    double mean = 0;
    for (int i = 0; i < 20000; ++i) {
      rate.learn(random.chance(percent));
      if (i >= 10000) mean += rate.probability().to_double() / 10000;
    }
    EXPECT_NEAR(mean, static_cast<double>(percent) / 100, 0.01);
  }
}

TEST(HitRate, ForgetsWhatWasLongAgo) {
  HitRate rate;
  for (int i = 0; i < 10000; ++i) rate.learn(false);
  for (int i = 0; i < 300; ++i) rate.learn(true);
  EXPECT_GT(rate.probability(), Probability::ratio(9, 10));
}

TEST(HitRate, IsNeverCertain) {
  HitRate up(Probability::one());
  HitRate down(Probability::zero());
  for (int i = 0; i < 10000; ++i) {
    EXPECT_LE(up.probability(), Probability::ratio(255, 256));
    EXPECT_GE(down.probability(), Probability::ratio(1, 256));
    up.learn(true);
    down.learn(false);
  }
}

}  // namespace
}  // namespace reprise::hit_rate_test
