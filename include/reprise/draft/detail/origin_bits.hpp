// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The origins of the tokens of a sequence, one bit for each token: a text whose origin alternates then takes as much
/// memory as any other. Tokens for which there is no memory count as prompt.
class OriginBits {
 public:
  void clear() noexcept { size_ = 0; }
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept { return words_.reserve(words_for(tokens)); }
  void append(std::size_t count, Origin origin) noexcept {
    const std::size_t end = size_ + count;
    if (words_for(end) > words_.size()) static_cast<void>(words_.resize(words_for(end), 0));
    const std::size_t stored = std::min(end, words_.size() * bits);
    for (std::size_t at = size_; at < stored;) {
      const std::size_t first = at % bits;
      const std::size_t part = std::min(bits - first, stored - at);
      const std::uint64_t mask = ~std::uint64_t{0} >> (bits - part) << first;
      words_[at / bits] = origin == Origin::output ? words_[at / bits] | mask : words_[at / bits] & ~mask;
      at += part;
    }
    size_ = end;
  }
  void truncate(std::size_t size) noexcept { size_ = std::min(size_, size); }
  [[nodiscard]] Origin of(std::size_t position) const noexcept {
    const bool output =
        position < std::min(size_, words_.size() * bits) && (words_[position / bits] >> (position % bits) & 1) != 0;
    return output ? Origin::output : Origin::prompt;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return words_.memory_bytes(); }

 private:
  static constexpr std::size_t bits = 64;
  static constexpr std::size_t words_for(std::size_t tokens) noexcept { return (tokens + bits - 1) / bits; }

  Buffer<std::uint64_t> words_;
  std::size_t size_ = 0;  // in tokens
};

}}}  // namespace reprise::detail
