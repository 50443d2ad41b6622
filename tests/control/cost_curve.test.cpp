// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/cost_curve.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::control_cost_curve_test {
namespace {

constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

double plain_passes(Cost cost) { return static_cast<double>(cost) / cost_one; }

TEST(Cost, ComesFromANumberOfPlainPasses) {
  EXPECT_EQ(to_cost(1), cost_one);
  EXPECT_EQ(to_cost(0.05), 3277U);
  EXPECT_EQ(to_cost(0), 0U);
  EXPECT_EQ(to_cost(-3), 0U);
  EXPECT_EQ(to_cost(1e9), std::numeric_limits<Cost>::max());
  EXPECT_EQ(to_cost(std::nan("")), 0U);
}

TEST(LinearCurve, IsOnePlusTheSlopeForEachDraftedRow) {
  for (const double slope : {0.0, 0.001, 0.005, 0.02, 0.05, 0.1, 0.3, 7.5}) {
    const CostCurve curve = CostCurve::linear(slope);
    for (std::size_t k = 0; k <= 200; ++k)
      EXPECT_NEAR(plain_passes(curve.cost({1, 1 + k, 500})), 1 + slope * static_cast<double>(k), 0.51 / cost_one);
  }
}

TEST(LinearCurve, CountsOneRowForEachSequenceAsPlain) {
  const CostCurve curve = CostCurve::linear(0.25);
  EXPECT_EQ(curve.cost({4, 4, 0}), cost_one);
  EXPECT_EQ(curve.cost({4, 8, 0}), 2 * cost_one);
  EXPECT_EQ(curve.cost({4, 2, 0}), cost_one) << "fewer rows than sequences is no pass; nothing breaks";
}

TEST(LinearCurve, Saturates) {
  EXPECT_EQ(CostCurve::linear(1e300).cost({1, huge, 0}), std::numeric_limits<Cost>::max());
  EXPECT_EQ(CostCurve::linear(0.05).cost({1, huge, 0}), std::numeric_limits<Cost>::max());
  EXPECT_EQ(CostCurve::linear(65536).cost({1, 2, 0}), std::numeric_limits<Cost>::max());
  EXPECT_EQ(CostCurve::linear(-1).cost({1, huge, 0}), cost_one);
  EXPECT_EQ(CostCurve::linear(std::nan("")).cost({1, 9, 0}), cost_one);
}

TEST(LinearCurve, IsATwentiethForEachRowByDefault) {
  EXPECT_EQ(CostCurve().cost({1, 11, 0}), CostCurve::linear(CostCurve::default_per_row).cost({1, 11, 0}));
  EXPECT_NEAR(plain_passes(CostCurve().cost({1, 11, 0})), 1.5, 1e-4);
}

/// The same curve from its definition, with maps and doubles.
class NaiveCurve {
 public:
  explicit NaiveCurve(const std::vector<CostPoint>& points) {
    for (const CostPoint& point : points) lines_[point.sequences][point.context][point.rows] = point.nanoseconds;
  }
  [[nodiscard]] double cost(const PassShape& shape) const {
    return nanoseconds(shape, shape.rows) / nanoseconds(shape, shape.sequences);
  }

 private:
  using Line = std::map<std::size_t, double>;

  static double between(double low, double high, double share) { return low + (high - low) * share; }
  static double at(const Line& line, std::size_t rows) {
    const auto above = line.lower_bound(rows);
    if (above == line.begin()) return above->second;
    const auto below = std::prev(above);
    if (above != line.end())
      return between(below->second, above->second,
                     static_cast<double>(rows - below->first) / static_cast<double>(above->first - below->first));
    if (below == line.begin()) return below->second;
    const auto before = std::prev(below);
    const double slope = (below->second - before->second) / static_cast<double>(below->first - before->first);
    return below->second + std::max(slope, 0.0) * static_cast<double>(rows - below->first);
  }
  [[nodiscard]] double nanoseconds(const PassShape& shape, std::size_t rows) const {
    auto found = lines_.upper_bound(shape.sequences);
    const std::map<std::size_t, Line>& contexts = found == lines_.begin() ? found->second : std::prev(found)->second;
    const auto above = contexts.lower_bound(shape.context);
    if (above == contexts.begin()) return at(above->second, rows);
    const auto below = std::prev(above);
    if (above == contexts.end()) return at(below->second, rows);
    return between(
        at(below->second, rows), at(above->second, rows),
        static_cast<double>(shape.context - below->first) / static_cast<double>(above->first - below->first));
  }

