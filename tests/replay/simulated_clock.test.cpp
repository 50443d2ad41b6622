// SPDX-License-Identifier: Apache-2.0
#include "replay/simulated_clock.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace reprise::replay::simulated_clock_test {
namespace {

std::vector<double> milliseconds(double cost, double noise, std::uint64_t seed, int size) {
  SimulatedClock clock(noise, seed);
  std::vector<double> all;
  for (int i = 0; i < size; ++i) all.push_back(static_cast<double>(clock.time(cost).count()) / 1e6);
  return all;
}

TEST(SimulatedClock, TakesTenMillisecondsForAPlainPassOrTenTimesThat) {
  int slow = 0;
  for (const double ms : milliseconds(1.5, 0, 1, 20'000)) {
    ASSERT_TRUE(ms == 15 || ms == 150) << ms;
    slow += ms == 150 ? 1 : 0;
  }
  EXPECT_NEAR(slow, 200, 60);
}

TEST(SimulatedClock, ScattersAsMuchAsItIsAskedTo) {
  for (const double noise : {0.05, 0.1, 0.3}) {
    double sum = 0;
    double squares = 0;
    int size = 0;
    for (const double ms : milliseconds(1, noise, 7, 50'000)) {
      EXPECT_GE(ms, 0.999);
      if (ms > 30) continue;  // an outlier
      ++size;
      sum += ms;
      squares += ms * ms;
    }
    const double mean = sum / size;
    EXPECT_NEAR(mean, 10, 0.15);
    EXPECT_NEAR(std::sqrt(squares / size - mean * mean) / mean, noise, 0.01);
  }
}

TEST(SimulatedClock, HasAsManyOutliersAsItIsAskedToHave) {
  const auto outliers = [](const Outliers& spec) {
    SimulatedClock clock(0, 1, spec);
    int slow = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto ns = clock.time(1).count();
      EXPECT_TRUE(ns == 10'000'000 || ns == std::llround(1e7 * spec.factor)) << ns;
      slow += ns == 10'000'000 ? 0 : 1;
    }
    return slow;
  };
  EXPECT_EQ(outliers({0, 10}), 0);
  EXPECT_NEAR(outliers({20, 2.5}), 4000, 300);
  EXPECT_NEAR(outliers({1, 1000}), 200, 60);
}

TEST(SimulatedClock, DrawsFromARecording) {
  const PassTimes recorded(PassTimes::Lists{{0, {{1, {7, 9}}}}});
  SimulatedClock clock(0.5, 3);
  std::set<std::int64_t> times;
  for (int i = 0; i < 200; ++i) times.insert(clock.time(recorded, {1, 1, 0}).count());
  EXPECT_EQ(times, (std::set<std::int64_t>{7, 9})) << "neither noise nor outliers";
}

}  // namespace
}  // namespace reprise::replay::simulated_clock_test
