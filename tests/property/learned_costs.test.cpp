// SPDX-License-Identifier: Apache-2.0
/// \file Learned costs recover: whatever the wrong times were, honest times make the choices nearly as good as those of
/// a control that was told its costs. A time that is missing costs that time and nothing else.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
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
using Played = Session<ToldStrategy, CostControl>;

Played told() { return {ToldStrategy{.length = 8}, CostControl({.calibrated = true})}; }

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

TEST(LearnedCosts, OfAPlannerRecoverFromAnyWrongTimes) { expect_recovery<PlannerControl>(0.993, 0.02); }

TEST(LearnedCosts, RecoverFromAnyTimesThatBytesDescribe) {
  // Fewer random bytes than for other worlds: a world has thousands of passes, and the seeds above are random, too.
  expect_no_fault_of_bytes(
      "recovery", [](Choices& choices) { return run_recovery_world(choices).fault(); }, 100);
}

/// Runs requests with a follower, which never times the first pass of a request.
template <class Engine>
void follow(Engine& engine, std::size_t requests, std::size_t passes) {
  Follower<Played> follower(told());
  nanoseconds now{1};
  for (std::size_t request = 0; request < requests; ++request) {
    std::vector<Token> ids(20, static_cast<Token>(100 + request));
    now += nanoseconds(500'000'000);
    for (std::size_t i = 0; i < passes; ++i) {
      const auto draft = follower.draft(ids, i == 0 ? 0 : unlimited, now);
      EXPECT_TRUE(draft);
      const std::size_t drafted = draft->size();
      const std::size_t accepted = engine.accepted(drafted);
      ids.insert(ids.end(), draft->begin(), draft->begin() + static_cast<std::ptrdiff_t>(accepted));
      ids.push_back(-7);
      now += engine.run(request, drafted, accepted + 1);
    }
  }
}

/// An engine with 10% of a plain pass for each drafted row. Its clock may be wrong for the first 300 passes: passes
/// with a draft seem to take 30 times as long.
struct PoisonedEngine {
  bool poisoned = false;
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
  nanoseconds run(std::size_t, std::size_t drafted, std::size_t committed) {
    const double true_cost = 1 + 0.1 * static_cast<double>(drafted);
    if (++passes > 1000) tokens += static_cast<double>(committed), cost += true_cost;
    const double wrong = poisoned && passes <= 300 && drafted > 0 ? 30 : 1;
    return nanoseconds(static_cast<std::int64_t>(1e7 * true_cost * wrong * (0.95 + 0.1 * random.unit())));
  }
};

double speed_of_follower(bool poisoned) {
  PoisonedEngine engine{.poisoned = poisoned};
  follow(engine, 30, 100);
  return engine.tokens / engine.cost;
}

TEST(LearnedCosts, OfAFollowerRecover) { EXPECT_GE(speed_of_follower(true), 0.97 * speed_of_follower(false)); }

// --- Missing times ---

constexpr std::size_t requests = 90;
constexpr std::size_t passes = 150;  // of a request; the first has no draft, as nothing predicts its token

/// An engine whose drafted rows cost 2% of a plain pass, and 60% after a third of the requests. The target accepts the
/// first drafted token half the time, and no other.
struct SlowingEngine {
  SplitMix random{5};
  double lost = 0;  ///< in plain passes, since rows became expensive
  std::size_t count = 0;

  std::size_t accepted(std::size_t drafted) { return drafted > 0 && random.one_in(2) ? 1 : 0; }
  /// Returns the time of a pass.
  nanoseconds run(std::size_t request, std::size_t drafted, std::size_t committed) {
    const bool later = request >= requests / 3;
    const double cost = 1 + (later ? 0.6 : 0.02) * static_cast<double>(drafted);
    if (later) lost += cost - static_cast<double>(committed), ++count;
    return nanoseconds(static_cast<std::int64_t>(1e7 * cost * (0.99 + 0.02 * random.unit())));
  }
  [[nodiscard]] double lost_in_a_thousand() const { return 1000 * lost / static_cast<double>(count); }
};

/// Returns the loss with a session. `missing(request, pass, drafted)`: true if the engine reports no time.
double loss_if(const std::function<bool(std::size_t, std::size_t, std::size_t)>& missing) {
  Played played = told();
  SlowingEngine engine;
  const Limits limits;
  for (std::size_t request = 0; request < requests; ++request) {
    EXPECT_TRUE(played.begin(std::vector<Token>(20, 1)));
    for (std::size_t i = 0; i < passes; ++i) {
      played.propose(limits, DraftShape::chain);
      const Pass pass = played.plan(i == 0 ? 0 : unlimited).value();
      std::vector<Token> picks(pass.drafted + 1, -7);
      const std::size_t accepted = engine.accepted(pass.drafted);
      if (accepted > 0) picks[0] = 1;
      EXPECT_TRUE(played.resolve(pass.ticket, picks));
      const nanoseconds time = engine.run(request, pass.drafted, accepted + 1);
      EXPECT_TRUE(played.commit(pass.ticket, missing(request, i, pass.drafted) ? std::nullopt : std::optional(time)));
    }
  }
  return engine.lost_in_a_thousand();
}
double loss_of_follower() {
  SlowingEngine engine;
  follow(engine, requests, passes);
  return engine.lost_in_a_thousand();
}

// While learning stood still, 1,000 passes lost 4,267 plain ones.
constexpr double most = 100;

TEST(MissingTimes, DoNotKeepControlFromLearningThatRowsHaveBecomeExpensive) {
  const double all = loss_if([](std::size_t, std::size_t, std::size_t) { return false; });
  ASSERT_LT(all, most) << "with all times, control learns";
  const auto first = [](std::size_t, std::size_t pass, std::size_t) { return pass == 0; };
  EXPECT_LT(loss_if(first), most);
  EXPECT_LT(loss_of_follower(), most);
  SplitMix random(9);
  EXPECT_LT(loss_if([&](std::size_t, std::size_t, std::size_t) { return random.one_in(2); }), most);
  std::size_t plain = 0;
  const auto most_plain = [&](std::size_t, std::size_t, std::size_t drafted) {
    return drafted == 0 && ++plain % 4 != 0;
  };
  EXPECT_LT(loss_if(most_plain), most) << "three of four plain passes";
}

TEST(MissingTimes, OfAllPlainPassesCostFewPlainPasses) {
  // Costs cannot be learned then. Plain passes that nobody times must not replace drafts that gain.
  std::size_t drafted_passes = 0;
  std::size_t all = 0;
  loss_if([&](std::size_t request, std::size_t, std::size_t drafted) {
    if (request >= 5) ++all, drafted_passes += drafted > 0 ? 1 : 0;
    return drafted == 0;
  });
  EXPECT_GT(drafted_passes, all * 9 / 10);
}

}  // namespace
}  // namespace reprise::testing::learned_costs_test