  std::map<std::size_t, std::map<std::size_t, Line>> lines_;
};

/// Random steps up and down: adjacent points differ by a factor of up to three.
std::vector<CostPoint> random_points(testing::Random& random) {
  std::vector<CostPoint> points;
  const double unit = std::pow(10.0, static_cast<double>(random.below(10)));
  for (std::size_t sequences = 1; sequences <= 1 + random.below(3) * 4; sequences += 1 + random.below(4))
    for (std::size_t context = random.below(50); context < 100'000; context += 1 + random.below(60'000))
      for (std::size_t rows = sequences; rows < 80; rows += 1 + random.below(20))
        points.push_back({sequences, context, rows, unit * (1 + static_cast<double>(random.below(20000)) / 10000)});
  for (std::size_t i = points.size(); i > 1; --i) std::swap(points[i - 1], points[random.below(i)]);
  return points;
}

TEST(MeasuredCurve, EqualsTheSameCurveInDoubles) {
  testing::Random random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::vector<CostPoint> points = random_points(random);
    const auto curve = CostCurve::from_points(points);
    ASSERT_TRUE(curve) << curve.error().message;
    const NaiveCurve naive(points);
    for (int i = 0; i < 200; ++i) {
      const std::size_t sequences = 1 + random.below(12);
      const PassShape shape{sequences, sequences + random.below(120), random.below(150'000)};
      const double expected = naive.cost(shape);
      EXPECT_NEAR(plain_passes(curve->cost(shape)) / expected, 1, 1.0 / (1 << 15))
          << shape.sequences << " " << shape.rows << " " << shape.context;
    }
  }
}

TEST(MeasuredCurve, GivesManyCostsAtOnce) {
  testing::Random random(2);
  const auto curve = CostCurve::from_points(random_points(random)).value();
  for (const CostCurve& c : {curve, CostCurve::linear(0.02)}) {
    const PassShape plain{2, 3, 777};
    std::array<Cost, 40> costs{};
    c.costs(plain, costs);
    for (std::size_t k = 0; k < costs.size(); ++k)
      EXPECT_EQ(costs[k], c.cost({plain.sequences, plain.rows + k, plain.context})) << k;
  }
}

TEST(MeasuredCurve, ReadsTheLastSlopeBeyondThePointsAndAFallingOneAsFlat) {
  const auto rising = CostCurve::from_points(std::vector<CostPoint>{{1, 0, 1, 100}, {1, 0, 2, 150}, {1, 0, 4, 200}});
  EXPECT_EQ(rising->cost({1, 3, 0}), to_cost(1.75));
  EXPECT_EQ(rising->cost({1, 8, 0}), 3 * cost_one);
  const auto falling = CostCurve::from_points(std::vector<CostPoint>{{1, 0, 1, 100}, {1, 0, 2, 150}, {1, 0, 4, 140}});
  EXPECT_EQ(falling->cost({1, 8, 0}), to_cost(1.4));
  EXPECT_EQ(CostCurve::from_points(std::vector<CostPoint>{{1, 0, 1, 100}})->cost({1, huge, huge}), cost_one);
  EXPECT_EQ(rising->cost({1, huge, 0}), std::numeric_limits<Cost>::max());
}

TEST(MeasuredCurve, TakesTheNearestSmallerNumberOfSequencesWithItsOwnPlainPass) {
  const auto curve =
      CostCurve::from_points(std::vector<CostPoint>{{1, 0, 1, 100}, {1, 0, 9, 180}, {8, 0, 8, 300}, {8, 0, 16, 600}});
  EXPECT_EQ(curve->cost({4, 4, 0}), cost_one);
  EXPECT_EQ(curve->cost({4, 9, 0}), to_cost(180.0 / 130));
  EXPECT_EQ(curve->cost({8, 16, 0}), 2 * cost_one);
  EXPECT_EQ(curve->cost({100, 100, 0}), cost_one);
}

TEST(MeasuredCurve, ReadsRelativeTimesToo) {
  const auto moe = CostCurve::from_points(
      std::vector<CostPoint>{{1, 0, 1, 1}, {1, 0, 2, 3.06}, {1, 0, 3, 3.49}, {1, 0, 4, 3.89}, {1, 0, 8, 5.11}});
  EXPECT_NEAR(plain_passes(moe->cost({1, 2, 0})), 3.06, 3.06 / (1 << 15));
  EXPECT_NEAR(plain_passes(moe->cost({1, 6, 0})), 4.5, 4.5 / (1 << 15));
  EXPECT_NEAR(plain_passes(moe->cost({1, 33, 0})), 5.11 + 25 * 0.305, 12.7 / (1 << 15));
}

struct Refused {
  std::vector<CostPoint> points;
  std::string why;
  std::uint64_t which;
};

TEST(MeasuredCurve, RefusesPointsThatSayNothing) {
  const CostPoint plain{1, 0, 1, 100};
  std::vector<Refused> cases = {
      {{}, "at least one point", 0},
      {{plain, {0, 0, 1, 100}}, "has 0 sequences", 1},
      {{plain, {4, 0, 3, 100}}, "fewer rows than sequences", 1},
      {{plain, {1, 0, 2, 0}}, "at least 0.1", 1},
      {{plain, {1, 0, 2, 0.09}}, "at least 0.1", 1},
      {{plain, {1, 0, 2, -1}}, "at least 0.1", 1},
      {{plain, {1, 0, 2, 1e300}}, "at most 2^40", 1},
      {{plain, {1, 0, 2, std::nan("")}}, "at least 0.1", 1},
      {{plain, {1, 0, 4, 5}, {1, 7, 4, 5}}, "lacks the time of a plain pass", 2},
      {{plain, {1, 0, 4, 5}, {1, 0, 8, 5}, {1, 0, 4, 6}}, "same sequences, context and rows", 3},
  };
  if (sizeof(std::size_t) > 4) {  // otherwise no number is too large
    const auto too_large = static_cast<std::size_t>(std::uint64_t{1} << 32);
    cases.push_back({{plain, {1, 0, too_large, 5}}, "2^32 - 1", 1});
    cases.push_back({{plain, {1, too_large, 1, 5}}, "2^32 - 1", 1});
  }
  for (const Refused& bad : cases) {
    const auto curve = CostCurve::from_points(bad.points);
    ASSERT_FALSE(curve) << bad.why;
    EXPECT_EQ(curve.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(curve.error().message.find(bad.why), std::string::npos) << curve.error().message;
    EXPECT_EQ(curve.error().value, bad.which) << bad.why;
  }
}

TEST(MeasuredCurve, HasTheStatedErrorAtTheShortestTimes) {
  testing::Random random(5);
  for (int i = 0; i < 2000; ++i) {
    const double plain = 0.1 + static_cast<double>(random.below(1000)) / 997'000;
    const double longer = plain * (0.25 + static_cast<double>(random.below(4000)) / 1000);
    if (longer < 0.1) continue;
    const CostPoint points[] = {{1, 0, 1, plain}, {1, 0, 2, longer}};
    const auto curve = CostCurve::from_points(points);
    ASSERT_TRUE(curve);
    EXPECT_NEAR(plain_passes(curve->cost({1, 2, 0})) * plain / longer, 1, 1.0 / (1 << 15)) << plain << " " << longer;
  }
}

TEST(MeasuredCurve, IsAValue) {
  const auto curve = CostCurve::from_points(std::vector<CostPoint>{{1, 0, 1, 100}, {1, 0, 5, 300}}).value();
  CostCurve copy = curve;
  EXPECT_EQ(copy.cost({1, 5, 0}), 3 * cost_one);
  EXPECT_TRUE(copy.depends_on_context());
  EXPECT_GT(copy.memory_bytes(), 0U);
  copy = CostCurve::linear(0);
  EXPECT_EQ(copy.cost({1, 5, 0}), cost_one);
  EXPECT_FALSE(copy.depends_on_context());
}

}  // namespace
}  // namespace reprise::control_cost_curve_test
