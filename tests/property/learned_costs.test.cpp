// SPDX-License-Identifier: Apache-2.0
/// \file Learned costs recover: whatever the wrong times were, honest times make the choices nearly as good as those of
/// a control that was told its costs.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/loss_world.hpp"
#include "support/property_cases.hpp"
#include "support/recovery_world.hpp"
#include "support/streams.hpp"

namespace reprise::testing::learned_costs_test {
namespace {

using std::chrono::nanoseconds;

/// Runs random worlds with this kind of control. `most_low`: the part of them that may stay below 0.97.
template <DraftControl Control>
void expect_recovery(double least_mean, double most_low) {
  const std::uint64_t worlds = std::max<std::uint64_t>(100, property_cases(500));
  double sum = 0;
  double worst = 1;
  double worst_window = 1;
  std::uint64_t low = 0;
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + worlds; ++seed) {
    Choices choices(seed);
    const Recovery recovery = run_recovery_world<Control>(choices);
    ASSERT_EQ(recovery.fault(), "") << run_again(seed);
    sum += recovery.whole;
    worst = std::min(worst, recovery.whole);
    worst_window = std::min(worst_window, recovery.worst);
    low += recovery.whole < 0.97 ? 1 : 0;
  }
  ::testing::Test::RecordProperty("mean", std::to_string(sum / static_cast<double>(worlds)));
  ::testing::Test::RecordProperty("worst", std::to_string(worst));
  ::testing::Test::RecordProperty("worst_window", std::to_string(worst_window));
  EXPECT_GE(sum / static_cast<double>(worlds), least_mean);
  EXPECT_LE(static_cast<double>(low), most_low * static_cast<double>(worlds)) << "worlds below 0.97";
}

TEST(LearnedCosts, RecoverFromAnyWrongTimes) { expect_recovery<CostControl>(0.993, 0.02); }

TEST(LearnedCosts, OfAPlannerRecoverFromAnyWrongTimes) { expect_recovery<PlannerControl>(0.985, 0.04); }

TEST(LearnedCosts, RecoverFromAnyTimesThatBytesDescribe) {
  expect_no_fault_of_bytes("recovery", [](Choices& choices) { return run_recovery_world(choices).fault(); });
}

/// An engine with 10% of a plain pass for each drafted row. Its clock is wrong for the first 300 passes: passes with a
/// draft seem to take 30 times as long.
struct Engine {
  SplitMix random{5};
  std::size_t passes = 0;
  double tokens = 0;  ///< from pass 1,000 on, as the next
  double cost = 0;    ///< in plain passes

  std::size_t accepted(std::size_t drafted) {
    std::size_t count = 0;
    while (count < drafted && !random.one_in(10)) ++count;
    return count;
  }
  /// Returns the time that the clock shows for a pass.
  nanoseconds run(std::size_t drafted, std::size_t committed, bool poisoned) {
    const double true_cost = 1 + 0.1 * static_cast<double>(drafted);
    if (++passes > 1000) tokens += static_cast<double>(committed), cost += true_cost;
    const double wrong = poisoned && passes <= 300 && drafted > 0 ? 30 : 1;
    return nanoseconds(static_cast<std::int64_t>(1e7 * true_cost * wrong * (0.95 + 0.1 * random.unit())));
  }
};

double speed_of_follower(bool poisoned) {
  Follower<Session<ToldStrategy, CostControl>> follower(
      Session<ToldStrategy, CostControl>(ToldStrategy{.length = 8}, CostControl({.calibrated = true})));
  Engine engine;
  nanoseconds now{1};
  for (std::size_t request = 0; request < 30; ++request) {
    std::vector<Token> ids(20, static_cast<Token>(100 + request));
    now += nanoseconds(500'000'000);
    for (std::size_t i = 0; i < 100; ++i) {
      const auto draft = follower.draft(ids, i == 0 ? 0 : unlimited, now);
      EXPECT_TRUE(draft);
      const std::size_t drafted = draft->size();
      const std::size_t accepted = engine.accepted(drafted);
      ids.insert(ids.end(), draft->begin(), draft->begin() + static_cast<std::ptrdiff_t>(accepted));
      ids.push_back(-7);
      now += engine.run(drafted, accepted + 1, poisoned);
    }
  }
  return engine.tokens / engine.cost;
}

TEST(LearnedCosts, OfAFollowerRecover) { EXPECT_GE(speed_of_follower(true), 0.97 * speed_of_follower(false)); }

}  // namespace
}  // namespace reprise::testing::learned_costs_test
