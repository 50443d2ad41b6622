// SPDX-License-Identifier: Apache-2.0
#include "replay/clock_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/input_error.hpp"

namespace reprise::replay::clock_spec_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class Parse>
std::string refused(Parse&& parse) {
  try {
    parse();
    return "accepted";
  } catch (const tools::InputError& error) {
    return error.what();
  }
}

TEST(Outliers, AreAPercentageAndAFactor) {
  EXPECT_EQ(Outliers().text(), "1:10");
  EXPECT_EQ(parse_outliers("1:10"), Outliers());
  EXPECT_EQ(parse_outliers("0:1"), (Outliers{0, 1}));
  EXPECT_EQ(parse_outliers("50:2.5").text(), "50:2.5");
}

TEST(Outliers, RefuseOtherTexts) {
  for (const char* text : {"", "5", "5:", ":5", "51:2", "-1:2", "1.5:2", "1:0.9", "1:1001", "1:nan", "1:2:3", "a:b"})
    EXPECT_THAT(refused([&] { parse_outliers(text); }),
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
    EXPECT_THAT(refused([&] { parse_slowdown(text); }),
                AllOf(StartsWith("--slowdown " + std::string(text) + ": "), HasSubstr("expected FACTOR@PASS")))
        << text;
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
