// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/contract.hpp"

namespace reprise::testing {

/// Mixes the bits of a number (the finalizer of SplitMix64, Steele, Lea and Flood 2014).
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A stream of pseudorandom numbers from a seed. It is the same on every machine and standard library. Do not use it
/// for secrets.
class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept { return mix(state_++); }
  /// Returns a number in 0 ... bound - 1, or 0 if bound is 0. The distribution is slightly uneven for huge bounds.
  constexpr std::size_t below(std::size_t bound) noexcept {
    return bound == 0 ? 0 : static_cast<std::size_t>(next() % bound);
  }
  /// Returns true with a probability of `percent` in 100.
  constexpr bool chance(std::size_t percent) noexcept { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace reprise::testing
