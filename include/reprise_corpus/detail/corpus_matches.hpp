// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/datastore.hpp"
#include "reprise/core/token.hpp"
#include "reprise_corpus/detail/corpus_search.hpp"
#include "reprise_corpus/detail/corpus_view.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

namespace reprise { inline namespace v0 { namespace detail {

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
  [[nodiscard]] std::uint32_t operator()(const SuffixText<Word>& text, std::uint64_t next) const noexcept {
    return next >= most ? compare_keys(text, next) : compare_words(text, next);
  }

 private:
  static constexpr Word separator = SuffixText<Word>::separator;
  static constexpr std::size_t lanes = SuffixText<Word>::lanes;

  [[nodiscard]] std::uint32_t compare_words(const SuffixText<Word>& text, std::uint64_t next) const noexcept {
    std::uint32_t agreements = 0;
    for (std::size_t i = 0; i < std::min<std::uint64_t>(size_, next); ++i) {
      const Word word = text.word(next - 1 - i);
      if (word == separator) break;
      const std::size_t at = most - 1 - i;
      const auto wanted = static_cast<Word>(keys_[at / lanes] >> (at % lanes * 8 * sizeof(Word)));
      agreements |= std::uint32_t{word == wanted} << i;
    }
    return agreements & possible_;
  }
  /// Does the same, several tokens at a time.
  [[nodiscard]] std::uint32_t compare_keys(const SuffixText<Word>& text, std::uint64_t next) const noexcept {
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
    const std::uint64_t flags = SuffixText<Word>::zero_lanes(bits) >> (8 * sizeof(Word) - 1);
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

/// Finds the places of a corpus that follow the longest matches of a context.
///
/// A pattern of length m occurs at most as often as one of length m - 1. So there is a least length that occurs at most
/// `few` times. All of its occurrences are read, and compared further back. If they are fewer than the places wanted,
/// or none, places of the next shorter length are added, from the whole of its range.
template <CorpusWord Word>
class CorpusMatches {
 public:
  static constexpr std::size_t most_matches = 32;

  CorpusMatches(const CorpusView& view, TokenSpan suffix) noexcept
      : view_(view),
        text_(view.text<Word>()),
        suffix_(suffix.last(std::min(suffix.size(), Pattern::capacity))),
        pattern_(suffix_, view.header().vocabulary),
        compare_back_(suffix_),
        search_(view_, pattern_) {}
  CorpusMatches(const CorpusMatches&) = delete;
  CorpusMatches& operator=(const CorpusMatches&) = delete;

  /// Writes matches to `out`, and returns their number. See CorpusStore::find().
  [[nodiscard]] std::size_t find(std::span<StoreMatch> out) noexcept {
    if (pattern_.size() == 0 || out.empty()) return 0;
    out = out.first(std::min(out.size(), most_matches));
    const std::size_t least = least_rare_length();
    std::size_t count = 0;
    if (least <= pattern_.size()) count = add_rare(least, out);
    if (least > 1 && count < out.size()) count = add_sample(least - 1, out, count);
    return count;
  }

  /// Returns the range of the suffixes that begin with all tokens of the context; an empty range if a token is outside
  /// the vocabulary, or if there is no token.
  [[nodiscard]] SuffixRange range() const noexcept {
    if (pattern_.size() == 0 || pattern_.size() < suffix_.size()) return {};
    return range_of(pattern_.size());
  }

 private:
  using Pattern = CorpusPattern<Word>;
  using Search = CorpusSearch<Word>;
  static constexpr std::size_t few = 32;  // a length with at most this many occurrences is rare
  // The lengths of two rounds, if the short lengths are not rare. A third round fills a gap.
  static constexpr std::array<std::uint8_t, 5> medium_lengths = {4, 5, 6, 9, 12};
  static constexpr std::array<std::uint8_t, 4> long_lengths = {16, 20, 26, 32};
  static_assert(long_lengths.back() == Pattern::capacity);

  /// The range of a pattern.
  struct LengthRange {
    std::size_t length = 0;
    SuffixRange range;
  };

  /// Returns the least length with at most `few` occurrences; pattern_.size() + 1 if there is none.
  [[nodiscard]] std::size_t least_rare_length() noexcept {
    const SuffixRange range = view_.range_of(pattern_.first(1));
    begins_[1] = range.begin;
    if (range.size() <= few) return 1;
    std::size_t common = 1;                  // the greatest length known not to be rare
    std::size_t rare = pattern_.size() + 1;  // the least length known to be rare
    search_short(common, rare);
    search_round(medium_lengths, common, rare);
    search_round(long_lengths, common, rare);
    std::array<SuffixBound, Pattern::capacity> bounds;
    std::size_t count = 0;
    for (std::size_t length = common + 1; length < rare; ++length) bounds[count++] = {length};
    search(std::span(bounds).first(count), common, rare);
    return rare;
  }

  /// Searches the short lengths, in the fences only. Of those that may be rare, the two shortest are searched in the
  /// text too, together with the range below them, from which places are probably sampled.
  void search_short(std::size_t& common, std::size_t& rare) noexcept {
    std::array<SuffixBound, Search::covered_length> bounds;
    std::size_t count = 0;
    for (std::size_t length = 2; length <= std::min(pattern_.size(), Search::covered_length); ++length)
      bounds[count++] = {length};
    search_.narrow_begins(std::span(bounds).first(count));
    std::size_t doubtful = 0;
    while (doubtful < count && search_.passes_two_fences(bounds[doubtful])) ++doubtful;
    common = doubtful + 1;
    if (doubtful == count) return;
    std::array<SuffixBound, 4> found;
    const std::size_t judged = std::min<std::size_t>(count - doubtful, 2);
    std::copy_n(bounds.begin() + static_cast<std::ptrdiff_t>(doubtful), judged, found.begin());
    std::size_t size = judged;
    if (doubtful > 0) {
      found[size++] = bounds[doubtful - 1];
      found[size++] = search_.narrowed_end(bounds[doubtful - 1]);
    }
    search_.find(std::span(found).first(size));
    if (doubtful > 0) sampled_ = {common, {found[judged].index, found[judged + 1].index}};
    judge(std::span(found).first(judged), common, rare);
  }

  /// Searches those of these lengths that are greater than `common`, until one is rare.
  void search_round(std::span<const std::uint8_t> lengths, std::size_t& common, std::size_t& rare) noexcept {
    if (rare <= pattern_.size() || common == pattern_.size()) return;
    std::array<SuffixBound, Pattern::capacity> bounds;
    std::size_t count = 0;
    for (const std::size_t length : lengths)
      if (length > common && (count == 0 || bounds[count - 1].length < pattern_.size()))
        bounds[count++] = {std::min(length, pattern_.size())};
    search(std::span(bounds).first(count), common, rare);
  }

  /// Searches these lengths, which rise, and judges them.
  void search(std::span<SuffixBound> begins, std::size_t& common, std::size_t& rare) noexcept {
    search_.narrow_begins(begins);
    search_.find(begins);
    judge(begins, common, rare);
  }

  /// Reads whether these lengths, which rise, are rare, and moves `common` and `rare` towards each other.
  void judge(std::span<const SuffixBound> begins, std::size_t& common, std::size_t& rare) noexcept {
    for (const SuffixBound& begin : begins)
      if (begin.index + few < view_.tokens()) view_.prefetch_place(begin.index + few);
    for (const SuffixBound& begin : begins)
      if (begin.index + few < view_.tokens()) search_.prefetch_text(begin.index + few);
    for (const SuffixBound& begin : begins) {
      begins_[begin.length] = begin.index;
      if (!occurs_at(begin.index + few, begin.length)) {
        rare = begin.length;
        return;
      }
      common = begin.length;
    }
  }

  [[nodiscard]] bool occurs_at(std::uint64_t index, std::size_t length) const noexcept {
    return index < view_.range_of(pattern_.first(length)).end && search_.matches(index, length);
  }

  /// Returns the suffixes that begin with the pattern of this length.
  [[nodiscard]] SuffixRange range_of(std::size_t length) const noexcept {
    if (length == 1) return view_.range_of(pattern_.first(1));
    std::array<SuffixBound, 2> bounds = {SuffixBound{length}};
    search_.narrow_begins(std::span(bounds).first(1));
    bounds[1] = search_.narrowed_end(bounds[0]);
    search_.find(bounds);
    return {bounds[0].index, bounds[1].index};
  }

  /// Reads all occurrences of a rare length, and writes those with the longest agreement first.
  [[nodiscard]] std::size_t add_rare(std::size_t length, std::span<StoreMatch> out) noexcept {
    const std::uint64_t begin = begins_[length];
    const std::uint64_t end = std::min<std::uint64_t>(view_.range_of(pattern_.first(length)).end, begin + few);
    for (std::uint64_t index = begin; index < end; ++index) search_.prefetch_text(index);
    std::array<StoreMatch, few> found;
    std::size_t size = 0;
    for (std::uint64_t index = begin; index < end; ++index) {
      if (!search_.matches(index, length)) break;
      if (read(index, length, found[size])) ++size;
    }
    std::array<std::uint8_t, Pattern::capacity + 1> counts{};
    for (std::size_t i = 0; i < size; ++i) ++counts[agreement(found[i])];
    std::size_t count = 0;
    for (std::size_t wanted = Pattern::capacity; wanted > 0 && count < out.size(); --wanted) {
      if (counts[wanted] == 0) continue;
      const std::size_t room = std::min<std::size_t>(counts[wanted], out.size() - count);
      std::size_t seen = 0;
      std::size_t taken = 0;
      for (std::size_t i = 0; i < size && taken < room; ++i)
        if (agreement(found[i]) == wanted && seen++ == taken * counts[wanted] / room) out[count + taken++] = found[i];
      count += taken;
    }
    return count;
  }

  /// Adds occurrences of a length that is not rare, at equal distances in its range.
  [[nodiscard]] std::size_t add_sample(std::size_t length, std::span<StoreMatch> out, std::size_t count) noexcept {
    const SuffixRange range = sampled_.length == length ? sampled_.range : range_of(length);
    const std::uint64_t begin = first_continued(range, length);
    const std::uint64_t end = range.end;
    if (end <= begin) return count;
    const std::uint64_t size = end - begin;
    const auto room = static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - count, size));
    const std::size_t longest = count == 0 ? Pattern::capacity : length;
    const auto index_of = [&](std::size_t i) { return begin + size * i / room; };
    for (std::size_t i = 0; i < room; ++i) view_.prefetch_place(index_of(i));
    for (std::size_t i = 0; i < room; ++i) search_.prefetch_text(index_of(i));
    for (std::size_t i = 0; i < room; ++i) {
      StoreMatch match;
      // A longer match is one of the rare occurrences, which have been added.
      if (read(index_of(i), length, match) && agreement(match) <= longest) out[count++] = match;
    }
    return count;
  }

