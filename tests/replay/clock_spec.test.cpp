// SPDX-License-Identifier: Apache-2.0
#include "replay/clock_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace reprise::replay::clock_spec_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::refusal;
using ::testing::StartsWith;

TEST(Outliers, AreAPercentageAndAFactor) {
  EXPECT_EQ(Outliers().text(), "1:10");
  EXPECT_EQ(parse_outliers("1:10"), Outliers());
  EXPECT_EQ(parse_outliers("0:1"), (Outliers{0, 1}));
  EXPECT_EQ(parse_outliers("50:2.5").text(), "50:2.5");
}

TEST(Outliers, RefuseOtherTexts) {
  for (const char* text : {"", "5", "5:", ":5", "51:2", "-1:2", "1.5:2", "1:0.9", "1:1001", "1:nan", "1:2:3", "a:b"})
    EXPECT_THAT(refusal([&] { parse_outliers(text); }),
                AllOf(StartsWith("--outliers " + std::string(text) + ": "), HasSubstr("expected PERCENT:FACTOR")))
        << text;
}

TEST(Slowdown, IsAFactorAndAPlace) {
  EXPECT_EQ(parse_slowdown("2@1000"), (Slowdown{2, 1000}));
  EXPECT_EQ(parse_slowdown("0.5@0").text(), "0.5@0");
  EXPECT_EQ(parse_slowdown("2@middle"), (Slowdown{2, std::nullopt}));
  EXPECT_EQ(parse_slowdown("2@middle").text(), "2@middle");
}

TEST(Slowdown, RefusesOtherTexts) {
  for (const char* text : {"", "2", "2@", "@5", "2@end", "0@5", "101@5", "x@5", "2@-1", "2@1.5", "2@9007199254740993"})
    EXPECT_THAT(refusal([&] { parse_slowdown(text); }),
                AllOf(StartsWith("--slowdown " + std::string(text) + ": "), HasSubstr("expected FACTOR@PASS")))
        << text;
}

TEST(Poison, IsAModeAndANumberOfPasses) {
  for (const char* text : {"random:1", "drafts-dear:200", "plain-cheap:200", "drafts-free:200", "first-slow:200",
                           "slow-machine:200", "missing:9007199254740992"})
    EXPECT_EQ(parse_poison(text).text(), text);
  EXPECT_EQ(parse_poison("missing:7"), (Poison{Poison::Mode::missing, 7}));
}

TEST(Poison, RefusesOtherTexts) {
  for (const char* text : {"", "random", "random:", ":5", "5:random", "wild:5", "Random:5", "random:0", "random:-1",
                           "random:1.5", "random:5:5", "random:9007199254740993"})
    EXPECT_THAT(refusal([&] { parse_poison(text); }),
                AllOf(StartsWith("--poison " + std::string(text) + ": "),
                      HasSubstr("random, drafts-dear, plain-cheap, drafts-free, first-slow, slow-machine or missing")))
        << text;
}

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
