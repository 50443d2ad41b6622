// SPDX-License-Identifier: Apache-2.0
/// \file Learned costs recover: whatever the first times were, honest times make the choices nearly as good as those of
/// a control that was told its costs.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/testing/random.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::learned_costs_test {
namespace {

using std::chrono::nanoseconds;
using testing::Simulated;
using testing::SimulatedEngine;
using testing::SimulatedText;

enum class Poison { random, rising, falling, constant, compiling, clock_step, missing, two_engines, huge, tiny };

/// The time that a poisoned clock reports for pass number `pass` of `rows` rows, whose true time is `honest`.
std::optional<nanoseconds> poisoned(Poison poison, std::size_t pass, std::size_t rows, nanoseconds honest,
                                    testing::Random& random) {
  const auto scaled = [&](double factor) {
    return nanoseconds(static_cast<std::int64_t>(static_cast<double>(honest.count()) * factor));
  };
  switch (poison) {
    case Poison::random:
      return nanoseconds(static_cast<std::int64_t>(random.next() >> (1 + random.below(62))));
    case Poison::rising:
      return nanoseconds(static_cast<std::int64_t>(1 + 1'000'000 * pass));
    case Poison::falling:
      return nanoseconds(static_cast<std::int64_t>(1 + 1'000'000 * (500 - pass)));
    case Poison::constant:
      return nanoseconds(1'000'000);
    case Poison::compiling:
      return rows > 1 ? scaled(30) : honest;
    case Poison::clock_step:
      return pass == 50 ? nanoseconds(std::int64_t{1} << 60) : scaled(pass < 50 ? 1 : 1000);
    case Poison::missing:
      return random.chance(50) ? std::nullopt : std::optional(nanoseconds(0));
    case Poison::two_engines:
      return scaled(pass % 2 == 0 ? 1 : 20);
    case Poison::huge:
      return nanoseconds(std::int64_t{1} << 62);
    case Poison::tiny:
      return nanoseconds(1);
  }
  return honest;
}

constexpr std::size_t poisoned_passes = 200;
constexpr std::uint64_t seeds = 12;

/// Runs a control over a text of 8,000 tokens. The times of passes from `begin` on are poisoned.
Simulated run(CostControl control, const SimulatedEngine& engine, std::uint64_t seed, std::optional<Poison> poison,
              std::size_t begin = 0) {
  SimulatedText text(seed, 8000);
  testing::Random random(testing::mix(seed));
  return testing::simulate_with(control, engine, text, [&](const Simulated& simulated, std::size_t rows) {
    std::optional<nanoseconds> time = testing::noisy_time(engine.cost(rows), random);
    const std::size_t pass = simulated.losses.size();
    if (poison && pass >= begin && pass < begin + poisoned_passes)
      time = poisoned(*poison, pass - begin, rows, *time, random);
    return time;
  });
}

/// Returns the tokens for each plain pass, from pass `first` on.
double speed(const Simulated& simulated, std::size_t first) {
  double saved = 0;
  for (std::size_t i = first; i < simulated.losses.size(); ++i) saved -= simulated.losses[i];
  return 1 + saved / static_cast<double>(simulated.losses.size() - first);
}

CostCurve curve_of(const SimulatedEngine& engine) {
  std::vector<CostPoint> points;
  for (std::size_t rows = 1; rows <= 90; ++rows) points.push_back({1, 0, rows, 1e6 * engine.cost(rows)});
  return CostCurve::from_points(points).value();
}

constexpr std::array poisons = {Poison::random,     Poison::rising,  Poison::falling,     Poison::constant,
                                Poison::compiling,  Poison::missing, Poison::two_engines, Poison::huge,
                                Poison::clock_step, Poison::tiny};

void expect_recovery(std::size_t begin, double least) {
  for (const double slope : {0.02, 0.1, 0.3}) {
    const SimulatedEngine engine{"", [slope](std::size_t rows) { return 1 + slope * static_cast<double>(rows - 1); }};
    const std::size_t first = begin + poisoned_passes + 400;
    double told = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed)
      told += speed(run(CostControl({.curve = curve_of(engine), .calibrated = true}), engine, seed, {}), first);
    for (const Poison poison : poisons) {
      double learned = 0;
      for (std::uint64_t seed = 0; seed < seeds; ++seed)
        learned += speed(run(CostControl({.calibrated = true}), engine, seed, poison, begin), first);
      EXPECT_GE(learned, least * told) << "slope " << slope << ", poison " << static_cast<int>(poison);
    }
  }
}

TEST(LearnedCosts, RecoverWithin400PassesFromAnyFirstTimes) { expect_recovery(0, 0.97); }

TEST(LearnedCosts, RecoverFromALateChange) { expect_recovery(1000, 0.97); }

}  // namespace
}  // namespace reprise::learned_costs_test
