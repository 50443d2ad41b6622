// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/measure_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reprise::testing::measure_curve_test {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Takes 1,000 ns, plus 100 ns for each further row and 1 ns per token of context. The first three runs of a shape take
/// ten times as long.
struct FakeEngine {
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> runs = {};  // by context and rows
  std::vector<std::size_t> rows = {};                                    // in the order of the calls

  std::int64_t time(const PassShape& shape) {
    rows.push_back(shape.rows);
    const bool cold = runs[{shape.context, shape.rows}]++ < 3;
    const auto warm = static_cast<std::int64_t>(900 + 100 * shape.rows + shape.context);
    return cold ? 10 * warm : warm;
  }
};

MeasuredCurve::Settings small() {
  MeasuredCurve::Settings settings;
  settings.contexts = {0};
  settings.rows = {1, 2, 4};
  return settings;
}

std::vector<std::int64_t> medians(const MeasuredCurve& curve) {
  std::vector<std::int64_t> all;
  for (const MeasuredCurve::Point& point : curve.points) all.push_back(point.median);
  return all;
}

TEST(MeasureCurve, CountsNoPassesOfTheWarmUp) {
  FakeEngine engine;
  const auto curve = measure_cost_curve([&](const PassShape& s) { return nanoseconds(engine.time(s)); }, small());
  EXPECT_THAT(medians(curve), ElementsAre(1000, 1100, 1300));
  EXPECT_EQ(curve.points[1].spread(), 0);
  EXPECT_THAT(curve.warnings, IsEmpty());
  EXPECT_EQ(engine.rows.size(), 7U * (3 + 15));
}

TEST(MeasureCurve, LetsAllNumbersOfRowsTakeTurns) {
  FakeEngine engine;
  static_cast<void>(measure_cost_curve([&](const PassShape& s) { return nanoseconds(engine.time(s)); }, small()));
  EXPECT_THAT(std::vector(engine.rows.begin(), engine.rows.begin() + 7), ElementsAre(1, 2, 1, 1, 4, 1, 1));
  for (std::size_t i = 7; i < engine.rows.size(); ++i) ASSERT_EQ(engine.rows[i], engine.rows[i - 7]);
}

TEST(MeasureCurve, ChargesADraftForTheChangesOfShapeBeforeAndAfterIt) {
  std::size_t last = 0;
  const auto run = [&](const PassShape& shape) {
    const bool changed = std::exchange(last, shape.rows) != shape.rows;
    return nanoseconds(900 + 100 * shape.rows + (changed ? 70 : 0));
  };
  EXPECT_THAT(medians(measure_cost_curve(run, small())), ElementsAre(1000, 1100 + 140, 1300 + 140));
}

TEST(MeasureCurve, HasNoLineIfThePlainPassFails) {
  const auto run = [](const PassShape& shape) -> Result<nanoseconds> {
    if (shape.rows > 1) return nanoseconds(1000);
    return Error{ErrorCode::verifier_failed, "not one row"};
  };
  const auto curve = measure_cost_curve(run, small());
  EXPECT_THAT(curve.points, IsEmpty());
  ASSERT_EQ(curve.warnings.size(), 1U) << curve.to_string();
  EXPECT_EQ(curve.warnings[0].shape.rows, 1U);
}

TEST(MeasureCurve, MeasuresEveryContextAndNumberOfSequencesWithItsPlainPass) {
  MeasuredCurve::Settings settings = small();
  settings.contexts = {500, 100, 500};
  settings.sequences = {2, 1, 0};
  settings.rows = {4, 2, 4};
  FakeEngine engine;
  const auto curve = measure_cost_curve([&](const PassShape& s) { return nanoseconds(engine.time(s)); }, settings);
  std::vector<std::string> shapes;
  for (const MeasuredCurve::Point& point : curve.points)
    shapes.push_back(std::to_string(point.shape.sequences) + ' ' + std::to_string(point.shape.context) + ' ' +
                     std::to_string(point.shape.rows));
  EXPECT_THAT(shapes, ElementsAre("1 100 1", "1 100 2", "1 100 4", "1 500 1", "1 500 2", "1 500 4",  //
                                  "2 100 2", "2 100 4", "2 500 2", "2 500 4"));
}

TEST(MeasureCurve, IsNotMovedByAFewOutliers) {
  FakeEngine engine;
  std::size_t call = 0;
  const auto run = [&](const PassShape& shape) {
    const std::int64_t time = engine.time(shape);
    return nanoseconds(++call % 11 == 0 ? 50 * time : time);
  };
  const auto curve = measure_cost_curve(run, small());
  EXPECT_THAT(medians(curve), ElementsAre(1000, 1100, 1300));
  EXPECT_THAT(curve.warnings, IsEmpty());
}

TEST(MeasureCurve, WarnsOfPointsThatAreNoisy) {
  FakeEngine engine;
  std::size_t call = 0;
  const auto run = [&](const PassShape& shape) {
    const std::int64_t time = engine.time(shape);
    if (shape.rows != 2) return nanoseconds(time);
    const auto step = static_cast<std::int64_t>(++call % 5);
    return nanoseconds(time - 100 + 50 * step);  // 1,000 to 1,200: quartiles 1,050 and 1,150
  };
  MeasuredCurve::Settings settings = small();
  EXPECT_THAT(measure_cost_curve(run, settings).warnings, IsEmpty()) << "9% of the median";
  settings.noisy_percent = 8;
  engine = {};
  const auto curve = measure_cost_curve(run, settings);
  ASSERT_EQ(curve.warnings.size(), 1U) << curve.to_string();
  EXPECT_EQ(curve.warnings[0].doubt, MeasuredCurve::Doubt::noisy);
  EXPECT_EQ(curve.warnings[0].shape.rows, 2U);
  EXPECT_THAT(curve.warnings[0].message, HasSubstr("1050 to 1150 ns"));
  EXPECT_TRUE(curve.curve()) << "it can be used nevertheless";
}

