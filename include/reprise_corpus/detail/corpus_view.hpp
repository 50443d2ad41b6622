// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/core/detail/prefetch.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A range of suffixes, as indices of the sorted places.
struct SuffixRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] constexpr std::uint64_t size() const noexcept { return end - begin; }
};

/// The sections of a corpus in memory. The header has been checked, the contents have not. Every read is within the
/// bytes if the index is: a number that was read may be anything, so callers check it before they use it as an index.
class CorpusView {
 public:
  /// Creates a view of an empty corpus.
  CorpusView() noexcept = default;
  /// `header`: the result of decode(bytes).
  CorpusView(std::span<const std::byte> bytes, const CorpusHeader& header) noexcept
      : header_(header), data_(bytes.data()), layout_(layout_of(header)) {}

  [[nodiscard]] const CorpusHeader& header() const noexcept { return header_; }
  [[nodiscard]] const CorpusLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::uint64_t words() const noexcept { return header_.words; }
  [[nodiscard]] std::uint64_t tokens() const noexcept { return header_.tokens(); }

  /// Requires that Word has the width of the header.
  template <CorpusWord Word>
  [[nodiscard]] SuffixText<Word> text() const noexcept {
    return SuffixText<Word>({at(CorpusSection::tokens, 0), static_cast<std::size_t>(words()) * sizeof(Word)});
  }
  /// Returns the place of the suffix with this index. Requires index < tokens().
  [[nodiscard]] std::uint64_t place(std::uint64_t index) const noexcept {
    return load_place(at(CorpusSection::places, index * header_.place_bytes), header_.place_bytes);
  }
  void prefetch_place(std::uint64_t index) const noexcept {
    prefetch(at(CorpusSection::places, index * header_.place_bytes));
  }
  /// Returns the stored index of the first suffix that begins with `token`. Requires token <= vocabulary.
  [[nodiscard]] std::uint64_t start(std::uint64_t token) const noexcept { return number(CorpusSection::starts, token); }
  /// Returns the suffixes that begin with `token`, as stored, but within the corpus. Requires token < vocabulary.
  [[nodiscard]] SuffixRange range_of(std::uint64_t token) const noexcept {
    const std::uint64_t end = std::min(start(token + 1), tokens());
    return {std::min(start(token), end), end};
  }
  /// Returns the key of a fence. Requires fence < header().fences().
  [[nodiscard]] std::uint64_t fence(std::uint64_t fence) const noexcept { return number(CorpusSection::fences, fence); }
  void prefetch_fence(std::uint64_t fence) const noexcept { prefetch(at(CorpusSection::fences, fence * 8)); }

  /// Returns the first word of a document, as stored; of the last document + 1: the number of words. Requires
  /// document <= header().documents.
  [[nodiscard]] std::uint64_t document_begin(std::uint64_t document) const noexcept {
    return number(CorpusSection::documents, document);
  }
  /// Returns the first byte of a name, as stored. Requires document <= header().documents.
  [[nodiscard]] std::uint64_t name_begin(std::uint64_t document) const noexcept {
    return number(CorpusSection::names, document);
  }
  /// Returns the name of a document, or an empty one if the stored numbers are wrong. Requires
  /// document < header().documents.
  [[nodiscard]] std::string_view name(std::uint64_t document) const noexcept {
    const std::uint64_t begin = name_begin(document);
    const std::uint64_t end = name_begin(document + 1);
    if (begin > end || end > header_.name_bytes) return {};
    const std::byte* const names = at(CorpusSection::names, (header_.documents + 1) * 8);
    return {reinterpret_cast<const char*>(names + begin), static_cast<std::size_t>(end - begin)};
  }

 private:
  [[nodiscard]] const std::byte* at(CorpusSection section, std::uint64_t byte) const noexcept {
    return data_ + layout_[section].offset + byte;
  }
  [[nodiscard]] std::uint64_t number(CorpusSection section, std::uint64_t index) const noexcept {
    return load_little<std::uint64_t>(at(section, index * sizeof(std::uint64_t)));
  }

  CorpusHeader header_;
  const std::byte* data_ = nullptr;
  CorpusLayout layout_;
};

/// Returns the first index of [from, to) that is past a bound, or `to`: a binary search. `is_past` is true for all
/// indices after the first one for which it is. If it is not, the result is any index from `from` to `to`.
template <class IsPast>
std::uint64_t first_past(std::uint64_t from, std::uint64_t to, IsPast is_past) noexcept {
  while (from < to) {
    const std::uint64_t middle = from + (to - from) / 2;
    if (is_past(middle))
      to = middle;
    else
      from = middle + 1;
  }
  return from;
}
/// Does the same. Cost: two binary searches over the result's distance from `from`.
template <class IsPast>
std::uint64_t gallop(std::uint64_t from, std::uint64_t to, IsPast is_past) noexcept {
  std::uint64_t step = 1;
  for (; to - from >= step && !is_past(from + step - 1); step *= 2) from += step;
  return first_past(from, std::min(to, from + step - 1), is_past);
}

/// Returns the word `length` words after the place of this suffix; the separator if there is none.
template <CorpusWord Word>
Word word_after(const CorpusView& view, std::uint64_t index, std::size_t length) noexcept {
  const std::uint64_t place = view.place(index);
  const auto text = view.text<Word>();
  if (place >= text.size() || text.size() - place <= length) return SuffixText<Word>::separator;
  return text.word(place + length);
}

/// Calls visit(word, count) for each different word that follows a context, in the order of the suffixes: the
/// separator first, then rising tokens. `range`: the suffixes that begin with the context, which has `length` tokens.
///
/// Each word is found by galloping from the one before it, so the cost of n words is at most 2n binary searches over
/// their counts. In a forged corpus, words may be visited in any order, and repeatedly; the counts still add up to the
/// size of the range, and there are at most vocabulary + 1 visits.
template <CorpusWord Word, class Visit>
void for_each_next(const CorpusView& view, const SuffixRange& range, std::size_t length, Visit visit) noexcept {
  std::uint64_t visits = 0;
  for (std::uint64_t begin = range.begin; begin < range.end;) {
    const Word word = word_after<Word>(view, begin, length);
    const auto is_other = [&](std::uint64_t index) { return word_after<Word>(view, index, length) != word; };
    const std::uint64_t other =
        visits++ == view.header().vocabulary ? range.end : gallop(begin + 1, range.end, is_other);
    visit(std::uint64_t{word}, other - begin);
    begin = other;
  }
}

}}}  // namespace reprise::detail
