// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/probability.hpp"

/// \file Logarithms and the logistic function in integers. Probabilities decide what is drafted, so every compiler, at
/// every optimisation level, has to arrive at the same ones: floating point does not promise that.
namespace reprise::detail {

/// Log-odds (natural logarithm) in fixed point: 256 is one.
using LogOdds = std::int32_t;
inline constexpr LogOdds log_odds_one = 256;

/// 256 times the logarithm to base 2 of x, of 1 for x = 0; exact for powers of two, else within 5.
constexpr std::int32_t log2_q8(std::uint64_t x) noexcept {
  x |= x == 0 ? 1 : 0;
  const int whole = 63 - std::countl_zero(x);
  const auto part = static_cast<std::int32_t>((whole < 8 ? x << (8 - whole) : x >> (whole - 8)) & 255);
  // log2(1 + f) is close to f + 0.3437 f (1 - f).
  return whole * 256 + part + ((part * (256 - part) * 88) >> 16);
}

/// The logarithm of the odds `part` : `rest`.
constexpr LogOdds log_odds(std::uint64_t part, std::uint64_t rest) noexcept {
  constexpr std::int32_t ln2_q16 = 45426;
  return ((log2_q8(part) - log2_q8(rest)) * ln2_q16) >> 16;
}

/// 2^24 / (1 + exp(i / 4)).
inline constexpr std::array<std::uint32_t, 49> logistic_tail = {
    8388608, 7345459, 6334081, 5382488, 4512088, 3736288, 3060592, 2483820, 1999893, 1599699, 1272689, 1008087, 795674,
    626241,  491778,  385496,  301759,  235949,  184330,  143906,  112287,  87579,   68286,   53229,   41484,   32325,
    25186,   19621,   15285,   11906,   9274,    7224,    5626,    4382,    3413,    2658,    2070,    1612,    1256,
    978,     762,     593,     462,     360,     280,     218,     170,     132,     103};

/// 1 / (1 + exp(-x)), between 2^-15 and 0.998: certainty is never learned from examples.
constexpr Probability logistic(LogOdds x) noexcept {
  const auto distance = static_cast<std::uint32_t>(std::clamp(x < 0 ? -x : x, 0, 12 * log_odds_one - 1));
  const std::size_t i = distance >> 6;
  const std::uint32_t between = distance & 63;
  const std::uint32_t low = (logistic_tail[i] * (64 - between) + logistic_tail[i + 1] * between) >> 6;
  const std::uint32_t p = x < 0 ? low : (std::uint32_t{1} << 24) - low;
  return Probability::from_raw(std::clamp<std::uint32_t>(p, 1 << 9, 16743424) << 6);
}

}  // namespace reprise::detail
