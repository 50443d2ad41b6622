// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

using SequenceTag = std::uint64_t;  ///< see reprise::SequenceTag

/// Event counts of a history since it was made or cleared.
struct HistoryCounts {
  std::uint64_t stored = 0;      ///< tokens stored
  std::uint64_t duplicates = 0;  ///< tokens not stored, because the history held them already
  std::uint64_t refused = 0;     ///< tokens that are negative or at least HistoryOptions::vocabulary
  std::uint64_t evicted = 0;     ///< tokens that were evicted to make room for others
  /// Segments that were next in eviction order and were kept because of their uses.
  std::uint64_t second_chances = 0;
  std::uint64_t removed = 0;  ///< tokens removed by remove()
  friend bool operator==(const HistoryCounts&, const HistoryCounts&) = default;
};

/// A stored token and its origin, in 32 bits. Negative tokens and the largest token cannot be stored.
class HistoryWord {
 public:
  constexpr HistoryWord() noexcept = default;  ///< no token
  constexpr HistoryWord(Token token, Origin origin) noexcept
      : bits_(static_cast<std::uint32_t>(token) | (origin == Origin::output ? output : 0)) {}
  static constexpr HistoryWord from_bits(std::uint32_t bits) noexcept {
    HistoryWord word;
    word.bits_ = bits;
    return word;
  }
  static constexpr std::uint32_t most_tokens = 0x7fffffff;  ///< tokens 0 to most_tokens - 1 can be stored

  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == none; }
  [[nodiscard]] constexpr Token token() const noexcept { return static_cast<Token>(bits_ & ~output); }
  [[nodiscard]] constexpr Origin origin() const noexcept {
    return (bits_ & output) != 0 ? Origin::output : Origin::prompt;
  }
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  /// Returns true if the word holds this token; an empty word holds none.
  [[nodiscard]] constexpr bool is(Token token) const noexcept { return !empty() && this->token() == token; }

 private:
  static constexpr std::uint32_t output = std::uint32_t{1} << 31;
  static constexpr std::uint32_t none = 0xffffffff;
  std::uint32_t bits_ = none;
};

/// A match in a history: an occurrence of at least the last token of the looked-up text.
template <class Slot>
struct BasicHistoryMatch {
  Slot next = 0;  ///< the slot of the token after the occurrence
  /// Bit i: the token i + 1 places before `next` is known to equal the token i + 1 places before the end of the
  /// looked-up text.
  std::uint32_t agreements = 0;
  friend bool operator==(const BasicHistoryMatch&, const BasicHistoryMatch&) = default;
};

/// A contiguous piece of stored text. Eviction may have removed text before or after it.
template <class Slot>
struct BasicHistoryRun {
  SequenceTag sequence = 0;
  Slot first = 0;        ///< the slot of the run's first token
  std::size_t size = 0;  ///< tokens
  friend bool operator==(const BasicHistoryRun&, const BasicHistoryRun&) = default;
};

}  // namespace reprise::detail
