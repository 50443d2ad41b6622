// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/corpus_view.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The last tokens of a context, as keys that compare with those of a text. There is one pattern for each length: the
/// last 1, 2, ... tokens.
template <CorpusWord Word>
class CorpusPattern {
 public:
  static constexpr std::size_t capacity = CorpusFormat::least_depth;
  static constexpr std::size_t lanes = SuffixText<Word>::lanes;

  /// Keeps the last tokens of `suffix`, up to a token outside the vocabulary, which no corpus holds.
  CorpusPattern(TokenSpan suffix, std::uint32_t vocabulary) noexcept {
    constexpr std::size_t lane_bits = 8 * sizeof(Word);
    const std::size_t most = std::min(suffix.size(), capacity);
    std::uint64_t key = 0;
    for (; size_ < most; ++size_) {
      const auto token = static_cast<std::uint32_t>(suffix[suffix.size() - 1 - size_]);
      if (token >= vocabulary) break;
      key = (std::uint64_t{token} + 1) << (64 - lane_bits) | key >> lane_bits;
      keys_[size_] = key;
    }
  }

  /// Returns the greatest length of a pattern.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Returns the first token of the pattern of this length. Requires 1 <= length <= size().
  [[nodiscard]] std::uint64_t first(std::size_t length) const noexcept {
    return (keys_[length - 1] >> (64 - 8 * sizeof(Word))) - 1;
  }
  /// Returns the key of the pattern's last `left` tokens; lanes after its end are 0. Requires 1 <= left <= size().
  [[nodiscard]] std::uint64_t key(std::size_t left) const noexcept { return keys_[left - 1]; }

 private:
  std::array<std::uint64_t, capacity> keys_;
  std::size_t size_ = 0;
};

/// The begin or the end of the range of suffixes that begin with a pattern.
struct SuffixBound {
  std::size_t length = 0;   ///< of the pattern
  bool upper = false;       ///< the end of the range, not its begin
  std::uint64_t index = 0;  ///< the result; while searching: the result is in [index, end]
  std::uint64_t end = 0;    ///< while searching
  std::uint64_t low = 0;    ///< while searching fences: the result is in [low, high]
  std::uint64_t high = 0;   ///< while searching fences
};

/// Binary searches in the sorted suffixes of a corpus. Several searches advance in lock step, so that their cache
/// misses overlap. With a forged corpus the results are wrong, but within the corpus.
template <CorpusWord Word>
class CorpusSearch {
 public:
  using Pattern = CorpusPattern<Word>;
  /// The greatest length of a pattern that a fence holds as a whole; its first token is known from the range.
  static constexpr std::size_t covered_length = Pattern::lanes + 1;

  /// Both arguments must outlive the search.
  CorpusSearch(const CorpusView& view, const Pattern& pattern) noexcept
      : view_(view), pattern_(pattern), text_(view.text<Word>()) {}

  /// Narrows the range of each bound by the fences alone. The bounds are begins of ranges; the lengths are from 1 to
  /// pattern.size().
  void narrow_begins(std::span<SuffixBound> bounds) const noexcept {
    for (SuffixBound& bound : bounds) {
      const SuffixRange range = view_.range_of(pattern_.first(bound.length));
      bound.index = range.begin;
      bound.end = bound.length == 1 ? range.begin : range.end;
    }
    search_fences(bounds);
  }
  /// Returns the bound of the end of this range, narrowed by the fences. `begin`: a narrowed begin, of at least 2
  /// tokens.
  [[nodiscard]] SuffixBound narrowed_end(const SuffixBound& begin) const noexcept {
    const SuffixRange range = view_.range_of(pattern_.first(begin.length));
    SuffixBound bound{begin.length, true, std::max(begin.index, range.begin), range.end};
    if (bound.index >= range.end) return {begin.length, true, bound.index, bound.index};
    const std::uint64_t from = fences_before(bound.index);
    const std::uint64_t to = fences_before(range.end);
    const std::uint64_t above = fence_above(from, to, begin.length);
    // A fence decides alone only about patterns that it covers.
    if (begin.length <= covered_length && above > from) bound.index = (above - 1) * stride + 1;
    if (above < to) bound.end = above * stride;
    return bound;
  }
  /// Sets the index of each narrowed bound to the begin or the end of its range.
  void find(std::span<SuffixBound> bounds) const noexcept {
    for (bool searching = true; searching;) {
      searching = false;
      for (const SuffixBound& bound : bounds)
        if (bound.end - bound.index > stride)
          for_next_middles(bound.index, bound.end, [&](std::uint64_t index) { view_.prefetch_place(index); });
      for (const SuffixBound& bound : bounds)
        for_next_middles(bound.index, bound.end, [&](std::uint64_t index) { prefetch_text(index); });
      for (SuffixBound& bound : bounds) {
        for (int step = 0; step < 2 && bound.index < bound.end; ++step) {
          searching = true;
          const std::uint64_t middle = bound.index + (bound.end - bound.index) / 2;
          const int order = compare(view_.place(middle), bound.length);
          const bool before = order < 0 || (order == 0 && bound.upper);
          (before ? bound.index : bound.end) = middle + (before ? 1 : 0);
        }
      }
    }
  }

