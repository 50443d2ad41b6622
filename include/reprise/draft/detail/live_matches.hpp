// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/token.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::inline v0::detail {

/// An earlier place that the context currently seems to repeat.
struct LiveMatch {
  Position next = 0;             ///< position of the token that this match predicts
  std::uint32_t agreements = 0;  ///< bit i: the i-th last token of the context (from 0) agreed with this match
  std::uint16_t length = 0;      ///< length of the unbroken agreement in tokens
  MatchKind kind = MatchKind::lookup;
  friend bool operator==(const LiveMatch&, const LiveMatch&) = default;
};

/// Equivalent to std::popcount(), which calls a library function if the target may lack the instruction.
constexpr int bit_count(std::uint32_t bits) noexcept {
  bits -= bits >> 1 & 0x55555555U;
  bits = (bits & 0x33333333U) + (bits >> 2 & 0x33333333U);
  return static_cast<int>(((bits + (bits >> 4)) & 0x0f0f0f0fU) * 0x01010101U >> 24);
}

/// Returns agreement bits as in LiveMatch::agreements for the last 32 tokens of `a` and `b`, aligned at their ends.
inline std::uint32_t agreements_of(TokenSpan a, TokenSpan b) noexcept {
  const auto compared = std::min<std::size_t>({a.size(), b.size(), 32});
  const Token* there = a.data() + a.size();
  const Token* here = b.data() + b.size();
  std::uint32_t agreements = 0;
  for (std::size_t i = 1; i <= compared; ++i) agreements |= std::uint32_t{*(there - i) == *(here - i)} << (i - 1);
  return agreements;
}

/// The few earlier places that are followed while the context grows. propose() need not search for these places again,
/// and a copy that was edited resumes after the edit. (The recovering match model of PAQ compressors.)
///
/// A pure function of the tokens since reset() and of the lookup results.
class LiveMatches {
 public:
  static constexpr std::size_t capacity = 8;

  void reset() noexcept { size_ = 0; }
  [[nodiscard]] std::span<const LiveMatch> matches() const noexcept { return std::span(matches_).first(size_); }

  /// Advances every match past the last token of `tokens`, or drops the match. If the token breaks matches of 8 or more
  /// tokens, also follows the places where the longest of them may continue. Call it after each new token.
  void advance(TokenSpan tokens) noexcept {
    const std::size_t last = tokens.size() - 1;
    const Token token = tokens[last];
    Resumed resumed;
    std::size_t kept = 0;
    std::size_t longest = resumed_length - 1;
    for (const LiveMatch& match : matches()) {
      const bool agrees = tokens[match.next] == token;
      if (!agrees && match.length > longest) {
        longest = match.length;
        resumed = resume(match, tokens);
      }
      LiveMatch next = match;
      ++next.next;
      next.agreements = next.agreements << 1 | std::uint32_t{agrees};
      next.length =
          agrees ? static_cast<std::uint16_t>(std::min<int>(next.length + 1, longest_counted)) : std::uint16_t{0};
      // A mismatch inside a nearly perfect agreement means that one token was replaced: the match is kept.
      if (agrees || bit_count(next.agreements & 0xffffU) >= enough_agreement) matches_[kept++] = next;
    }
    size_ = kept;
    for (std::size_t i = 0; i < resumed.size; ++i) add(resumed.matches[i]);
  }

  /// Starts to follow `place`, unless it is already followed or the list is full of matches that are at least as good.
  void look_at(TokenSpan tokens, Position place) noexcept {
    if (follows(place)) return;
    const std::uint32_t agreements = agreements_of(tokens.first(place), tokens);
    insert({place, agreements, static_cast<std::uint16_t>(std::countr_one(agreements)), MatchKind::lookup});
  }

 private:
  static constexpr std::size_t resumed_length = 8;  // a shorter copy is not resumed after an edit
  static constexpr std::size_t omitted_at_most = 8;
  static constexpr int enough_agreement = 12;  // minimum number of agreeing tokens among the last 16
  static constexpr int longest_counted = 1000;

  struct Resumed {
    std::array<LiveMatch, 2> matches;
    std::size_t size = 0;
  };

  /// Returns the places where a copy may continue after a mismatch at the last token.
  static Resumed resume(const LiveMatch& match, TokenSpan tokens) noexcept {
    const std::size_t last = tokens.size() - 1;
    Resumed resumed;
    resumed.matches[resumed.size++] = {match.next, match.agreements << 1, 0, MatchKind::insertion};
    for (std::size_t skipped = 1; skipped <= omitted_at_most && match.next + skipped < last; ++skipped) {
      if (tokens[match.next + skipped] != tokens[last]) continue;
      resumed.matches[resumed.size++] = {static_cast<Position>(match.next + skipped + 1), match.agreements << 1 | 1, 1,
                                         MatchKind::omission};
      break;
    }
    return resumed;
  }

  [[nodiscard]] bool follows(Position place) const noexcept {
    return std::any_of(matches_.begin(), matches_.begin() + static_cast<std::ptrdiff_t>(size_),
                       [&](const LiveMatch& match) { return match.next == place; });
  }
  void add(const LiveMatch& match) noexcept {
    if (!follows(match.next)) insert(match);
  }
  void insert(const LiveMatch& match) noexcept {
    if (size_ < capacity) {
      matches_[size_++] = match;
      return;
    }
    const auto worst = std::min_element(matches_.begin(), matches_.end(),
                                        [](const LiveMatch& a, const LiveMatch& b) { return value(a) < value(b); });
    if (value(*worst) < value(match)) *worst = match;
  }
  /// Returns the rank of a match; higher is better. Each token of unbroken agreement counts 4, for up to 16 tokens.
  /// Each agreeing token before the mismatch counts 1. Of equal matches, the later place is better.
  static std::uint64_t value(const LiveMatch& match) noexcept {
    const int unbroken = std::min<int>(match.length, 16);
    const int before = bit_count(match.agreements >> std::min<int>(match.length, 31));
    return static_cast<std::uint64_t>(4 * unbroken + before) << 32 | match.next;
  }

  std::array<LiveMatch, capacity> matches_{};
  std::size_t size_ = 0;
};

}  // namespace reprise::detail
