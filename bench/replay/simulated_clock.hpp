// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "reprise/testing/random.hpp"

namespace reprise::replay {

/// Pass times as an engine would measure them, from what the passes cost: 10 ms for a plain one, noise that is
/// about normal and in proportion, and once in a hundred times a pass that takes ten times as long. A stream of
/// integers from a seed: the same on every machine.
class SimulatedClock {
 public:
  /// `noise`: standard deviation over mean, from 0 to 0.5.
  SimulatedClock(double noise, std::uint64_t seed) : noise_(std::llround(noise * unit)), random_(seed) {}

  /// The next pass, which costs `cost` plain ones.
  [[nodiscard]] std::chrono::nanoseconds time(double cost) {
    const std::int64_t exact = std::llround(std::min(cost, most_cost) * plain_ns);
    // Three times four uniform numbers of 16 bits: their sum is about normal, with variance 1 in units of 2^16.
    std::int64_t normal = -6 * (unit - 1);
    for (int i = 0; i < 3; ++i)
      for (std::uint64_t bits = random_.next(), j = 0; j < 4; ++j, bits >>= 16)
        normal += static_cast<std::int64_t>(bits & 0xffff);
    std::int64_t factor = std::max<std::int64_t>(unit + noise_ * normal / unit, unit / 10);
    if (random_.chance(1)) factor *= 10;
    return std::chrono::nanoseconds(exact / unit * factor + exact % unit * factor / unit);
  }

 private:
  static constexpr std::int64_t unit = 1 << 16;
  static constexpr double plain_ns = 1e7;
  static constexpr double most_cost = 1e6;  // so that nothing overflows

  std::int64_t noise_;
  testing::Random random_;
};

}  // namespace reprise::replay
