// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/cost_curve.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/detail/learned_curve.hpp"
#include "reprise_testing/random.hpp"
#include "support/learned_curves.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::cost_prior_test {
namespace {

using std::chrono::nanoseconds;
using testing::after;
using testing::cost;
using testing::exactly;
using testing::noisy_time;

CostPrior linear(double per_row) { return CostPrior::of(CostCurve::linear(per_row)); }

TEST(CostPrior, AssumesNothingUnlessSaid) {
  CostPrior prior;
  EXPECT_TRUE(prior.empty());
  EXPECT_EQ(prior.size(), 0U);
  EXPECT_EQ(prior.widest(), 1U);
  for (const std::size_t rows : {0U, 1U, 65U, 1000U}) {
    prior.assume(rows, cost_one);
    EXPECT_FALSE(prior.assumes(rows)) << rows;
  }
  EXPECT_TRUE(prior.empty());
  prior.assume(5, 0);
  prior.assume(9, ~Cost{0});
  EXPECT_EQ(prior.cost(5), CostPrior::least_cost);
  EXPECT_EQ(prior.cost(9), CostPrior::most_cost);
  EXPECT_EQ(prior.size(), 2U);
  EXPECT_EQ(prior.widest(), 9U);
  EXPECT_FALSE(prior.assumes(6));
}

TEST(CostPrior, KindsOfEnginesHaveTheStatedCosts) {
  const CostPrior gpu = CostPrior::gpu_batch_1();
  const CostPrior cpu = CostPrior::cpu_quantised();
  EXPECT_EQ(gpu.size(), 63U);
  EXPECT_EQ(cpu.size(), 63U);
  const auto near = [](Cost cost, double expected) {
    EXPECT_NEAR(static_cast<double>(cost) / cost_one, expected, 1e-3);
  };
  near(gpu.cost(2), 1.01);
  near(gpu.cost(33), 1.32);
  near(gpu.cost(43), 1.52);
  near(cpu.cost(2), 1.65);
  near(cpu.cost(3), 2.0);
  near(cpu.cost(12), 5.15);
}

TEST(CostPrior, IsAnyCurveAtAContext) {
  const std::vector<CostPoint> points = {{1, 0, 1, 100}, {1, 0, 5, 180}, {1, 1000, 1, 200}, {1, 1000, 5, 600}};
  const CostCurve curve = CostCurve::from_points(points).value();
  for (std::size_t rows = 2; rows <= 64; ++rows) {
    EXPECT_EQ(CostPrior::of(curve).cost(rows), curve.cost({1, rows, 0})) << rows;
    EXPECT_EQ(CostPrior::of(curve, 1000).cost(rows), curve.cost({1, rows, 1000})) << rows;
  }
}

TEST(LearnedCurveWithPrior, OfNothingIsTheDefaultCurve) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    LearnedCurve without;
    LearnedCurve with{CostPrior()};
    testing::Random random(seed);
    for (int i = 0; i < 400; ++i) {
      const std::size_t rows = random.below(3) == 0 ? 1 : 1 + random.below(20);
      const nanoseconds time = noisy_time(1 + 0.2 * double(rows), random, 1);
      without.learn(rows, rows == 1, time);
      with.learn(rows, rows == 1, time);
      for (std::size_t r = 1; r < 70; ++r) ASSERT_EQ(without.cost(r), with.cost(r)) << i << " " << r;
      ASSERT_EQ(without.explored_rows(), with.explored_rows());
    }
  }
}

TEST(LearnedCurveWithPrior, HasTheAssumedCostsBeforeTimes) {
  for (const CostPrior& prior : {CostPrior::gpu_batch_1(), CostPrior::cpu_quantised(), linear(0.3)}) {
    const LearnedCurve curve(prior);
    EXPECT_EQ(curve.cost(1), cost_one);
    for (std::size_t rows = 2; rows <= 64; ++rows) {
      EXPECT_EQ(curve.cost(rows), prior.cost(rows)) << rows;
      EXPECT_FALSE(curve.uncertain(rows)) << rows;
      EXPECT_FALSE(curve.trusted(rows)) << rows;
    }
    EXPECT_EQ(curve.explored_rows(), 64U);
    EXPECT_EQ(curve.prior(), prior);
  }
  CostPrior few;
  few.assume(12, to_cost(2));
  EXPECT_EQ(LearnedCurve(few).explored_rows(), 12U);
  EXPECT_EQ(LearnedCurve().explored_rows(), 3U);
}

