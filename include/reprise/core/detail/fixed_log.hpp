// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/token.hpp"

/// \file Logarithms and the logistic function in integers. Drafts depend on them, so every compiler must compute the
/// same values at every optimisation level. Floating point does not guarantee that.
///
/// There are three logarithms of different precision:
///
///  * log2_q8() is the fastest. It is used for log-odds.
///  * fixed_log2() is accurate to 2^-14. It is used to compare gains in tokens with costs in time.
///  * coarse_log2() is the coarsest. It is used to sort tokens into classes.
namespace reprise { inline namespace v0 { namespace detail {

/// Log-odds (natural logarithm), in LogOddsScale.
using LogOdds = std::int32_t;

/// ln 2 = 45,426 / 2^16.
inline constexpr std::int32_t ln_2 = 45426;

inline constexpr LogOdds log_odds_one = static_cast<LogOdds>(LogOddsScale::one);

/// Returns log2(x) in LogOddsScale. Treats 0 as 1. The result is exact for powers of two; otherwise its error is at
/// most 5 / 256.
constexpr std::int32_t log2_q8(std::uint64_t x) noexcept {
  x |= x == 0 ? 1 : 0;
  const int whole = 63 - std::countl_zero(x);
  const auto part = static_cast<std::int32_t>(
      LogOddsScale::fraction(whole < LogOddsScale::bits ? x << (LogOddsScale::bits - whole)     // the bits after the
                                                        : x >> (whole - LogOddsScale::bits)));  // leading one
  constexpr std::int32_t bend = 88;  // log2(1 + f) is close to f + 0.3437 f (1 - f), and 88 / 256 = 0.3437
  return whole * log_odds_one + part + UnitScale::floor(part * (log_odds_one - part) * bend);
}

/// Returns ln(part / rest), the log-odds of `part` against `rest`, in LogOddsScale. Treats 0 as 1.
constexpr LogOdds log_odds(std::uint64_t part, std::uint64_t rest) noexcept {
  return UnitScale::multiply(log2_q8(part) - log2_q8(rest), ln_2);
}

/// The scale of the values in the table below. Adjacent entries are for arguments a quarter apart.
using LogisticScale = Fixed<24>;
/// 1 / (1 + exp(i / 4)), in LogisticScale.
inline constexpr std::array<std::uint32_t, 49> logistic_tail = {
    8388608, 7345459, 6334081, 5382488, 4512088, 3736288, 3060592, 2483820, 1999893, 1599699, 1272689, 1008087, 795674,
    626241,  491778,  385496,  301759,  235949,  184330,  143906,  112287,  87579,   68286,   53229,   41484,   32325,
    25186,   19621,   15285,   11906,   9274,    7224,    5626,    4382,    3413,    2658,    2070,    1612,    1256,
    978,     762,     593,     462,     360,     280,     218,     170,     132,     103};

/// Returns 1 / (1 + exp(-x)), clamped to 2^-15 ... 0.998, because examples never prove certainty.
constexpr Probability logistic(LogOdds x) noexcept {
  constexpr std::uint32_t least = LogisticScale::one / 32'768;  // 2^-15
  constexpr std::uint32_t most = 16'743'424;                    // 0.998
  using Quarter = Fixed<LogOddsScale::bits - 2>;
  const auto distance = static_cast<std::uint32_t>(std::clamp(x < 0 ? -x : x, 0, 12 * log_odds_one - 1));
  const std::size_t i = Quarter::floor(distance);
  const std::uint32_t low = Quarter::between(logistic_tail[i], logistic_tail[i + 1], Quarter::fraction(distance));
  const std::uint32_t p = x < 0 ? low : static_cast<std::uint32_t>(LogisticScale::one) - low;
  return Probability::from_raw(rescaled<LogisticScale, ProbabilityScale>(std::clamp(p, least, most)));
}

/// The scale of 32-bit mantissas, which are in [1, 2).
using MantissaScale = Fixed<31>;
/// The scale of the index into the table of logarithms, which has 64 entries per factor of two.
using LogTableScale = Fixed<6>;
/// The scale of a position between two adjacent entries of that table.
using LogTableStep = Fixed<MantissaScale::bits - LogTableScale::bits>;

/// Returns log2(mantissa) in UnitScale, by repeated squaring. `mantissa` is in MantissaScale.
constexpr std::uint32_t slow_log2(std::uint64_t mantissa) noexcept {
  std::uint32_t log = 0;
  for (int bit = 0; bit < UnitScale::bits + 1; ++bit) {  // one extra bit, for rounding
    mantissa = MantissaScale::multiply(mantissa, mantissa);
    log *= 2;
    if (mantissa >= 2 * MantissaScale::one) {
      mantissa /= 2;
      ++log;
    }
  }
  return (log + 1) / 2;
}

/// log2(1 + i / 64), in UnitScale.
inline constexpr std::array<std::uint32_t, 65> log2_table = [] {
  std::array<std::uint32_t, 65> table{};
  for (std::size_t i = 0; i < 64; ++i) table[i] = slow_log2(MantissaScale::one + LogTableStep::from(std::uint64_t{i}));
  table[64] = static_cast<std::uint32_t>(UnitScale::one);
  return table;
}();

/// Returns log2(x) in UnitScale, accurate to 2^-14. Treats 0 as 1.
constexpr std::int64_t fixed_log2(std::uint64_t x) noexcept {
  if (x <= 1) return 0;
  const int exponent = static_cast<int>(std::bit_width(x)) - 1;
  const std::uint64_t mantissa =
      exponent >= MantissaScale::bits ? x >> (exponent - MantissaScale::bits) : x << (MantissaScale::bits - exponent);
  const auto knot = static_cast<std::size_t>(LogTableScale::fraction(LogTableStep::floor(mantissa)));
  const std::uint64_t rise = log2_table[knot + 1] - log2_table[knot];
  return UnitScale::from(std::int64_t{exponent}) + log2_table[knot] +
         static_cast<std::int64_t>(LogTableStep::multiply(rise, LogTableStep::fraction(mantissa)));
}

/// Returns the natural logarithm of x. Both x and the result are in UnitScale. Treats 0 as 2^-16.
constexpr std::int64_t fixed_ln(std::uint64_t x) noexcept {
  // Division rounds towards zero; a shift would round down.
  return (fixed_log2(x) - UnitScale::from(std::int64_t{UnitScale::bits})) * ln_2 / UnitScale::one;
}

/// A scale of 32 steps per factor of two. It is fine enough to order tokens and coarse enough to count them in classes.
using CoarseScale = Fixed<5>;
inline constexpr std::int32_t coarse_steps = static_cast<std::int32_t>(CoarseScale::one);

/// Returns log2(x) in CoarseScale for x > 0. The result is rounded down twice, so it is too low by less than two steps.
constexpr std::int32_t coarse_log2(std::uint32_t x) noexcept {
  const auto exponent = static_cast<std::int32_t>(std::bit_width(x | 1U)) - 1;
  const std::uint32_t mantissa = x << (MantissaScale::bits - exponent);
  const std::uint32_t knot = LogTableScale::fraction(LogTableStep::floor(mantissa));
  return exponent * coarse_steps + static_cast<std::int32_t>(rescaled<UnitScale, CoarseScale>(log2_table[knot]));
}

/// Returns a table of 2^(-i / 32) in UnitScale for all i below `size`, which must be at least 32.
template <std::size_t size>
constexpr std::array<std::uint32_t, size> falling_powers() noexcept {
  std::array<std::uint32_t, size> powers{};
  powers[0] = static_cast<std::uint32_t>(UnitScale::one);
  constexpr std::uint64_t steps = coarse_steps;
  for (std::size_t i = 1; i < steps; ++i) {
    const auto wanted = static_cast<std::uint32_t>(UnitScale::divide(steps - i, steps));
    std::uint64_t low = MantissaScale::one;  // 2^(1 - i / 32), by bisection
    std::uint64_t high = 2 * MantissaScale::one;
    while (high - low > 1) {
      const std::uint64_t middle = (low + high) / 2;
      (slow_log2(middle) < wanted ? low : high) = middle;
    }
    powers[i] = static_cast<std::uint32_t>(rescaled<MantissaScale, UnitScale>(high / 2));
  }
  // All other entries are shifted copies of the first 32, because compilers limit the steps of a constant evaluation.
  for (std::size_t i = coarse_steps; i < size; ++i) powers[i] = powers[i % coarse_steps] >> (i / coarse_steps);
  return powers;
}

}}}  // namespace reprise::detail
