// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Logarithms in fixed point, for weighing tokens against time where both are relative. Integers only: what is
/// drafted must not depend on the compiler.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace reprise::detail {

/// log2 of a number of 32 significant bits from 1 up to below 2, in 2^-16: by repeated squaring.
constexpr std::uint32_t slow_log2(std::uint64_t mantissa) noexcept {
  std::uint32_t log = 0;
  for (int bit = 0; bit < 17; ++bit) {  // one more than is kept, to round
    mantissa = (mantissa * mantissa) >> 31;
    log <<= 1;
    if (mantissa >= std::uint64_t{1} << 32) {
      mantissa >>= 1;
      ++log;
    }
  }
  return (log + 1) >> 1;
}

/// log2(1 + i / 64) in 2^-16.
inline constexpr std::array<std::uint32_t, 65> log2_table = [] {
  std::array<std::uint32_t, 65> table{};
  for (std::uint64_t i = 0; i < 64; ++i) table[i] = slow_log2((std::uint64_t{1} << 31) + (i << 25));
  table[64] = 1 << 16;
  return table;
}();

/// log2 of x in 2^-16, within 2^-14; of 0 as of 1.
constexpr std::int64_t fixed_log2(std::uint64_t x) noexcept {
  if (x <= 1) return 0;
  const int exponent = static_cast<int>(std::bit_width(x)) - 1;
  const std::uint64_t mantissa = exponent >= 31 ? x >> (exponent - 31) : x << (31 - exponent);  // from 2^31 to 2^32
  const auto place = static_cast<std::size_t>(mantissa >> 25) & 63;
  const std::uint64_t part = mantissa & ((1U << 25) - 1);
  const std::uint64_t rise = log2_table[place + 1] - log2_table[place];
  return (std::int64_t{exponent} << 16) + log2_table[place] + static_cast<std::int64_t>(rise * part >> 25);
}

/// The natural logarithm of x / 2^16, in 2^-16.
constexpr std::int64_t fixed_ln(std::uint64_t x) noexcept {
  return (fixed_log2(x) - (std::int64_t{16} << 16)) * 45426 / 65536;  // ln 2 = 45,426 / 65,536
}

/// Thirty-two steps to a factor of two: fine enough to order tokens, coarse enough to count them.
inline constexpr std::int32_t coarse_steps = 32;

/// log2 of x in steps of 1/32, rounded down twice: off by less than two steps. x above 0.
constexpr std::int32_t coarse_log2(std::uint32_t x) noexcept {
  const auto exponent = static_cast<std::int32_t>(std::bit_width(x | 1U)) - 1;
  const std::uint32_t mantissa = x << (31 - exponent);
  return exponent * coarse_steps + static_cast<std::int32_t>(log2_table[(mantissa >> 25) & 63] >> 11);
}

/// 2^(-i / 32) in 2^-16, for i below `size`, a multiple of 32.
template <std::size_t size>
constexpr std::array<std::uint32_t, size> falling_powers() noexcept {
  std::array<std::uint32_t, size> powers{};
  powers[0] = 1 << 16;
  for (std::size_t i = 1; i < coarse_steps; ++i) {
    const auto wanted = static_cast<std::uint32_t>(((coarse_steps - i) << 16) / coarse_steps);
    std::uint64_t low = std::uint64_t{1} << 31;  // 2^(1 - i / 32) in 2^-31, by bisection
    std::uint64_t high = std::uint64_t{1} << 32;
    while (high - low > 1) {
      const std::uint64_t middle = (low + high) / 2;
      (slow_log2(middle) < wanted ? low : high) = middle;
    }
    powers[i] = static_cast<std::uint32_t>(high >> 16);
  }
  // Not each for itself: compilers do not evaluate constants without end.
  for (std::size_t i = coarse_steps; i < size; ++i) powers[i] = powers[i % coarse_steps] >> (i / coarse_steps);
  return powers;
}

}  // namespace reprise::detail
