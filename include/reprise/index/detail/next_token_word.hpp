// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

/// One word of a table of next-token counts, in 64 bits: the tag of a context, a count and a token. Instead of a token,
/// it can hold the mark `unlisted`. Its count is then the number of occurrences with next tokens that the table does
/// not list any more. Tokens 0 to 2^31 - 2 can be stored.
class NextTokenWord {
 public:
  static constexpr std::uint32_t most_tokens = 0x7fffffff;  ///< tokens 0 to most_tokens - 1 can be stored
  static constexpr std::uint32_t most_count = 0xffff;

  constexpr NextTokenWord() noexcept = default;  ///< an empty word
  /// Requires 1 <= count <= most_count, and a token that can be stored.
  constexpr NextTokenWord(std::uint16_t tag, Token token, std::uint32_t count) noexcept
      : NextTokenWord(tag, static_cast<std::uint32_t>(token), count) {}
  static constexpr NextTokenWord unlisted(std::uint16_t tag, std::uint32_t count) noexcept {
    return {tag, unlisted_mark, count};
  }
  static constexpr NextTokenWord from_bits(std::uint64_t bits) noexcept {
    NextTokenWord word;
    word.bits_ = bits;
    return word;
  }

  [[nodiscard]] constexpr std::uint64_t bits() const noexcept { return bits_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return (bits_ & count_bits) == 0; }
  [[nodiscard]] constexpr std::uint16_t tag() const noexcept { return static_cast<std::uint16_t>(bits_ >> tag_at); }
  [[nodiscard]] constexpr std::uint32_t count() const noexcept {
    return static_cast<std::uint32_t>(bits_ >> count_at) & most_count;
  }
  [[nodiscard]] constexpr bool is_unlisted() const noexcept { return low() == unlisted_mark; }
  /// Returns the token; any number if the word is empty or `unlisted`.
  [[nodiscard]] constexpr Token token() const noexcept { return static_cast<Token>(low()); }
  /// Returns true if the word is not empty and belongs to a context with this tag.
  [[nodiscard]] constexpr bool has_tag(std::uint16_t tag) const noexcept { return !empty() && this->tag() == tag; }
  /// Returns true if both words count the same: neither is empty, and they have equal tags and equal tokens or marks.
  [[nodiscard]] constexpr bool same_key(NextTokenWord other) const noexcept {
    return ((bits_ ^ other.bits_) & ~count_bits) == 0 && !empty() && !other.empty();
  }
  /// Returns the word with this count, at most most_count; an empty word if the count is 0.
  [[nodiscard]] constexpr NextTokenWord with_count(std::uint32_t count) const noexcept {
    return count == 0 ? NextTokenWord() : NextTokenWord(tag(), low(), std::min(count, most_count));
  }
  /// Returns a number that is larger for a larger count; among equal counts, for a smaller token.
  [[nodiscard]] constexpr std::uint64_t rank() const noexcept { return std::rotl(bits_ ^ token_bits, 64 - tag_at); }
  /// Returns true if a table can have written the word: it has a count, and a token that can be stored or the mark.
  [[nodiscard]] constexpr bool valid() const noexcept {
    return !empty() && (low() < most_tokens || low() == unlisted_mark);
  }
  friend bool operator==(const NextTokenWord&, const NextTokenWord&) = default;

 private:
  static constexpr int count_at = 32;
  static constexpr int tag_at = 48;
  static constexpr std::uint64_t token_bits = 0xffffffff;
  static constexpr std::uint64_t count_bits = std::uint64_t{most_count} << count_at;
  static constexpr std::uint32_t unlisted_mark = 0xffffffff;

  constexpr NextTokenWord(std::uint16_t tag, std::uint32_t low, std::uint32_t count) noexcept
      : bits_(std::uint64_t{tag} << tag_at | std::uint64_t{count} << count_at | low) {}
  [[nodiscard]] constexpr std::uint32_t low() const noexcept { return static_cast<std::uint32_t>(bits_); }

  std::uint64_t bits_ = 0;
};

}  // namespace reprise::detail
