// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

/// Spreads all 64 bits over all 64 bits, reversibly (the finaliser of SplitMix64; Steele, Lea and Flood 2014).
constexpr std::uint64_t spread(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A number for a token that cannot be foretold without the key.
constexpr std::uint64_t token_hash(std::uint64_t key, Token token) noexcept {
  return spread(key + static_cast<std::uint32_t>(token) * std::uint64_t{0x9e3779b97f4a7c15});
}

/// The hash of the last n <= 32 tokens of a sequence, moved one token on or back in constant time.
///
/// A cyclic polynomial (Cohen 1997; Lemire and Kaser, "Recursive n-gram hashing is pairwise independent, at best",
/// 2010): the exclusive or of the token hashes, each rotated by its distance from the end. Every step can be undone
/// exactly, which is what truncation needs. With n <= 32 all rotations differ and two given n-grams collide with a
/// probability of at most 2^-33 over the keys, whatever they are; a polynomial modulo 2^64 would not do: on
/// Thue-Morse words it collides for every base.
class CyclicHash {
 public:
  constexpr void advance(std::uint64_t entering) noexcept { state_ = std::rotl(state_, 1) ^ entering; }
  constexpr void advance(std::uint64_t entering, std::uint64_t leaving, std::uint32_t n) noexcept {
    state_ = std::rotl(state_, 1) ^ entering ^ std::rotl(leaving, static_cast<int>(n));
  }
  /// Undo the advance() of the same arguments.
  constexpr void retreat(std::uint64_t entering) noexcept { state_ = std::rotr(state_ ^ entering, 1); }
  constexpr void retreat(std::uint64_t entering, std::uint64_t leaving, std::uint32_t n) noexcept {
    state_ = std::rotr(state_ ^ entering ^ std::rotl(leaving, static_cast<int>(n)), 1);
  }
  /// The sum is linear in the token hashes, and of periodic n-grams takes only some of the 2^64 values; spread()
  /// makes every bit fit to address a table.
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return spread(state_); }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace reprise::detail
