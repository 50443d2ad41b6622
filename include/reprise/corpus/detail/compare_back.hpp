// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/core/token.hpp"
#include "reprise/corpus/detail/suffix_sort.hpp"
#include "reprise/corpus/detail/xxh64.hpp"

namespace reprise::inline v0::detail {

/// Compares the tokens before places of a text with the last 32 tokens of a context.
template <CorpusWord Word>
class BackwardComparison {
 public:
  static constexpr std::size_t most = 32;

  explicit BackwardComparison(TokenSpan suffix) noexcept : size_(std::min(suffix.size(), most)) {
    for (std::size_t i = 0; i < size_; ++i) {
      const auto token = static_cast<std::uint32_t>(suffix[suffix.size() - 1 - i]);
      if (token >= separator) continue;  // no text has this token
      const std::size_t at = most - 1 - i;
      keys_[at / lanes] |= std::uint64_t{token} << (at % lanes * 8 * sizeof(Word));
      possible_ |= std::uint32_t{1} << i;
    }
  }

  /// Returns StoreMatch::agreements of the place `next` <= text.size(). The comparison ends where the document begins.
  [[nodiscard]] std::uint32_t operator()(const SuffixText<Word>& text, std::size_t next) const noexcept {
    return next >= most ? compare_keys(text, next) : compare_words(text, next);
  }

 private:
  static constexpr Word separator = SuffixText<Word>::separator;
  static constexpr std::size_t lanes = sizeof(std::uint64_t) / sizeof(Word);

  [[nodiscard]] std::uint32_t compare_words(const SuffixText<Word>& text, std::size_t next) const noexcept {
    std::uint32_t agreements = 0;
    for (std::size_t i = 0; i < std::min(size_, next); ++i) {
      const Word word = text.word(next - 1 - i);
      if (word == separator) break;
      const std::size_t at = most - 1 - i;
      const auto wanted = static_cast<Word>(keys_[at / lanes] >> (at % lanes * 8 * sizeof(Word)));
      agreements |= std::uint32_t{word == wanted} << i;
    }
    return agreements & possible_;
  }
  /// Does the same, several tokens at a time.
  [[nodiscard]] std::uint32_t compare_keys(const SuffixText<Word>& text, std::size_t next) const noexcept {
    std::uint32_t agreements = 0;
    std::uint32_t separators = 0;
    for (std::size_t at = 0; at < most; at += lanes) {
      const std::uint64_t bits = text.bits(next - most + at);
      agreements = agreements << lanes | zero_lanes(bits ^ keys_[at / lanes]);
      separators = separators << lanes | zero_lanes(~bits);
    }
    // Bit i of both is now about the token i + 1 places before `next`.
    const std::uint32_t nearer = separators == 0 ? ~std::uint32_t{0} : (separators & (0 - separators)) - 1;
    return agreements & possible_ & nearer;
  }

  /// Returns one bit for each lane of `bits` that is 0. The lowest lane is the highest of these bits.
  static constexpr std::uint32_t zero_lanes(std::uint64_t bits) noexcept {
    constexpr std::uint64_t lowest = sizeof(Word) == 2 ? 0x0001000100010001 : 0x0000000100000001;
    constexpr std::uint64_t highest = lowest << (8 * sizeof(Word) - 1);
    const std::uint64_t zeros = ~(((bits & ~highest) + ~highest) | bits) & highest;
    const std::uint64_t flags = zeros >> (8 * sizeof(Word) - 1);
    if constexpr (sizeof(Word) == 2) {
      // Moves bits 0, 16, 32 and 48 to 51, 50, 49 and 48. No two products meet, so nothing is carried.
      return static_cast<std::uint32_t>(flags * 0x0008000400020001 >> 48 & 15);
    } else {
      return static_cast<std::uint32_t>((flags << 1 | flags >> 32) & 3);
    }
  }

  std::array<std::uint64_t, most / lanes> keys_{};  // the tokens in order, the first in the lowest bits
  std::uint32_t possible_ = 0;                      // a bit for each token that a text can have
  std::size_t size_;
};

}  // namespace reprise::detail