TEST(LearnedCurveWithPrior, IsCorrectedByFewTimesIfItsSlopeIsWrongByThree) {
  for (const double assumed : {0.1, 0.9})
    for (const std::size_t most : {8U, 32U}) {
      const testing::SimulatedEngine engine{"", [](std::size_t rows) { return 1 + 0.3 * double(rows - 1); }};
      const LearnedCurve curve = after(LearnedCurve(linear(assumed)), 100, engine, most);
      for (std::size_t rows = 2; rows <= most; ++rows)
        EXPECT_NEAR(cost(curve, rows) / engine.cost(rows), 1, 0.15) << assumed << " " << rows;
    }
}

TEST(LearnedCurveWithPrior, OfTheWrongKindIsCorrectedAsAWhole) {
  // A row costs a whole pass where 1% was assumed, and the other way round. Six times of three row counts correct the
  // costs of all others.
  const std::array<std::size_t, 5> others = {7, 12, 20, 30, 40};
  for (const auto& [prior, per_row] : {std::pair(CostPrior::gpu_batch_1(), 1.0), std::pair(linear(1), 0.01)}) {
    LearnedCurve curve(prior);
    const auto time = [per_row = per_row](std::size_t rows) { return 1 + per_row * static_cast<double>(rows - 1); };
    curve.learn(1, true, exactly(1));
    curve.learn(9, false, exactly(time(9)));
    for (const std::size_t rows : others) EXPECT_EQ(curve.cost(rows), prior.cost(rows)) << "one pass says nothing";
    for (const std::size_t rows : {9U, 17U, 17U, 25U, 25U}) curve.learn(rows, false, exactly(time(rows)));
    for (const std::size_t rows : others)
      EXPECT_NEAR(cost(curve, rows) / time(rows), 1, 0.25) << per_row << " " << rows;
  }
}

TEST(LearnedCurveWithPrior, IgnoresASlowPassAmongGoodOnes) {
  LearnedCurve curve(CostPrior::gpu_batch_1());
  for (std::size_t i = 0; i < 20; ++i) {
    curve.learn(1, true, exactly(1));
    curve.learn(2 + i, false, i % 3 == 0 ? exactly(10) : exactly(1 + 0.01 * static_cast<double>(i + 1)));
  }
  for (const std::size_t rows : {3U, 9U, 20U, 40U})
    EXPECT_NEAR(cost(curve, rows), static_cast<double>(CostPrior::gpu_batch_1().cost(rows)) / cost_one, 0.05) << rows;
}

TEST(LearnedCurveWithPrior, IsNotRescaledByTheFirstPlainTimes) {
  // The mean of the plain times falls by a third. Costs that no time has entered stay.
  LearnedCurve curve(linear(0.3));
  for (const double time : {1.5, 1.0, 1.0, 1.0, 1.0, 1.0}) curve.learn(1, true, exactly(time));
  for (std::size_t rows = 2; rows <= 64; ++rows) EXPECT_EQ(curve.cost(rows), linear(0.3).cost(rows)) << rows;
}

TEST(LearnedCurveWithPrior, IsDoubtedAfterAWhileWithoutTimes) {
  LearnedCurve curve(linear(0.3));
  for (int i = 0; i < 300; ++i) curve.learn(1, true, exactly(1));
  EXPECT_TRUE(curve.uncertain(9));
  EXPECT_EQ(curve.cost(9), linear(0.3).cost(9));
  EXPECT_LT(curve.plausible(9, curve.cost(9)), to_cost(1 + 8 * 0.3 / 2));
}

TEST(LearnedCurveWithPrior, OfALearnedCurveHasItsCosts) {
  for (const testing::SimulatedEngine& engine : testing::simulated_engines())
    for (const std::size_t passes : {3U, 30U, 300U, 3000U}) {
      const LearnedCurve curve = after(LearnedCurve(), passes, engine, 20, passes);
      if (curve.prior().empty()) continue;
      const LearnedCurve again(curve.prior());
      for (std::size_t rows = 1; rows <= 64; ++rows)
        EXPECT_NEAR(cost(again, rows), cost(curve, rows), 1e-3 * cost(curve, rows))
            << engine.name << " " << passes << " " << rows;
      EXPECT_EQ(again.prior(), curve.prior());
    }
}

TEST(CostControlWithPrior, PricesPassesByItWithoutTimes) {
  const CostControl control(CostOptions{.prior = CostPrior::cpu_quantised()});
  for (const std::size_t rows : {2U, 9U, 33U})
    EXPECT_EQ(control.cost({1, rows, 0}), CostPrior::cpu_quantised().cost(rows)) << rows;
  EXPECT_EQ(control.learned().prior(), CostPrior::cpu_quantised());
  CostOptions told{.curve = CostCurve::linear(0.5), .prior = CostPrior::cpu_quantised()};
  EXPECT_EQ(CostControl(told).cost({1, 9, 0}), CostCurve::linear(0.5).cost({1, 9, 0})) << "a curve has precedence";
}

}  // namespace
}  // namespace reprise::cost_prior_test
