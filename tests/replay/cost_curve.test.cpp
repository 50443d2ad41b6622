// SPDX-License-Identifier: Apache-2.0
#include "replay/cost_curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "reprise_testing/measure_curve.hpp"

namespace reprise::replay::replay_cost_curve_test {
namespace {

CostCurve file(const std::string& points, const std::string& base = "100") {
  return CostCurve::parse_file(
      "c.json", R"({"version": 1, "base_ns": )" + base + R"(, "hardware": "x", "points": [)" + points + "]}");
}
std::string point(std::size_t context, std::size_t rows, const std::string& ns, std::size_t sequences = 1) {
  return R"({"sequences": )" + std::to_string(sequences) + R"(, "context": )" + std::to_string(context) +
         R"(, "rows": )" + std::to_string(rows) + R"(, "ns": )" + ns + "}";
}

TEST(LinearCost, IsOnePlusTheSlopeForEachDraftedToken) {
  const CostCurve curve = CostCurve::parse("linear:0.25");
  EXPECT_EQ(curve.spec(), "linear:0.25");
  EXPECT_DOUBLE_EQ(curve.cost({1, 1, 500}), 1);
  EXPECT_DOUBLE_EQ(curve.cost({1, 5, 500}), 2);
  EXPECT_DOUBLE_EQ(CostCurve::parse("linear:0").cost({1, 33, 0}), 1);
}

TEST(CostCurve, ChargesTheTollOfHavingADrafter) {
  const std::string points = point(128, 1, "120") + "," + point(128, 9, "180") + "," + point(128, 36, "240", 4);
  const CostCurve curve =
      CostCurve::parse_file("c.json", R"({"version": 1, "base_ns": 120, "plain_ns": 100, "points": [)" + points + "]}");
  EXPECT_DOUBLE_EQ(curve.toll(), 1.2);
  EXPECT_DOUBLE_EQ(curve.cost({1, 1, 128}), 1.2) << "a pass without a draft has a drafter, too";
  EXPECT_DOUBLE_EQ(curve.cost({1, 9, 128}), 1.8);
  EXPECT_DOUBLE_EQ(curve.batch_cost({1, 9, 128}), 1.5) << "over a pass of the same engine";
  EXPECT_DOUBLE_EQ(curve.batch_cost({4, 36, 128}), 2.0);
  EXPECT_EQ(curve.for_control().cost({1, 9, 128}),
            file(point(128, 1, "120") + "," + point(128, 9, "180"), "120").for_control().cost({1, 9, 128}))
      << "no draft changes it";
  EXPECT_DOUBLE_EQ(file(point(128, 9, "180")).toll(), 1);
  EXPECT_DOUBLE_EQ(CostCurve::parse("linear:0.25").toll(), 1);
}

TEST(CostCurve, GivesAPlannerAlsoThePointsOfSeveralSequences) {
  const CostCurve curve = file(point(128, 1, "100") + "," + point(128, 9, "180") + "," + point(128, 4, "100", 4) + "," +
                               point(128, 36, "300", 4));
  const PassShape shared{4, 36, 128};
  const auto cost = [](const reprise::CostCurve& of, const PassShape& shape) {
    return static_cast<double>(of.cost(shape)) / cost_one;
  };
  EXPECT_NEAR(cost(curve.for_planner(), shared), 3.0, 0.01);
  EXPECT_GT(cost(curve.for_control(), shared), 3.1) << "control reads those of one sequence";
  EXPECT_EQ(curve.for_planner().cost({1, 9, 128}), curve.for_control().cost({1, 9, 128}));
}

TEST(CostCurve, ChargesABatchByTheNextSmallerMeasuredNumberOfSequences) {
  const CostCurve curve = file(point(128, 1, "100") + "," + point(128, 9, "180") + "," + point(128, 4, "150", 4) + "," +
                               point(128, 36, "310", 4));
  EXPECT_DOUBLE_EQ(curve.batch_cost({1, 5, 128}), 1.4);
  EXPECT_DOUBLE_EQ(curve.batch_cost({3, 5, 128}), 1.4) << "not measured: by the points of one sequence";
  EXPECT_DOUBLE_EQ(curve.batch_cost({4, 20, 128}), 2.3);
  EXPECT_DOUBLE_EQ(curve.batch_cost({16, 20, 128}), 2.3) << "not measured: by the points of four";
  EXPECT_DOUBLE_EQ(CostCurve::parse("linear:0.1").batch_cost({4, 11, 0}), 2);
}

TEST(MeasuredCost, IsLinearBetweenRowsAndGoesOnWithTheLastSlope) {
  const CostCurve curve = file(point(0, 1, "100") + "," + point(0, 3, "120") + "," + point(0, 5, "200"));
  EXPECT_DOUBLE_EQ(curve.cost({1, 1, 0}), 1.0);
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 0}), 1.1);
  EXPECT_DOUBLE_EQ(curve.cost({1, 3, 0}), 1.2);
  EXPECT_DOUBLE_EQ(curve.cost({1, 4, 0}), 1.6);
  EXPECT_DOUBLE_EQ(curve.cost({1, 7, 0}), 2.8) << "40 ns for each row beyond";
}

