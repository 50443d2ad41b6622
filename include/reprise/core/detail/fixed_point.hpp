// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

#include "reprise/core/detail/contract.hpp"

/// \file The common fixed-point scales of this library, and named operations instead of bare shifts. Numbers remain
/// plain integers, so a scale costs nothing at run time and the caller chooses the width.
namespace reprise { inline namespace v0 { namespace detail {

/// Fixed point with `Bits` binary places: the integer x represents x / 2^Bits. Drafts depend on integers only, so they
/// are the same with every compiler. A product has the type of the C++ expression, so the caller must widen the
/// factors. Shifts round down, even for negative numbers: with 16 places, multiply(-1, 1) is -1.
template <int Bits>
struct Fixed {
  static_assert(Bits >= 0 && Bits < 62);
  static constexpr int bits = Bits;
  static constexpr std::int64_t one = std::int64_t{1} << Bits;

  /// Returns a whole number, converted to this scale.
  template <std::integral T>
  [[nodiscard]] static constexpr T from(T whole) noexcept {
    return static_cast<T>(whole << Bits);
  }
  /// Returns the largest whole number that is not above x.
  template <std::integral T>
  [[nodiscard]] static constexpr auto floor(T x) noexcept {
    return x >> Bits;
  }
  /// Returns x - floor(x), in this scale.
  template <std::integral T>
  [[nodiscard]] static constexpr auto fraction(T x) noexcept {
    return x & static_cast<T>(one - 1);
  }
  /// Returns a x b. One factor is in this scale; the result has the scale of the other factor.
  template <std::integral A, std::integral B>
  [[nodiscard]] static constexpr auto multiply(A a, B b) noexcept {
    return (a * b) >> Bits;
  }
  /// Returns a / b in this scale, rounded towards zero. a and b must have the same scale.
  template <std::integral A, std::integral B>
  [[nodiscard]] static constexpr auto divide(A a, B b) noexcept {
    static_assert(sizeof(A) == 8, "a is shifted: convert it to 64 bits");
    return (a << Bits) / b;
  }
  /// Returns low + part x (high - low), rounded down. `part` is in this scale.
  template <std::integral T>
  [[nodiscard]] static constexpr auto between(T low, T high, T part) noexcept {
    return (low * (static_cast<T>(one) - part) + high * part) >> Bits;
  }
};

/// Returns x, converted from scale `From` to scale `To` and rounded down.
template <class From, class To, std::integral T>
[[nodiscard]] constexpr T rescaled(T x) noexcept {
  if constexpr (From::bits >= To::bits) {
    return static_cast<T>(x >> (From::bits - To::bits));
  } else {
    return static_cast<T>(x << (To::bits - From::bits));
  }
}
/// Returns x, converted to the coarser scale `To` and rounded to the nearest value; halves round up.
template <class From, class To, std::integral T>
[[nodiscard]] constexpr T rounded(T x) noexcept {
  static_assert(From::bits > To::bits);
  return static_cast<T>((x + (T{1} << (From::bits - To::bits - 1))) >> (From::bits - To::bits));
}

using ProbabilityScale = Fixed<30>;  ///< probabilities; see Probability
using UnitScale = Fixed<16>;         ///< costs in plain passes, tokens, rates, shares, weights of votes, logarithms
using FactorScale = Fixed<12>;       ///< factors of a vote's weight
using LogOddsScale = Fixed<8>;       ///< log-odds
using BiasScale = Fixed<20>;         ///< learned biases: log-odds in small steps
using SmallBiasScale = Fixed<13>;    ///< learned biases in 16 bits

}}}  // namespace reprise::detail
