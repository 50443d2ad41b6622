// SPDX-License-Identifier: Apache-2.0
#include "replay/clock_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::replay::clock_spec_test {
namespace {

using ::testing::ElementsAre;

/// The factors of passes with 1, 5, 1, 5, ... rows, where all but the first row are drafted. Each pass commits a token.
std::vector<std::optional<double>> factors(const char* spec, std::size_t passes, std::uint64_t seed = 1) {
  StreamPosition position{passes};
  testing::Random random(seed);
  std::vector<std::optional<double>> all;
  for (; position.passes < passes; ++position.passes, ++position.tokens) {
    const bool drafted = position.passes % 2 == 1;
    all.push_back(position.poisoned(parse_poison(spec), drafted ? 5 : 1, drafted, random));
  }
  return all;
}

TEST(StreamPosition, PoisonsTheFirstPasses) {
  EXPECT_THAT(factors("drafts-dear:4", 6), ElementsAre(1, 30, 1, 30, 1, 1));
  EXPECT_THAT(factors("plain-cheap:4", 6), ElementsAre(0.02, 1, 0.02, 1, 1, 1));
  EXPECT_THAT(factors("drafts-free:3", 6), ElementsAre(5, 0.05, 5, 1, 1, 1));
  EXPECT_THAT(factors("missing:2", 4), ElementsAre(std::nullopt, std::nullopt, 1, 1));
  const std::optional<double> slow = 3;
  EXPECT_THAT(factors("slow-machine:2", 6), ElementsAre(1, 1, 1, slow, slow, 1)) << "from half of the tokens on";
  testing::Random random(1);
  EXPECT_EQ(StreamPosition().poisoned({}, 1, false, random), 1);
}

TEST(StreamPosition, PoisonsAtRandomByTheSeed) {
  const auto wrong = factors("random:1000", 1010);
  EXPECT_EQ(wrong, factors("random:1000", 1010));
  EXPECT_NE(wrong, factors("random:1000", 1010, 2));
  EXPECT_EQ(std::count(wrong.begin() + 1000, wrong.end(), 1), 10);
  const auto [least, most] = std::minmax_element(wrong.begin(), wrong.begin() + 1000);
  EXPECT_GE(**least, 0.01);
  EXPECT_LT(**least, 0.012);
  EXPECT_GT(**most, 83);
  EXPECT_LE(**most, 100);
  EXPECT_NEAR(static_cast<double>(std::count_if(wrong.begin(), wrong.end(), [](auto f) { return *f < 1; })), 500, 50);

  const auto first = factors("first-slow:4", 6);
  for (const std::size_t pass : {0U, 1U}) {
    EXPECT_GE(*first[pass], 30);
    EXPECT_LE(*first[pass], 300);
  }
  EXPECT_NE(first[0], first[1]);
  for (const std::size_t pass : {2U, 3U, 4U, 5U}) EXPECT_EQ(first[pass], 1);
  EXPECT_EQ(factors("first-slow:1", 2)[1], 1) << "its first pass came later";
}

TEST(StreamPosition, AppliesTheSlowdownFromItsPlaceOn) {
  EXPECT_EQ((StreamPosition{100, 5, 5}.factor({})), 1);
  EXPECT_EQ((StreamPosition{100, 4, 60}.factor(Slowdown{3, 5})), 1);
  EXPECT_EQ((StreamPosition{100, 5, 5}.factor(Slowdown{3, 5})), 3);
  EXPECT_EQ((StreamPosition{100, 90, 49}.factor(Slowdown{3, {}})), 1);
  EXPECT_EQ((StreamPosition{100, 1, 50}.factor(Slowdown{3, {}})), 3);
}

}  // namespace
}  // namespace reprise::replay::clock_spec_test
