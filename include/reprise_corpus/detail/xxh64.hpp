// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/history/detail/byte_format.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The checksum XXH64 with seed 0 (Collet 2014), over bytes that come in any number of parts. Damage goes undetected in
/// about one case out of 2^64. The checksum is not a signature: anyone who can write the bytes can write the checksum.
///
/// Cost: four independent lanes of eight bytes, so that a core reads several gigabytes per second.
class Xxh64 {
 public:
  void update(std::span<const std::byte> bytes) noexcept {
    total_ += bytes.size();
    if (held_ != 0) {
      const std::size_t taken = std::min(bytes.size(), block - held_);
      std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(held_));
      held_ += taken;
      bytes = bytes.subspan(taken);
      if (held_ < block) return;
      consume(block_.data());
      held_ = 0;
    }
    for (; bytes.size() >= block; bytes = bytes.subspan(block)) consume(bytes.data());
    std::copy(bytes.begin(), bytes.end(), block_.begin());
    held_ = bytes.size();
  }

  /// Returns the checksum of all bytes so far. More bytes may follow.
  [[nodiscard]] std::uint64_t value() const noexcept {
    std::uint64_t hash = p5;
    if (total_ >= block) {
      hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
      for (const std::uint64_t lane : lanes_) hash = (hash ^ round(0, lane)) * p1 + p4;
    }
    hash += total_;
    std::size_t at = 0;
    for (; held_ - at >= 8; at += 8)
      hash = std::rotl(hash ^ round(0, load_little<std::uint64_t>(&block_[at])), 27) * p1 + p4;
    if (held_ - at >= 4) {
      hash = std::rotl(hash ^ load_little<std::uint32_t>(&block_[at]) * p1, 23) * p2 + p3;
      at += 4;
    }
    for (; at < held_; ++at) hash = std::rotl(hash ^ std::to_integer<std::uint64_t>(block_[at]) * p5, 11) * p1;
    hash = (hash ^ hash >> 33) * p2;
    hash = (hash ^ hash >> 29) * p3;
    return hash ^ hash >> 32;
  }

  /// Returns the checksum of these bytes alone.
  [[nodiscard]] static std::uint64_t of(std::span<const std::byte> bytes) noexcept {
    Xxh64 checksum;
    checksum.update(bytes);
    return checksum.value();
  }

 private:
  static constexpr std::uint64_t p1 = 0x9e3779b185ebca87;
  static constexpr std::uint64_t p2 = 0xc2b2ae3d27d4eb4f;
  static constexpr std::uint64_t p3 = 0x165667b19e3779f9;
  static constexpr std::uint64_t p4 = 0x85ebca77c2b2ae63;
  static constexpr std::uint64_t p5 = 0x27d4eb2f165667c5;
  static constexpr std::size_t block = 32;

  static std::uint64_t round(std::uint64_t lane, std::uint64_t input) noexcept {
    return std::rotl(lane + input * p2, 31) * p1;
  }
  void consume(const std::byte* from) noexcept {
    for (std::size_t i = 0; i < lanes_.size(); ++i)
      lanes_[i] = round(lanes_[i], load_little<std::uint64_t>(from + 8 * i));
  }

  std::array<std::uint64_t, 4> lanes_ = {p1 + p2, p2, 0, 0 - p1};
  std::array<std::byte, block> block_{};
  std::size_t held_ = 0;  // bytes in block_
  std::uint64_t total_ = 0;
};

}}}  // namespace reprise::detail
