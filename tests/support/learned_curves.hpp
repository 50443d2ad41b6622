// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "reprise/control/detail/learned_curve.hpp"
#include "reprise_testing/random.hpp"
#include "support/simulated_decoding.hpp"

/// \file Learned cost curves for tests, with the times of simulated engines.
namespace reprise::testing {

/// Returns the expected cost of a pass, in plain passes.
inline double cost(const LearnedCurve& curve, std::size_t rows) {
  return static_cast<double>(curve.cost(rows)) / cost_one;
}
/// Returns the cost of an engine, limited to the costs that a learned curve can have: 1.5 plain passes for each row.
inline double plausible_cost(const SimulatedEngine& engine, std::size_t rows) {
  return std::min(engine.cost(rows), 1.5 * static_cast<double>(rows));
}
/// Returns the time of a pass of this cost, without noise. A plain pass takes 10 ms.
inline std::chrono::nanoseconds exactly(double plain_passes) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e7 * plain_passes));
}
/// Returns the curve after passes of random row counts up to `most`, one third of them plain. `drift`: the growth of
/// the times from pass to pass, as a share of the first one.
inline LearnedCurve after(LearnedCurve curve, std::size_t passes, const SimulatedEngine& engine, std::size_t most,
                          std::uint64_t seed = 9, double drift = 0) {
  Random random(seed);
  for (std::size_t i = 0; i < passes; ++i) {
    const std::size_t rows = random.below(3) == 0 ? 1 : 1 + random.below(most);
    curve.learn(rows, rows == 1, noisy_time(engine.cost(rows), random, 1 + drift * static_cast<double>(i)));
  }
  return curve;
}

}  // namespace reprise::testing
