// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <ratio>

#include "reprise/core/token.hpp"

namespace reprise::duration_test {
namespace {

using std::chrono::duration;
using std::chrono::nanoseconds;

static_assert(Duration() == Duration(0) && Duration(2) > Duration(1));
static_assert(Duration(nanoseconds(5)).count() == 5 && Duration(std::chrono::microseconds(5)).count() == 5'000);
static_assert(Duration(std::chrono::hours(1)).count() == 3'600'000'000'000 && Duration(nanoseconds(-3)).count() == -3);
static_assert(Duration(duration<int, std::ratio<3, 2>>(2)).count() == 3'000'000'000);
static_assert(Duration(7) == nanoseconds(7) && nanoseconds(Duration(7)) == nanoseconds(7));

// Times that are not exact in nanoseconds, and types that are no times, do not convert.
static_assert(!std::convertible_to<duration<double>, Duration> && !std::convertible_to<std::int64_t, Duration>);
static_assert(!std::convertible_to<duration<std::int64_t, std::pico>, Duration>);
static_assert(!std::convertible_to<duration<std::int64_t, std::ratio<1, 3>>, Duration>);
static_assert(!std::convertible_to<Duration, std::chrono::microseconds> &&
              !std::convertible_to<Duration, std::int64_t>);
static_assert(!std::convertible_to<Duration, duration<double, std::nano>>);

TEST(Duration, IsTakenWhereATimeMayBeMissing) {
  const auto count = [](std::optional<Duration> time) { return time ? time->count() : -1; };
  EXPECT_EQ(count(std::chrono::milliseconds(2)), 2'000'000);
  EXPECT_EQ(count(std::optional<nanoseconds>(nanoseconds(4))), 4);
  EXPECT_EQ(count(std::optional<nanoseconds>()), -1);
  const std::optional<nanoseconds> back = std::optional<Duration>(Duration(9));
  EXPECT_EQ(back, nanoseconds(9));
}

}  // namespace
}  // namespace reprise::duration_test