TEST(MeasureCurve, WarnsWhereTheCurveFalls) {
  const auto run = [](const PassShape& shape) { return nanoseconds(shape.rows == 2 ? 1200 : 1150); };
  const auto curve = measure_cost_curve(run, small());
  ASSERT_EQ(curve.warnings.size(), 1U) << curve.to_string();
  EXPECT_EQ(curve.warnings[0].doubt, MeasuredCurve::Doubt::falls);
  EXPECT_EQ(curve.warnings[0].shape.rows, 4U);
  EXPECT_THAT(curve.warnings[0].message, HasSubstr("1150 ns, and 1200 ns for 2 rows"));
  EXPECT_TRUE(curve.curve()) << "a curve need not rise";
  const auto hardly = [](const PassShape& shape) { return nanoseconds(shape.rows == 2 ? 1180 : 1150); };
  EXPECT_THAT(measure_cost_curve(hardly, small()).warnings, IsEmpty()) << "by 2.5%";
}

TEST(MeasureCurve, DoesNotCompareDifferentContexts) {
  MeasuredCurve::Settings settings = small();
  settings.contexts = {10, 1000};
  const auto run = [](const PassShape& shape) { return nanoseconds(5000 + 100 * shape.rows - shape.context); };
  EXPECT_THAT(measure_cost_curve(run, settings).warnings, IsEmpty());
}

TEST(MeasureCurve, WarnsOfAClockThatIsTooCoarse) {
  const auto curve = measure_cost_curve([](const PassShape&) { return nanoseconds(0); }, small());
  ASSERT_EQ(curve.warnings.size(), 3U);
  EXPECT_EQ(curve.warnings[0].doubt, MeasuredCurve::Doubt::no_time);
  EXPECT_FALSE(curve.curve());
}

TEST(MeasureCurve, LeavesOutShapesThatTheEngineRefuses) {
  std::size_t refused = 0;
  const auto run = [&](const PassShape& shape) -> Result<nanoseconds> {
    if (shape.rows <= 2) return nanoseconds(1000 * shape.rows);
    ++refused;
    return Error{ErrorCode::verifier_failed, "too wide"};
  };
  const auto curve = measure_cost_curve(run, small());
  EXPECT_THAT(medians(curve), ElementsAre(1000, 2000));
  ASSERT_EQ(curve.warnings.size(), 1U);
  EXPECT_EQ(curve.warnings[0].doubt, MeasuredCurve::Doubt::failed);
  EXPECT_EQ(refused, 1U) << "it is not asked again";
}

/// A clock that only a pass advances.
struct FakeClock {
  using duration = std::chrono::microseconds;
  using time_point = std::chrono::time_point<FakeClock, duration>;
  static inline time_point time = {};
  static time_point now() { return time; }
};

TEST(MeasureCurve, TakesTheTimeFromTheCallersClock) {
  const auto run = [](const PassShape& shape) { FakeClock::time += std::chrono::microseconds(7 + shape.rows); };
  EXPECT_THAT(medians(measure_cost_curve<FakeClock>(run, small())), ElementsAre(8000, 9000, 11000));
}

TEST(MeasureCurve, BecomesACostCurve) {
  FakeEngine engine;
  const auto measured = measure_cost_curve([&](const PassShape& s) { return nanoseconds(engine.time(s)); }, small());
  const auto curve = measured.curve();
  ASSERT_TRUE(curve);
  EXPECT_EQ(curve->cost({1, 1, 0}), cost_one);
  EXPECT_EQ(curve->cost({1, 4, 0}), to_cost(1.3));
  EXPECT_EQ(measured.cost_points()[1].nanoseconds, 1100);
}

TEST(MeasureCurve, IsWrittenAsACurveFile) {
  MeasuredCurve::Settings settings = small();
  settings.rows = {2};
  FakeEngine engine;
  const auto curve = measure_cost_curve([&](const PassShape& s) { return nanoseconds(engine.time(s)); }, settings);
  EXPECT_EQ(
      curve.to_json({.hardware = "a \"fast\" one", .model = "tiny\n", .date = "2026-11-22", .command = "a\\b"}),
      "{\"version\": 1, \"base_ns\": 1000, \"points\": [{\"sequences\": 1, \"context\": 0, \"rows\": 1, \"ns\": 1000}, "
      "{\"sequences\": 1, \"context\": 0, \"rows\": 2, \"ns\": 1100}], \"hardware\": \"a \\\"fast\\\" one\", "
      "\"model\": \"tiny\\u000a\", \"date\": \"2026-11-22\", \"command\": \"a\\\\b\"}\n");
  EXPECT_EQ(curve.to_string(),
            "sequences context rows: median ns (quartiles)\n1 0 1: 1000 (1000 to 1000)\n1 0 2: 1100 (1100 to 1100)\n");
}

}  // namespace
}  // namespace reprise::testing::measure_curve_test
