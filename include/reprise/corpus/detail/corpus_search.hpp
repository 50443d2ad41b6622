// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/corpus/detail/corpus_format.hpp"
#include "reprise/corpus/detail/corpus_view.hpp"
#include "reprise/corpus/detail/suffix_sort.hpp"

namespace reprise::inline v0::detail {

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
  /// Returns a mask of the lanes that key(left) fills.
  [[nodiscard]] static constexpr std::uint64_t mask(std::size_t left) noexcept {
    constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
    return left >= lanes ? all : ~(all >> (8 * sizeof(Word) * left));
  }

 private:
  std::array<std::uint64_t, capacity> keys_;
  std::size_t size_ = 0;
};

/// One end of the range of suffixes that begin with a pattern.
struct SuffixBound {
  std::size_t length = 0;    ///< of the pattern
  bool upper = false;        ///< the end of the range, not its begin
  std::uint64_t index = 0;   ///< the result of CorpusSearch::find()
  std::uint64_t end = 0;     ///< while searching: the result is in [index, end]
  std::uint64_t middle = 0;  ///< while searching: the suffix that is compared next
};

/// Binary searches in the sorted suffixes of a corpus. Several searches advance in lock step, so that their cache
/// misses overlap. With a forged corpus the results are wrong, but within the corpus.
template <CorpusWord Word>
class CorpusSearch {
 public:
  using Pattern = CorpusPattern<Word>;
  static constexpr std::uint64_t stride = CorpusFormat::fence_stride;

  /// Both arguments must outlive the search.
  CorpusSearch(const CorpusView& view, const Pattern& pattern) noexcept
      : view_(view), pattern_(pattern), text_(view.text<Word>()) {}

  /// Sets the index of each bound. Their lengths are from 1 to pattern.size().
  void find(std::span<SuffixBound> bounds) const noexcept {
    for (SuffixBound& bound : bounds) {
      const SuffixRange range = view_.range_of(pattern_.first(bound.length));
      bound.index = range.begin;
      bound.end = range.end;
      if (bound.length > 1) continue;
      if (bound.upper) bound.index = bound.end;
      bound.end = bound.index;
    }
    search_fences(bounds);
    search_text(bounds);
  }

  /// Returns true if the suffix with this index begins with the pattern. Its first token is not compared.
  [[nodiscard]] bool matches(std::uint64_t index, std::size_t length) const noexcept {
    return compare(view_.place(index), length) == 0;
  }
  /// Prefetches the text of this suffix. The place should be in the cache.
  void prefetch_text(std::uint64_t index) const noexcept {
    if (const std::uint64_t place = view_.place(index); place < text_.size())
      text_.prefetch(static_cast<std::size_t>(place));
  }

 private:
  /// Compares the text at `place` with the pattern, as far as the pattern goes: -1, 0 or 1. Skips the first token.
  [[nodiscard]] int compare(std::uint64_t place, std::size_t length) const noexcept {
    for (std::size_t offset = 1; offset < length; offset += Pattern::lanes) {
      const std::size_t left = length - offset;
      const std::uint64_t key = key_at(place, offset) & Pattern::mask(left);
      if (key != pattern_.key(left)) return key < pattern_.key(left) ? -1 : 1;
    }
    return 0;
  }
  [[nodiscard]] std::uint64_t key_at(std::uint64_t place, std::size_t offset) const noexcept {
    return place < text_.size() && text_.size() - place > offset ? text_.key(static_cast<std::size_t>(place) + offset)
                                                                 : 0;
  }

  /// Returns the first fence of [from, to) whose key is not less than the pattern; with `above`: is greater. Only the
  /// pattern's tokens count. Returns `to` if there is none.
  [[nodiscard]] std::uint64_t first_fence(std::uint64_t from, std::uint64_t to, std::size_t length,
                                          bool above) const noexcept {
    const std::uint64_t wanted = pattern_.key(length - 1);
    const std::uint64_t mask = Pattern::mask(length - 1);
    while (from < to) {
      const std::uint64_t middle = from + (to - from) / 2;
      const std::uint64_t key = view_.fence(middle) & mask;
      if (key < wanted || (above && key == wanted))
        from = middle + 1;
      else
        to = middle;
    }
    return from;
  }

  /// Narrows each range to the suffixes between two fences.
  void search_fences(std::span<SuffixBound> bounds) const noexcept {
    for (SuffixBound& bound : bounds) {
      if (bound.index >= bound.end) continue;
      const std::uint64_t from = (bound.index + stride - 1) / stride;
      const std::uint64_t to = (bound.end + stride - 1) / stride;
      // A fence decides alone only about patterns that it covers.
      const bool covered = bound.length - 1 <= Pattern::lanes;
      const std::uint64_t low = first_fence(from, to, bound.length, covered && bound.upper);
      const std::uint64_t high = covered ? low : first_fence(low, to, bound.length, true);
      if (low > from) bound.index = (low - 1) * stride + 1;
      if (high < to) bound.end = high * stride;
    }
  }

  void search_text(std::span<SuffixBound> bounds) const noexcept {
    for (bool searching = true; searching;) {
      searching = false;
      for (SuffixBound& bound : bounds) {
        if (bound.index >= bound.end) continue;
        searching = true;
        bound.middle = bound.index + (bound.end - bound.index) / 2;
        view_.prefetch_place(bound.middle);
      }
      for (const SuffixBound& bound : bounds)
        if (bound.index < bound.end) prefetch_text(bound.middle);
      for (SuffixBound& bound : bounds) {
        if (bound.index >= bound.end) continue;
        const int order = compare(view_.place(bound.middle), bound.length);
        if (order < 0 || (order == 0 && bound.upper))
          bound.index = bound.middle + 1;
        else
          bound.end = bound.middle;
      }
    }
  }

  const CorpusView& view_;
  const Pattern& pattern_;
  SuffixText<Word> text_;
};

}  // namespace reprise::detail