  /// Returns true if the fences alone show that more than fence_stride suffixes begin with the pattern. `begin`: a
  /// narrowed begin, of a length from 2 to covered_length.
  [[nodiscard]] bool passes_two_fences(const SuffixBound& begin) const noexcept {
    const std::uint64_t second = begin.low + 1;
    return second < fences_before(view_.range_of(pattern_.first(begin.length)).end) &&
           (view_.fence(second) & SuffixText<Word>::mask(begin.length - 1)) == pattern_.key(begin.length - 1);
  }

  /// Returns true if the suffix with this index begins with the pattern. Its first token is not compared.
  [[nodiscard]] bool matches(std::uint64_t index, std::size_t length) const noexcept {
    return compare(view_.place(index), length) == 0;
  }
  /// Prefetches the text of this suffix. The place should be in the cache.
  void prefetch_text(std::uint64_t index) const noexcept { text_.prefetch(view_.place(index)); }

 private:
  static constexpr std::uint64_t stride = CorpusFormat::fence_stride;

  /// Returns the number of fences whose suffixes are before this index.
  static constexpr std::uint64_t fences_before(std::uint64_t index) noexcept { return (index + stride - 1) / stride; }

  /// Compares the text at `place` with the pattern, as far as the pattern goes: -1, 0 or 1. Skips the first token.
  [[nodiscard]] int compare(std::uint64_t place, std::size_t length) const noexcept {
    for (std::size_t offset = 1; offset < length; offset += Pattern::lanes) {
      const std::size_t left = length - offset;
      const std::uint64_t key = text_.key(place + offset) & SuffixText<Word>::mask(left);
      if (key != pattern_.key(left)) return key < pattern_.key(left) ? -1 : 1;
    }
    return 0;
  }

  /// Returns the first fence of [from, to) that is greater than the pattern, or `to`. Only the pattern's tokens count.
  /// Cost: two binary searches over the result's distance from `from`.
  [[nodiscard]] std::uint64_t fence_above(std::uint64_t from, std::uint64_t to, std::size_t length) const noexcept {
    const std::uint64_t wanted = pattern_.key(length - 1);
    const std::uint64_t mask = SuffixText<Word>::mask(length - 1);
    return gallop(from, to, [&](std::uint64_t fence) { return (view_.fence(fence) & mask) > wanted; });
  }

  /// Calls visit(middle) for the next middle of a binary search in [low, high), and for the two that may follow it. So
  /// one cache miss serves two steps.
  template <class Visit>
  static void for_next_middles(std::uint64_t low, std::uint64_t high, Visit visit) noexcept {
    if (low >= high) return;
    const std::uint64_t middle = low + (high - low) / 2;
    visit(middle);
    if (low < middle) visit(low + (middle - low) / 2);
    if (middle + 1 < high) visit(middle + 1 + (high - middle - 1) / 2);
  }

  /// Narrows each range to the suffixes between two fences.
  void search_fences(std::span<SuffixBound> bounds) const noexcept {
    for (SuffixBound& bound : bounds) {
      bound.low = fences_before(bound.index);
      bound.high = bound.index < bound.end ? fences_before(bound.end) : bound.low;
    }
    // Finds the first fence that is not less than the pattern.
    for (bool searching = true; searching;) {
      searching = false;
      for (const SuffixBound& bound : bounds)
        for_next_middles(bound.low, bound.high, [&](std::uint64_t fence) { view_.prefetch_fence(fence); });
      for (SuffixBound& bound : bounds) {
        if (bound.low >= bound.high) continue;  // also patterns of one token, which have no key
        const std::uint64_t wanted = pattern_.key(bound.length - 1);
        const std::uint64_t mask = SuffixText<Word>::mask(bound.length - 1);
        for (int step = 0; step < 2 && bound.low < bound.high; ++step) {
          searching = true;
          const std::uint64_t middle = bound.low + (bound.high - bound.low) / 2;
          const bool less = (view_.fence(middle) & mask) < wanted;
          (less ? bound.low : bound.high) = middle + (less ? 1 : 0);
        }
      }
    }
    for (SuffixBound& bound : bounds) {
      if (bound.index >= bound.end) continue;
      const std::uint64_t to = fences_before(bound.end);
      const std::uint64_t above = bound.length <= covered_length ? bound.low : fence_above(bound.low, to, bound.length);
      if (bound.low > fences_before(bound.index)) bound.index = (bound.low - 1) * stride + 1;
      if (above < to) bound.end = above * stride;
      // Most ranges are now between two neighbouring fences, in a few cache lines.
      constexpr std::uint64_t in_line = 12;
      if (bound.end - bound.index <= stride)
        for (std::uint64_t index = bound.index; index < bound.end; index += in_line) view_.prefetch_place(index);
    }
  }

  const CorpusView& view_;
  const Pattern& pattern_;
  SuffixText<Word> text_;
};

}}}  // namespace reprise::detail
