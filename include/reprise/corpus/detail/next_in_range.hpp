// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/corpus/detail/corpus_view.hpp"
#include "reprise/corpus/detail/suffix_sort.hpp"

namespace reprise::inline v0::detail {

/// Returns the word `length` words after the place of this suffix; the separator if there is none.
template <CorpusWord Word>
Word word_after(const CorpusView& view, std::uint64_t index, std::size_t length) noexcept {
  const std::uint64_t place = view.place(index);
  const auto text = view.text<Word>();
  if (place >= text.size() || text.size() - place <= length) return SuffixText<Word>::separator;
  return text.word(static_cast<std::size_t>(place) + length);
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
    const auto is_same = [&](std::uint64_t index) { return word_after<Word>(view, index, length) == word; };
    std::uint64_t same = begin;  // a suffix with this word
    std::uint64_t step = 1;
    while (step < range.end - same && is_same(same + step)) {
      same += step;
      step *= 2;
    }
    std::uint64_t other = std::min(range.end, same + step);  // a suffix with another word, or the end
    if (visits++ == view.header().vocabulary) same = range.end - 1, other = range.end;
    while (other - same > 1) {
      const std::uint64_t middle = same + (other - same) / 2;
      (is_same(middle) ? same : other) = middle;
    }
    visit(std::uint64_t{word}, other - begin);
    begin = other;
  }
}

}  // namespace reprise::detail
