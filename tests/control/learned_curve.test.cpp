// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/detail/learned_curve.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "reprise/control/detail/pass_costs.hpp"
#include "reprise_testing/random.hpp"
#include "support/learned_curves.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::learned_curve_test {

// Gives the tests the private numbers of passes, because 2^31 passes would take minutes. An explicit instantiation may
// name private members.
std::uint64_t& passes_of(LearnedCurve& curve);
std::uint64_t& last_plain_of(LearnedCurve& curve);
template <auto Passes, auto Plain>
struct PassNumbers {
  friend std::uint64_t& passes_of(LearnedCurve& curve) { return curve.*Passes; }
  friend std::uint64_t& last_plain_of(LearnedCurve& curve) { return (curve.*Plain).seen; }
};
template struct PassNumbers<&LearnedCurve::passes_, &LearnedCurve::plain_>;

namespace {

using std::chrono::nanoseconds;
using testing::after;
using testing::cost;
using testing::exactly;
using testing::noisy_time;
using testing::SimulatedEngine;

TEST(LearnedCurve, IsTheDefaultCurveAtFirst) {
  const LearnedCurve curve;
  for (std::size_t rows = 1; rows <= 100; ++rows)
    EXPECT_NEAR(cost(curve, rows), 1 + CostCurve::default_per_row * static_cast<double>(rows - 1), 0.01) << rows;
  EXPECT_EQ(curve.cost(0), cost_one);
  EXPECT_FALSE(curve.should_probe_plain(cost_one, false));
}

TEST(LearnedCurve, FindsEveryCurveInNoise) {
  for (const testing::SimulatedEngine& engine : testing::simulated_engines()) {
    const LearnedCurve curve = after({}, 6000, engine, 33);
    for (std::size_t rows = 1; rows <= 33; ++rows)
      EXPECT_NEAR(cost(curve, rows) / testing::plausible_cost(engine, rows), 1, 0.06) << engine.name << " " << rows;
  }
}

TEST(LearnedCurve, TriesAsOftenAfterBillionsOfPlainPasses) {
  constexpr std::uint64_t half = std::uint64_t{1} << 31;
  for (const std::uint64_t plain_passes :
       {std::uint64_t{0}, half - 5000, half + 8, 2 * half - 600, 2 * half + 8, half << 20}) {
    LearnedCurve curve = after({}, 600, {"linear", [](std::size_t rows) { return 0.9 + 0.1 * double(rows); }}, 9);
    passes_of(curve) += plain_passes;
    last_plain_of(curve) += plain_passes;
    const std::uint64_t begun = curve.passes();
    std::size_t may_try = 0, probes = 0, uncertain = 0;
    for (int pass = 0; pass < 4096; ++pass) {
      curve.learn(1, true, nanoseconds(10'000'000));
      may_try += curve.may_try() ? 1 : 0;
      probes += curve.should_probe_plain(std::int64_t{1} << 20, false) ? 1 : 0;
      uncertain += curve.uncertain(5) ? 1 : 0;
    }
    EXPECT_EQ(curve.passes(), begun + 4096);
    EXPECT_EQ(may_try, 512U) << plain_passes;  // each eighth pass
    EXPECT_EQ(probes, 0U) << plain_passes;
    EXPECT_TRUE(plain_passes == 0 || uncertain == 4096) << plain_passes;
  }
}

TEST(LearnedCurve, NeverFallsBelowAPlainPass) {
  for (const std::size_t passes : {1U, 5U, 20U, 100U, 1000U})
    for (const testing::SimulatedEngine& engine : testing::simulated_engines()) {
      const LearnedCurve curve = after({}, passes, engine, 40);
      for (std::size_t rows = 1; rows < 80; ++rows) EXPECT_GE(curve.cost(rows), cost_one) << engine.name;
    }
}

TEST(LearnedCurve, FollowsThePlainTimeAsTheContextGrows) {
  for (const testing::SimulatedEngine& engine : testing::simulated_engines()) {
    const LearnedCurve curve = after({}, 6000, engine, 16, 9, 5e-4);  // four times as slow at the end
    for (std::size_t rows = 2; rows <= 16; ++rows)
      EXPECT_NEAR(cost(curve, rows) / testing::plausible_cost(engine, rows), 1, 0.08) << engine.name << " " << rows;
  }
}

TEST(LearnedCurve, FollowsItWithFewPlainPassesToo) {
  LearnedCurve curve;
  testing::Random random(3);
  for (int i = 0; i < 20; ++i) curve.learn(1, true, noisy_time(1, random));
  for (int i = 0; i < 4000; ++i) {
    const bool plain = curve.should_probe_plain(to_cost(4), false);
    curve.learn(plain ? 1 : 9, plain, noisy_time(plain ? 1 : 1.4, random, 1 + i / 4000.0));
  }
  EXPECT_NEAR(cost(curve, 9), 1.4, 0.35) << "the time has doubled, and few plain passes were timed";
}

TEST(LearnedCurve, BelievesALargeCostWhenItComesTwice) {
  LearnedCurve curve;
  for (int i = 0; i < 3; ++i) curve.learn(1, true, exactly(1));
  curve.learn(3, false, exactly(3.46));
  curve.learn(3, false, exactly(3.5));
  EXPECT_NEAR(cost(curve, 3), 3.46, 0.1);
  EXPECT_GT(cost(curve, 4), cost(curve, 3));
}

TEST(LearnedCurve, BelievesNoCostFarAboveThatOfTheRowsOneByOne) {
  LearnedCurve curve;
  for (int i = 0; i < 3; ++i) curve.learn(1, true, exactly(1));
  for (const std::size_t rows : {2U, 9U, 33U})
    for (int i = 0; i < 9; ++i) curve.learn(rows, false, exactly(1000));
  for (const std::size_t rows : {2U, 9U, 33U}) EXPECT_LE(cost(curve, rows), 1.5 * static_cast<double>(rows)) << rows;
}

/// The lowest plausible cost of `rows` rows.
double optimistic(const LearnedCurve& curve, std::size_t rows) {
  std::array<Cost, 33> costs{};
  curve.optimistic_costs(1, costs);
  return static_cast<double>(costs[rows - 1]) / cost_one;
}

TEST(LearnedCurve, HopesForWhatItDoesNotKnow) {
  LearnedCurve curve;
  for (int i = 0; i < 3; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 3; ++i) curve.learn(4, false, exactly(2));
  EXPECT_EQ(optimistic(curve, 4), cost(curve, 4));
  EXPECT_EQ(optimistic(curve, 3), 1);
  EXPECT_NEAR(optimistic(curve, 9), 0.8 * cost(curve, 4), 0.01) << "far below a smaller row count is not plausible";
  EXPECT_LT(optimistic(curve, 9), cost(curve, 9));
  for (int i = 0; i < 128; ++i) curve.learn(1, true, exactly(1));
  EXPECT_TRUE(curve.uncertain(4));
  EXPECT_NEAR(optimistic(curve, 4), 1.5, 0.01);
  for (int i = 0; i < 128; ++i) curve.learn(1, true, exactly(1));
  EXPECT_NEAR(optimistic(curve, 4), 1.25, 0.01) << "nothing is ruled out for ever";
}

/// Times plain passes until `due` is true in a curve, and returns their number.
std::size_t passes_until(LearnedCurve& curve, bool (LearnedCurve::*due)() const) {
  std::size_t passes = 0;
  while (!(curve.*due)() && ++passes < 100'000) curve.learn(1, true, exactly(1));
  return passes;
}

TEST(LearnedCurve, WaitsAfterATryInProportionToItsLoss) {
  LearnedCurve curve;
  EXPECT_FALSE(curve.may_try()) << "no plain time is known";
  EXPECT_EQ(passes_until(curve, &LearnedCurve::may_try), 8U);
  const auto wait_after = [&](double cost) {
    curve.tried(40, cost_one, exactly(cost));
    return passes_until(curve, &LearnedCurve::may_try);
  };
  // The expected cost of 40 rows is about 1.6. A cost of 1 loses nothing, and is no confirmation.
  EXPECT_EQ(wait_after(1), 0U);
  EXPECT_EQ(wait_after(2), 192U);
  EXPECT_EQ(wait_after(2), 384U) << "the wait doubles after a confirmation";
  EXPECT_EQ(wait_after(1.5), 192U) << "half the loss, half the wait";
  EXPECT_EQ(wait_after(2.5), 384U) << "the longest wait, whatever the loss";
  EXPECT_EQ(wait_after(20), 192U) << "a pass can be slow by accident: it confirms nothing";
  EXPECT_EQ(wait_after(2), 192U);
  EXPECT_EQ(wait_after(1), 0U);
  EXPECT_EQ(wait_after(2), 192U) << "a surprise begins anew";
}

TEST(LearnedCurve, TriesEveryRowCountInTurn) {
  // Four rows run on a faster kernel. Three slow passes in a row hide the cost of one row count.
  constexpr std::array<double, 8> costs = {1, 2, 2.96, 2.08, 3, 3.93, 4.84, 3.93};
  const SimulatedEngine engine{"", [&](std::size_t rows) { return costs[rows - 1]; }};
  std::array<std::uint32_t, 8> sums{};  // each node is accepted with a probability of 0.9
  for (std::size_t k = 1; k < sums.size(); ++k) sums[k] = sums[k - 1] + cost_one * 9 / 10;
  for (std::size_t hidden = 4; hidden <= 8; ++hidden) {
    testing::Random random(hidden);
    LearnedCurve curve = after({}, 3000, engine, 8);
    for (int i = 0; i < 3; ++i) curve.learn(hidden, false, exactly(12));
    ASSERT_GT(cost(curve, hidden), 1.3 * costs[hidden - 1]) << hidden;
    for (int pass = 0; pass < 12'000; ++pass) {  // all are plain or trials
      std::array<Cost, 8> expected{};
      curve.costs(1, expected);
      const auto trial =
          detail::PassCosts(std::nullopt, curve).trial(DraftKind::ordered, {.sums = sums, .costs = expected});
      const std::size_t rows = 1 + (trial ? trial->nodes : 0);
      const std::chrono::nanoseconds time = noisy_time(engine.cost(rows), random);
      if (trial) curve.tried(rows, cost_one, time);
      curve.learn(rows, rows == 1, time);
    }
    EXPECT_NEAR(cost(curve, hidden) / costs[hidden - 1], 1, 0.2) << hidden;
  }
}

TEST(LearnedCurve, DoesNotTakeTheStepToTheSecondRowForASlope) {
  LearnedCurve curve;
  for (int i = 0; i < 10; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 10; ++i) curve.learn(2, false, exactly(2));
  EXPECT_NEAR(cost(curve, 2), 2, 0.01);
  EXPECT_NEAR(cost(curve, 10), 2.12, 0.02) << "2 + 8 x 0.015";
}

TEST(LearnedCurve, HearsSoonOfAKernelThatHasChanged) {
  LearnedCurve curve;
  testing::Random random(12);
  const auto run = [&](int passes, double third) {
    for (int i = 0; i < passes; ++i) {
      const bool plain = i % 16 == 0 || curve.should_probe_plain(to_cost(4), false);
      curve.learn(plain ? 1 : 3, plain, noisy_time(plain ? 1 : third, random));
    }
  };
  run(2000, 1.2);
  run(20, 2.4);
  EXPECT_NEAR(cost(curve, 3), 2.4, 0.4);
  run(20, 1.2);
  EXPECT_NEAR(cost(curve, 3), 1.2, 0.2);
}

TEST(LearnedCurve, DropsOldCostsThatTwoFastPassesRefute) {
  LearnedCurve curve;
  for (int i = 0; i < 30; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 30; ++i)
    for (const std::size_t rows : {3U, 6U}) curve.learn(rows, false, exactly(rows == 3 ? 3 : 7));
  for (int i = 0; i < 100; ++i) curve.learn(1, true, exactly(1));
  LearnedCurve soon = curve;
  soon.learn(3, false, exactly(1.1));
  EXPECT_GT(cost(soon, 3), 2.5) << "not old yet";
  for (int i = 0; i < 40; ++i) curve.learn(1, true, exactly(1));
  curve.learn(3, false, exactly(1.1));
  EXPECT_NEAR(cost(curve, 3), 3, 0.1) << "the machine may have become faster";
  EXPECT_TRUE(curve.uncertain(3)) << "so the next trial may time it again";
  curve.learn(1, true, exactly(1));
  curve.learn(3, false, exactly(1.1));
  EXPECT_NEAR(cost(curve, 3), 1.1, 0.1);
  EXPECT_LT(cost(curve, 6), 1.5) << "learned under the same conditions";
}

TEST(LearnedCurve, DoesNotMistakeAMachineThatBecomesFasterForCheapRows) {
  LearnedCurve curve;
  const auto plain = [&](int passes, double time) {
    for (int i = 0; i < passes; ++i) curve.learn(1, true, exactly(time));
  };
  plain(30, 1);
  for (int i = 0; i < 30; ++i) curve.learn(8, false, exactly(6.5));
  plain(300, 3);                        // other programs run
  curve.learn(8, false, exactly(6.5));  // they have ended
  EXPECT_NEAR(cost(curve, 8), 6.5, 0.1);
  plain(1, 1);
  EXPECT_NEAR(cost(curve, 8), 6.5, 0.1) << "the plain pass was as fast";
  plain(20, 1);
  EXPECT_NEAR(cost(curve, 8), 6.5, 0.1);
  curve.learn(8, false, exactly(6.5));
  EXPECT_NEAR(cost(curve, 8), 6.5, 0.1);
}

TEST(LearnedCurve, WantsPlainPassesNowAndThen) {
  LearnedCurve curve;
  curve.learn(5, false, exactly(1.2));
  EXPECT_TRUE(curve.should_probe_plain(to_cost(0.5), false));
  EXPECT_FALSE(curve.should_probe_plain(to_cost(0.6), false)) << "a better place may come soon";
  for (int i = 0; i < 40; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 64; ++i) curve.learn(5, false, exactly(1.2));
  EXPECT_TRUE(curve.should_probe_plain(to_cost(0.25), false));
  EXPECT_FALSE(curve.should_probe_plain(to_cost(0.26), false));
  EXPECT_TRUE(curve.should_probe_plain(to_cost(0.26), true));
  for (int i = 0; i < 192; ++i) curve.learn(5, false, exactly(1.2));
  EXPECT_TRUE(curve.should_probe_plain(to_cost(30), false));
}

TEST(LearnedCurve, ReachesFurtherAsLongerPassesHaveBeenTimed) {
  LearnedCurve curve;
  EXPECT_EQ(curve.explored_rows(), 3U);
  for (int i = 0; i < 2; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 2; ++i) curve.learn(3, false, exactly(1.1));
  EXPECT_EQ(curve.explored_rows(), 6U);
  for (int i = 0; i < 2100; ++i) curve.learn(3, false, exactly(1.1));
  EXPECT_GT(curve.explored_rows(), LearnedCurve::most_rows);
  curve.learn(3, false, {});
  EXPECT_GT(curve.explored_rows(), LearnedCurve::most_rows) << "nothing is measured";
}

TEST(LearnedCurve, WantsAPlainPassSoonAfterAnOutageOfTheClock) {
  for (const int before : {0, 1, 100, 5000}) {
    LearnedCurve curve;
    for (int i = 0; i < before; ++i) curve.learn(i % 4 == 0 ? 1 : 5, i % 4 == 0, exactly(i % 4 == 0 ? 1 : 1.2));
    for (int i = 0; i < 200; ++i) curve.learn(i % 4 == 0 ? 1 : 5, i % 4 == 0, {});
    int waited = 0;
    for (; !curve.should_probe_plain(cost_one, false) && waited < 4096; ++waited) curve.learn(5, false, exactly(1.2));
    EXPECT_LE(waited, 256) << before;
  }
}

TEST(LearnedCurve, DoesNotWaitForTimesOfPlainPassesThatNobodyMeasures) {
  LearnedCurve curve;
  curve.learn(5, false, exactly(1.2));
  curve.learn(1, true, {});
  EXPECT_FALSE(curve.should_probe_plain(cost_one, false));
}

TEST(LearnedCurve, TakesAnyNumbers) {
  LearnedCurve curve;
  testing::Random random(8);
  for (int i = 0; i < 20'000; ++i) {
    const std::size_t rows = random.below(80);
    const auto shift = static_cast<int>(random.below(64));
    curve.learn(rows, random.chance(30), nanoseconds(static_cast<std::int64_t>(random.next() >> shift)));
    ASSERT_GE(curve.cost(random.below(100)), cost_one);
  }
}

TEST(LearnedCurve, BelievesTheFirstTimeOfALengthBeyondAllKnownOnes) {
  LearnedCurve curve;
  for (int i = 0; i < 3; ++i) curve.learn(1, true, exactly(1)), curve.learn(4, false, exactly(1.2));
  curve.learn(20, false, exactly(10));
  EXPECT_GT(cost(curve, 20), 7);
  curve.learn(12, false, exactly(60));
  EXPECT_LT(cost(curve, 12), 6) << "between known ones, a single time can be an outlier";
}

TEST(LearnedCurve, DoesNotCorrectOtherCostsBecauseOfOneSlowPass) {
  LearnedCurve curve;
  for (int i = 0; i < 30; ++i) curve.learn(1, true, exactly(1)), curve.learn(3, false, exactly(3));
  curve.learn(5, false, exactly(30));  // by accident; true: 3
  ASSERT_GT(cost(curve, 5), 4);
  for (int i = 0; i < 200; ++i) curve.learn(1, true, exactly(1));
  for (int i = 0; i < 2; ++i) curve.learn(5, false, exactly(2));
  EXPECT_NEAR(cost(curve, 3), 3, 0.2);
  EXPECT_GT(cost(curve, 33), 2);
}

TEST(LearnedCurve, StopsTryingWhatCostsMoreThanItBelieves) {
  LearnedCurve curve;  // two rows cost 20, but no more than 3 is believed
  int trials = 0;
  for (int i = 0; i < 10'000; ++i) {
    const bool draft = i > 0 && (curve.passes() < 20 || (curve.may_try() && curve.uncertain(2)));
    if (draft) curve.tried(2, cost_one, exactly(20));
    curve.learn(draft ? 2 : 1, !draft, exactly(draft ? 20 : 1));
    trials += i > 2000 && draft ? 1 : 0;
  }
  EXPECT_LE(trials, 6);
}

TEST(LearnedCurve, TakesTheShortestPlainTime) {
  LearnedCurve curve;
  curve.learn(1, true, nanoseconds(1));
  curve.learn(4, false, exactly(1));
  curve.tried(4, cost_one, exactly(1));
  for (int i = 0; i < 8; ++i) curve.learn(1, true, exactly(1)), curve.learn(4, false, exactly(2));
  EXPECT_NEAR(cost(curve, 4), 2, 0.1);
}

TEST(LearnedCurve, DoubtsAChangedCostSoonHoweverOftenItWasConfirmed) {
  LearnedCurve curve;
  for (int i = 0; i < 8; ++i) curve.learn(1, true, exactly(1)), curve.learn(4, false, exactly(2));
  for (int i = 0; i < 16; ++i) {
    while (!curve.uncertain(4)) curve.learn(1, true, exactly(1));
    curve.learn(4, false, exactly(2));
  }
  for (int i = 0; i < 3; ++i) curve.learn(4, false, exactly(5));
  ASSERT_NEAR(cost(curve, 4), 5, 0.1);
  for (int i = 0; i < 128; ++i) curve.learn(1, true, exactly(1));
  EXPECT_TRUE(curve.uncertain(4));
}

}  // namespace
}  // namespace reprise::learned_curve_test