  /// Returns the index of the first suffix in the range that goes on after the pattern. Those that end there come
  /// first.
  [[nodiscard]] std::uint64_t first_continued(SuffixRange range, std::size_t length) const noexcept {
    const auto ends = [&](std::uint64_t index) {
      return word_after<Word>(view_, index, length) == SuffixText<Word>::separator;
    };
    if (range.begin >= range.end || !ends(range.begin)) return range.begin;
    return first_past(range.begin, range.end, [&](std::uint64_t index) { return !ends(index); });
  }

  static std::size_t agreement(const StoreMatch& match) noexcept {
    return static_cast<std::size_t>(std::countr_one(match.agreements));
  }

  /// Reads the match of this suffix. Returns false if the text ends after the pattern, or if the corpus is forged and
  /// not even the last token agrees.
  [[nodiscard]] bool read(std::uint64_t index, std::size_t length, StoreMatch& match) const noexcept {
    const std::uint64_t place = view_.place(index);
    if (place >= text_.size() || text_.size() - place <= length) return false;
    match.next = place + length;
    if (text_.word(match.next) >= view_.header().vocabulary) return false;
    match.agreements = compare_back_(text_, match.next);
    return (match.agreements & 1) != 0;
  }

  const CorpusView& view_;
  SuffixText<Word> text_;
  TokenSpan suffix_;
  Pattern pattern_;
  BackwardComparison<Word> compare_back_;
  Search search_;
  std::array<std::uint64_t, Pattern::capacity + 1> begins_;  // of the lengths that were judged
  LengthRange sampled_;                                      // of a length below them, if it was searched
};

}}}  // namespace reprise::detail
