// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "clock_spec.hpp"
#include "pass_times.hpp"
#include "reprise/core/limits.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::replay {

/// Simulated pass times. A plain pass takes 10 ms; others take time in proportion to their cost. The noise is
/// multiplicative and about normal, and some passes are outliers. The times come from integers and a seed, so they are
/// the same on every machine.
class SimulatedClock {
 public:
  /// `noise`: standard deviation over mean, from 0 to 0.5.
  SimulatedClock(double noise, std::uint64_t seed, const Outliers& outliers = {})
      : noise_(std::llround(noise * unit)),
        outlier_percent_(outliers.percent),
        outlier_factor_(std::llround(outliers.factor * unit)),
        random_(seed) {}

  /// The time of the next pass, whose cost is `cost` plain passes.
  [[nodiscard]] std::chrono::nanoseconds time(double cost) {
    const std::int64_t exact = std::llround(std::min(cost, most_cost) * plain_ns);
    // The sum of twelve uniform 16-bit numbers is about normal, with variance 1 in units of 2^16.
    std::int64_t normal = -6 * (unit - 1);
    for (int i = 0; i < 3; ++i)
      for (std::uint64_t bits = random_.next(), j = 0; j < 4; ++j, bits >>= 16)
        normal += static_cast<std::int64_t>(bits & 0xffff);
    std::int64_t factor = std::max<std::int64_t>(unit + noise_ * normal / unit, unit / 10);
    if (random_.chance(outlier_percent_)) factor = factor * outlier_factor_ / unit;
    return std::chrono::nanoseconds(exact / unit * factor + exact % unit * factor / unit);
  }
  /// The time of the next pass of this shape, drawn from a recording instead of simulated.
  [[nodiscard]] std::chrono::nanoseconds time(const PassTimes& recorded, const PassShape& shape) {
    return std::chrono::nanoseconds(std::llround(std::min(recorded.sample(shape, random_), most_cost * plain_ns)));
  }

 private:
  static constexpr std::int64_t unit = 1 << 16;
  static constexpr double plain_ns = 1e7;
  static constexpr double most_cost = 1e6;  // prevents overflow

  std::int64_t noise_;
  std::size_t outlier_percent_;
  std::int64_t outlier_factor_;
  testing::Random random_;
};

}  // namespace reprise::replay
