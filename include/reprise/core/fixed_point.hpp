// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>

/// \file The scales of fixed point in this library, and the operations that would otherwise be bare shifts. Numbers
/// stay plain integers, so a scale costs nothing at run time and the caller chooses the width.
namespace reprise::inline v0 {

/// Fixed point with `Bits` binary places: the integer x stands for x / 2^Bits. Integers decide what is drafted, so that
/// every compiler drafts the same tokens. Products have the type of the C++ expression: the caller widens them.
/// Shifts round down, also below zero: with 16 places, multiply(-1, 1) is -1.
template <int Bits>
struct Fixed {
  static_assert(Bits >= 0 && Bits < 62);
  static constexpr int bits = Bits;
  static constexpr std::int64_t one = std::int64_t{1} << Bits;

  /// A whole number in this scale.
  template <std::integral T>
  [[nodiscard]] static constexpr T from(T whole) noexcept {
    return static_cast<T>(whole << Bits);
  }
  /// The largest whole number that is not above x.
  template <std::integral T>
  [[nodiscard]] static constexpr auto floor(T x) noexcept {
    return x >> Bits;
  }
  /// x - floor(x), in this scale.
  template <std::integral T>
  [[nodiscard]] static constexpr auto fraction(T x) noexcept {
    return x & static_cast<T>(one - 1);
  }
  /// a x b, in the scale of one factor if this is the scale of the other.
  template <std::integral A, std::integral B>
  [[nodiscard]] static constexpr auto multiply(A a, B b) noexcept {
    return (a * b) >> Bits;
  }
  /// a / b in this scale, for two numbers of one scale; rounded towards zero.
  template <std::integral A, std::integral B>
  [[nodiscard]] static constexpr auto divide(A a, B b) noexcept {
    return (a << Bits) / b;
  }
  /// The point `part` of the way from `low` to `high`.
  template <std::integral T>
  [[nodiscard]] static constexpr auto between(T low, T high, T part) noexcept {
    return (low * (static_cast<T>(one) - part) + high * part) >> Bits;
  }
};

/// The same number in another scale, rounded down.
template <class From, class To, std::integral T>
[[nodiscard]] constexpr T rescaled(T x) noexcept {
  if constexpr (From::bits >= To::bits) {
    return static_cast<T>(x >> (From::bits - To::bits));
  } else {
    return static_cast<T>(x << (To::bits - From::bits));
  }
}
/// The same number in a coarser scale, rounded to the nearest; halves are rounded up.
template <class From, class To, std::integral T>
[[nodiscard]] constexpr T rounded(T x) noexcept {
  static_assert(From::bits > To::bits);
  return static_cast<T>((x + (T{1} << (From::bits - To::bits - 1))) >> (From::bits - To::bits));
}

using ProbabilityScale = Fixed<30>;  ///< Probability
using UnitScale = Fixed<16>;         ///< costs in plain passes, tokens, rates, shares, weights of votes, logarithms
using FactorScale = Fixed<12>;       ///< factors of the weight of a vote
using LogOddsScale = Fixed<8>;       ///< log-odds
using BiasScale = Fixed<20>;         ///< learned biases, which are log-odds in small steps
using SmallBiasScale = Fixed<13>;    ///< the same in 16 bits

}  // namespace reprise