TEST(MeasuredCost, NeedNotRiseAndNeverFallsBeyondItsPoints) {
  const CostCurve curve = file(point(0, 1, "100") + "," + point(0, 2, "300") + "," + point(0, 4, "200"));
  EXPECT_DOUBLE_EQ(curve.cost({1, 3, 0}), 2.5);
  EXPECT_DOUBLE_EQ(curve.cost({1, 30, 0}), 2.0);
}

TEST(MeasuredCost, IsLinearBetweenContextsAndTakesTheNearestOutside) {
  // At a context of 1,000 tokens two rows cost 150 and one 100; at 3,000 they cost 600 and 200.
  const CostCurve curve = file(point(1000, 1, "100") + "," + point(1000, 2, "150") + "," + point(3000, 1, "200") + "," +
                               point(3000, 2, "600"));
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 0}), 1.5);
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 1000}), 1.5);
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 2000}), 375.0 / 150.0);
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 9000}), 3.0);
  EXPECT_DOUBLE_EQ(curve.cost({1, 1, 2000}), 1.0) << "plain decoding costs 1 at every context";
}

TEST(MeasuredCost, TakesTheBaseWhereNoPointSaysWhatAPlainPassCosts) {
  EXPECT_DOUBLE_EQ(file(point(0, 3, "200"), "50").cost({1, 3, 0}), 4.0);
  EXPECT_DOUBLE_EQ(file(point(0, 3, "200"), "50").cost({1, 2, 0}), 2.5);
  EXPECT_DOUBLE_EQ(file(point(0, 1, "100") + "," + point(0, 3, "200"), "50").cost({1, 3, 0}), 2.0);
}

TEST(MeasuredCost, IsReadAsTheTestingKitWritesIt) {
  testing::MeasuredCurve::Settings settings;
  settings.contexts = {100};
  settings.rows = {1, 3};
  const auto measured = testing::measure_cost_curve(
      [](const PassShape& shape) { return std::chrono::nanoseconds(1000 + 250 * shape.rows); }, settings);
  const CostCurve curve = CostCurve::parse_file("c.json", measured.to_json({.hardware = "a \"fast\" one\n"}));
  EXPECT_DOUBLE_EQ(curve.cost({1, 1, 100}), 1);
  EXPECT_DOUBLE_EQ(curve.cost({1, 3, 100}), 1.4);
  EXPECT_DOUBLE_EQ(curve.cost({1, 2, 100}), 1.2);
}

TEST(MeasuredCost, UsesThePointsOfOneSequence) {
  EXPECT_DOUBLE_EQ(file(point(0, 2, "200") + "," + point(0, 2, "900", 2)).cost({1, 2, 0}), 2.0);
}

TEST(CostCurve, IsToldToControlAsItIsCharged) {
  const auto agree = [](const CostCurve& curve) {
    const reprise::CostCurve told = curve.for_control();
    for (const std::size_t context : std::vector<std::size_t>{0, 100, 1000, 2500, 9000})
      for (std::size_t rows = 1; rows <= 40; ++rows) {
        const PassShape shape{1, rows, context};
        const double plain = static_cast<double>(told.cost({1, 1, context}));
        ASSERT_NEAR(static_cast<double>(told.cost(shape)) / plain, curve.cost(shape), 1e-3 * curve.cost(shape))
            << curve.spec() << ", " << rows << " rows, " << context << " tokens of context";
      }
  };
  for (const char* spec : {"linear:0", "linear:0.005", "linear:0.3", "linear:2"}) agree(CostCurve::parse(spec));
  agree(file(point(0, 1, "100000") + "," + point(0, 3, "120000") + "," + point(0, 5, "200000"), "100000"));
  agree(file(point(0, 1, "100000") + "," + point(0, 2, "300000") + "," + point(0, 4, "200000"), "100000"));
  agree(file(point(1000, 1, "100000") + "," + point(1000, 2, "150000") + "," + point(3000, 1, "200000") + "," +
                 point(3000, 2, "600000"),
             "100000"));
  agree(file(point(0, 3, "200000"), "50000"));
}

const std::vector<std::filesystem::path> profiles = {"nowhere", REPRISE_SOURCE_DIR "/bench/profiles"};

TEST(CostCurve, IsFoundAmongTheBundledOnesByItsName) {
  const CostCurve step = CostCurve::parse("step-8.json", profiles);
  EXPECT_EQ(step.spec(), "step-8.json");
  for (std::size_t rows = 1; rows <= 40; ++rows) EXPECT_DOUBLE_EQ(step.cost({1, rows, 300}), rows <= 8 ? 1 : 2.1);
  const CostCurve moe = CostCurve::parse("moe.json", profiles);
  const std::vector<double> times = {1, 3.06, 3.49, 3.89};
  for (std::size_t rows = 1; rows <= 4; ++rows) EXPECT_DOUBLE_EQ(moe.cost({1, rows, 300}), times[rows - 1]);
  EXPECT_DOUBLE_EQ(moe.cost({1, 8, 300}), 5.11);
  EXPECT_DOUBLE_EQ(moe.cost({1, 12, 300}), 5.11 + (5.11 - 3.89));
}

}  // namespace
}  // namespace reprise::replay::replay_cost_curve_test
