// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/follower.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

namespace reprise::pass_intervals_test {
namespace {

using std::chrono::nanoseconds;

TEST(PassIntervals, TakesNoFirstIntervalBecauseTheEngineMayHaveBeenWarmingUp) {
  PassIntervals intervals;
  EXPECT_EQ(intervals.take(nanoseconds(500), 1), std::nullopt);
  EXPECT_EQ(intervals.take(nanoseconds(400), 1), nanoseconds(400));
}

TEST(PassIntervals, ForgetsALongWarmUpWithinAFewPasses) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(60'000'000), 1));
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(intervals.take(nanoseconds(1000), 1));
  EXPECT_FALSE(intervals.take(nanoseconds(1'000'000), 1)) << "a pause";
}

TEST(PassIntervals, RefusesAnIntervalOfMoreThanTenUsualOnes) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1000), 1));
  EXPECT_EQ(intervals.take(nanoseconds(10'000), 1), nanoseconds(10'000));
  PassIntervals others;
  static_cast<void>(others.take(nanoseconds(1000), 1));
  EXPECT_EQ(others.take(nanoseconds(10'001), 1), std::nullopt);
}

TEST(PassIntervals, BelievesHalfOfAFasterPassAndAnEighthOfASlowerOne) {
  for (const auto& [second, usual] : {std::pair{200, 600}, {9000, 2000}}) {
    PassIntervals intervals;
    static_cast<void>(intervals.take(nanoseconds(1000), 1));
    static_cast<void>(intervals.take(nanoseconds(second), 1));
    PassIntervals others = intervals;
    EXPECT_TRUE(intervals.take(nanoseconds(10 * usual), 1)) << second;
    EXPECT_FALSE(others.take(nanoseconds(10 * usual + 1), 1)) << second;
  }
}

TEST(PassIntervals, BelievesAnEngineThatHasBecomeMuchSlowerAfterAFewPasses) {
  PassIntervals intervals;
  for (int i = 0; i < 20; ++i) static_cast<void>(intervals.take(nanoseconds(1000), 1));
  int refused = 0;
  while (!intervals.take(nanoseconds(100'000), 1)) ASSERT_LT(++refused, 20);
  EXPECT_GE(refused, 2);
  EXPECT_LE(refused, 5);
}

TEST(PassIntervals, RefusesTimesThatDoNotPassAndTimesWithoutEnd) {
  PassIntervals intervals;
  EXPECT_EQ(intervals.take(nanoseconds(0), 1), std::nullopt);
  EXPECT_EQ(intervals.take(nanoseconds(-5), 1), std::nullopt);
  EXPECT_EQ(intervals.take(nanoseconds(std::numeric_limits<std::int64_t>::min()), 1), std::nullopt);
  EXPECT_EQ(intervals.take(nanoseconds(std::numeric_limits<std::int64_t>::max()), 1), std::nullopt);
  EXPECT_EQ(intervals.take(nanoseconds(500), 1), std::nullopt) << "the refused ones were no first interval";
  EXPECT_EQ(intervals.take(nanoseconds(500), 1), nanoseconds(500));
}

TEST(PassIntervals, TheLongestIntervalIsTwoToThe48Nanoseconds) {
  constexpr nanoseconds longest(std::int64_t{1} << 48);
  EXPECT_EQ(PassIntervals::between(nanoseconds(0), longest), longest);
  EXPECT_EQ(PassIntervals::between(nanoseconds(-1), longest), PassIntervals::unknown);
  PassIntervals intervals;
  static_cast<void>(intervals.take(longest, 1));
  EXPECT_EQ(intervals.take(longest, 1), longest);
  EXPECT_EQ(intervals.take(longest + nanoseconds(1), 1), std::nullopt);
}

TEST(PassIntervals, IntervalsOfExtremeTimesAreUnknown) {
  constexpr nanoseconds least(std::numeric_limits<std::int64_t>::min());
  constexpr nanoseconds most(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(PassIntervals::between(least, most), PassIntervals::unknown);
  EXPECT_EQ(PassIntervals::between(most, least), PassIntervals::unknown);
  EXPECT_EQ(PassIntervals::between(nanoseconds(5), nanoseconds(5)), PassIntervals::unknown);
  EXPECT_EQ(PassIntervals::between(nanoseconds(-5), nanoseconds(7)), nanoseconds(12));
}

TEST(PassIntervals, AssumesThatUnknownRowCountsCostInProportionToTheirRows) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1000), 1));
  EXPECT_EQ(intervals.take(nanoseconds(160'001), 16), std::nullopt);
  PassIntervals others;
  static_cast<void>(others.take(nanoseconds(1000), 1));
  EXPECT_EQ(others.take(nanoseconds(160'000), 16), nanoseconds(160'000));
  PassIntervals largest;
  static_cast<void>(largest.take(nanoseconds(1000), 64));
  EXPECT_TRUE(largest.take(nanoseconds(20'000), 128));
  // A shorter pass than any known one costs at most as much.
  PassIntervals shorter;
  static_cast<void>(shorter.take(nanoseconds(1000), 16));
  EXPECT_EQ(shorter.take(nanoseconds(10'000), 1), nanoseconds(10'000));
  EXPECT_EQ(shorter.take(nanoseconds(1'000'000), 1), std::nullopt);
}

TEST(PassIntervals, KnowsAShortPassFromTheNextLongerOnes) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1000), 2));
  EXPECT_EQ(intervals.take(nanoseconds(900), 1), nanoseconds(900));
}

TEST(PassIntervals, TakesTheFirstOfALongerPassForUsual) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1000), 1));
  EXPECT_TRUE(intervals.take(nanoseconds(16'000), 16));
  EXPECT_EQ(intervals.take(nanoseconds(160'000), 16), nanoseconds(160'000));
}

TEST(PassIntervals, KeepsLongAndShortPassesApart) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1000), 1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(intervals.take(nanoseconds(1000), 1));
    EXPECT_TRUE(intervals.take(nanoseconds(30'000), 33)) << "a pass of 33 rows may cost 30 plain passes";
  }
}

TEST(PassIntervals, AcceptsAnyRowCount) {
  PassIntervals intervals;
  static_cast<void>(intervals.take(nanoseconds(1), 0));
  EXPECT_TRUE(intervals.take(nanoseconds(1), 0));
  EXPECT_TRUE(intervals.take(nanoseconds(1), std::numeric_limits<std::size_t>::max()));
}

}  // namespace
}  // namespace reprise::pass_intervals_test
