// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Returns 64 mixed bits: each input bit affects all output bits. The function is reversible (the finaliser of
/// SplitMix64; Steele, Lea and Flood 2014).
constexpr std::uint64_t spread(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Returns a keyed hash of a token. It is hard to predict without the key, but not cryptographic.
constexpr std::uint64_t token_hash(std::uint64_t key, Token token) noexcept {
  return spread(key + static_cast<std::uint32_t>(token) * std::uint64_t{0x9e3779b97f4a7c15});
}

/// The hash of the last n <= 32 tokens of a sequence. It moves one token forwards or backwards in constant time.
///
/// The hash is a cyclic polynomial: the exclusive or of the token hashes, each rotated by its distance from the end.
/// Every step can be undone exactly, as truncation requires. (Cohen 1997; Lemire and Kaser, "Recursive n-gram hashing
/// is pairwise independent, at best", 2010.)
///
/// With n <= 32 all rotations differ. If the token hashes are independent and uniform, any two given n-grams then
/// collide with a probability of at most 2^-33. A polynomial modulo 2^64 has no such bound: Thue-Morse words collide
/// for every base.
class CyclicHash {
 public:
  constexpr void advance(std::uint64_t entering) noexcept { state_ = std::rotl(state_, 1) ^ entering; }
  constexpr void advance(std::uint64_t entering, std::uint64_t leaving, std::uint32_t n) noexcept {
    state_ = std::rotl(state_, 1) ^ entering ^ std::rotl(leaving, static_cast<int>(n));
  }
  /// Undoes advance() with the same arguments.
  constexpr void retreat(std::uint64_t entering) noexcept { state_ = std::rotr(state_ ^ entering, 1); }
  constexpr void retreat(std::uint64_t entering, std::uint64_t leaving, std::uint32_t n) noexcept {
    state_ = std::rotr(state_ ^ entering ^ std::rotl(leaving, static_cast<int>(n)), 1);
  }
  /// Returns the mixed state. The state alone is linear in the token hashes, and for periodic n-grams it has only some
  /// of the 2^64 values. Any bits of the mixed state can address a table.
  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return spread(state_); }

 private:
  std::uint64_t state_ = 0;
};

}}}  // namespace reprise::detail
