// SPDX-License-Identifier: Apache-2.0
#include "replay/pass_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace reprise::replay::pass_times_test {
namespace {

using ::testing::ElementsAre;

PassTimes recording(const std::string& shapes) {
  return PassTimes::parse("p.json", R"({"version": 1, "pass_times": [)" + shapes + R"(], "hardware": "x"})");
}
std::string shape(std::size_t context, std::size_t rows, const std::string& ns) {
  return R"({"context": )" + std::to_string(context) + R"(, "rows": )" + std::to_string(rows) + R"(, "ns": [)" + ns +
         "]}";
}
std::set<double> times(const PassTimes& recorded, const PassShape& shape) {
  testing::Random random(1);
  std::set<double> all;
  for (int i = 0; i < 100; ++i) all.insert(recorded.sample(shape, random));
  return all;
}

TEST(PassTimes, CostTheMedianOfEachShape) {
  const PassTimes recorded = recording(shape(0, 1, "100") + "," + shape(0, 3, "900, 100, 200") + "," +
                                       shape(0, 4, "10, 40, 20, 30") + "," + shape(100, 1, "200, 200"));
  EXPECT_EQ(recorded.medians().nanoseconds(1, 0), 100);
  EXPECT_EQ(recorded.medians().nanoseconds(3, 0), 200);
  EXPECT_EQ(recorded.medians().nanoseconds(4, 0), 25);
  EXPECT_EQ(recorded.medians().nanoseconds(2, 0), 150) << "between them it is linear";
  EXPECT_EQ(recorded.medians().nanoseconds(1, 50), 150);
}

TEST(PassTimes, AreDrawnFromTheRecordingOfTheirShape) {
  const PassTimes recorded = recording(shape(0, 1, "100") + "," + shape(0, 3, "900, 100, 200"));
  EXPECT_THAT(times(recorded, {1, 3, 0}), ElementsAre(100, 200, 900));
  EXPECT_THAT(times(recorded, {1, 1, 0}), ElementsAre(100));
  testing::Random one(5);
  testing::Random two(5);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(recorded.sample({1, 3, 0}, one), recorded.sample({1, 3, 0}, two)) << "a function of the seed";
}

TEST(PassTimes, OfOtherShapesScatterLikeTheNearest) {
  const PassTimes recorded = recording(shape(0, 1, "100, 200, 100") + "," + shape(0, 5, "500") + "," +
                                       shape(100, 1, "1000") + "," + shape(100, 5, "2000, 4000, 1000"));
  EXPECT_THAT(times(recorded, {1, 3, 0}), ElementsAre(300, 600)) << "as near to 1 row as to 5 rows";
  EXPECT_THAT(times(recorded, {1, 4, 0}), ElementsAre(400));
  EXPECT_THAT(times(recorded, {1, 5, 60}), ElementsAre(700, 1400, 2800)) << "median 500 + 0.6 x 1500";
  EXPECT_THAT(times(recorded, {1, 5, 5000}), ElementsAre(1000, 2000, 4000));
}

}  // namespace
}  // namespace reprise::replay::pass_times_test
