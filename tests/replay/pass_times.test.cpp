// SPDX-License-Identifier: Apache-2.0
#include "replay/pass_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "support/refusal.hpp"

namespace reprise::replay::pass_times_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

PassTimes recording(const std::string& shapes) {
  return PassTimes::parse("p.json", R"({"version": 1, "pass_times": [)" + shapes + R"(], "hardware": "x"})");
}
std::string shape(std::size_t context, std::size_t rows, const std::string& ns) {
  return R"({"context": )" + std::to_string(context) + R"(, "rows": )" + std::to_string(rows) + R"(, "ns": [)" + ns +
         "]}";
}
std::string refused_file(const std::string& text) {
  return testing::refusal([&] { return PassTimes::parse("p.json", text); });
}
std::string refused(const std::string& shapes) {
  return refused_file(R"({"version": 1, "pass_times": [)" + shapes + "]}");
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

TEST(PassTimes, RefuseWhatIsNoRecording) {
  EXPECT_THAT(refused_file("[]"), StartsWith("p.json: expected an object, found an array"));
  EXPECT_THAT(refused_file("{"), StartsWith("p.json:1: column 2: "));
  EXPECT_EQ(refused_file(R"({"pass_times": []})"), "p.json: version: missing");
  EXPECT_THAT(refused_file(R"({"version": 2, "pass_times": []})"), HasSubstr("only recordings of version 1"));
  EXPECT_EQ(refused_file(R"({"version": 1})"), "p.json: pass_times: missing");
  EXPECT_THAT(refused_file(R"({"version": 1, "pass_times": 5})"), HasSubstr("pass_times: expected an array, found"));
  EXPECT_EQ(refused_file(R"({"version": 1, "base_ns": 5, "points": []})"),
            "p.json is a cost curve, not a recording of pass times; give it with --cost");
}

TEST(PassTimes, RefuseWrongShapesAndNameThem) {
  EXPECT_THAT(refused(""), HasSubstr("p.json: pass_times: is empty"));
  EXPECT_THAT(refused("7"), HasSubstr("pass_times[0]: expected an object, found a number"));
  EXPECT_THAT(refused(R"({"rows": 1, "ns": [1]})"), HasSubstr("pass_times[0].context: missing"));
  EXPECT_THAT(refused(R"({"context": -1, "rows": 1, "ns": [1]})"),
              HasSubstr("pass_times[0].context: expected a whole"));
  EXPECT_THAT(refused(shape(0, 0, "5")), HasSubstr("pass_times[0].rows: a pass has at least one row"));
  EXPECT_THAT(refused(R"({"context": 0, "rows": 1, "ns": 5})"), HasSubstr("pass_times[0].ns: expected an array"));
  EXPECT_THAT(refused(shape(0, 1, "")), HasSubstr("pass_times[0].ns: is empty"));
  for (const char* ns : {"0", "-5", "\"5\"", "null"})
    EXPECT_THAT(refused(shape(0, 1, "5") + "," + shape(0, 2, std::string("5, ") + ns)),
                HasSubstr("pass_times[1].ns[1]: expected a time in nanoseconds, above 0"))
        << ns;
  EXPECT_THAT(refused(shape(0, 1, "5") + "," + shape(0, 1, "6")),
              HasSubstr("pass_times[1].rows: an earlier shape has the same context and rows"));
  EXPECT_THAT(refused(shape(0, 1, "5") + "," + shape(64, 2, "6")), HasSubstr("context 64 has no times of 1 row"));
}

TEST(PassTimes, AreToldFromOtherFiles) {
  EXPECT_TRUE(looks_like_pass_times(R"({"pass_times": 5})"));
  EXPECT_FALSE(looks_like_pass_times(R"({"points": 5})"));
  EXPECT_FALSE(looks_like_pass_times("{"));
}

}  // namespace
}  // namespace reprise::replay::pass_times_test
