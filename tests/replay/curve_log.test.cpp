// SPDX-License-Identifier: Apache-2.0
#include "replay/curve_log.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace reprise::replay::curve_log_test {
namespace {

TEST(CurveLog, HasPointsAtPowersOfTwoAndAtTheEnd) {
  const CostCurve actual = CostCurve::parse("linear:0.5");
  for (const std::size_t passes : {0U, 1U, 64U, 65U, 300U}) {
    LearnedCurve learned;
    CurveLog log(actual, 4);
    log.begin(learned, 7);
    for (std::size_t i = 0; i < passes; ++i) {
      const bool plain = i % 2 == 0;
      learned.learn(plain ? 1 : 3, plain, std::chrono::milliseconds(plain ? 10 : 20));
      log.add({{1, plain ? std::size_t{1} : 3, 100 + i}, 1, 1, &learned});
    }
    const std::vector<CurvePoint> points = log.points();
    std::vector<std::uint64_t> at;
    for (const CurvePoint& point : points) at.push_back(point.passes);
    std::vector<std::uint64_t> wanted = {0};
    for (const std::uint64_t point : {64U, 128U, 256U})
      if (point < passes) wanted.push_back(point);
    if (passes != 0) wanted.push_back(passes);
    EXPECT_EQ(at, wanted);
    EXPECT_EQ(points.front().context, 7U);
    EXPECT_EQ(points.back().context, passes == 0 ? 7 : 99 + passes);
    ASSERT_EQ(points.back().rows.size(), 4U);
    for (std::size_t rows = 1; rows <= 4; ++rows) {
      const CurvePoint::Row& row = points.back().rows[rows - 1];
      EXPECT_EQ(row.learned, static_cast<double>(learned.cost(rows)) / cost_one);
      EXPECT_EQ(row.uncertain, learned.uncertain(rows));
      EXPECT_EQ(row.actual, 1 + 0.5 * static_cast<double>(rows - 1));
    }
  }
}

TEST(CurveLog, StartsAgainWithEachCurve) {
  const CostCurve actual = CostCurve::parse("linear:0.5");
  const LearnedCurve learned;
  CurveLog log(actual, 2);
  for (const std::size_t passes : {70U, 3U}) {
    log.begin(learned, 1);
    for (std::size_t i = 0; i < passes; ++i) log.add({{1, 1, i}, 1, 1, &learned});
    EXPECT_EQ(log.points().back().passes, passes);
  }
  EXPECT_EQ(log.points().size(), 2U);
}

TEST(CurvePoint, FindsTheLargestErrorOfTheRowsThatAreCommon) {
  CurvePoint point;
  point.rows = {{1, 1}, {1.5, 1}, {2, 4}, {9, 1}};
  RowCounts counted;
  EXPECT_EQ(point.worst_rows(counted), 1U) << "nothing was sent";
  for (int i = 0; i < 99; ++i) counted.add(2);
  EXPECT_EQ(point.worst_rows(counted), 2U);
  counted.add(3);
  EXPECT_EQ(point.worst_rows(counted), 2U) << "50% too high and 50% too low: the first of both";
  point.rows[2].learned = 1.9;
  EXPECT_EQ(point.worst_rows(counted), 3U);
  for (int i = 0; i < 100; ++i) counted.add(1);
  EXPECT_EQ(point.worst_rows(counted), 2U) << "3 rows in less than 1% of the passes";
  counted.add(1000);
  EXPECT_FALSE(counted.common(1000));
}

}  // namespace
}  // namespace reprise::replay::curve_log_test
