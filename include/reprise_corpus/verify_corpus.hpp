// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/core/result.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/corpus_view.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"
#include "reprise_corpus/detail/xxh64.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// Checks the contents of a corpus whose header has been checked.
template <CorpusWord Word, class Progress>
class CorpusCheck {
 public:
  CorpusCheck(std::span<const std::byte> bytes, const CorpusView& view, Progress& progress) noexcept
      : bytes_(bytes), view_(view), text_(view.text<Word>()), progress_(progress) {}

  [[nodiscard]] Result<void> run() noexcept {
    if (auto good = check_bytes(); !good) return good;
    if (auto good = check_documents(); !good) return good;
    if (auto good = check_starts(); !good) return good;
    return check_places();
  }

 private:
  static constexpr Word separator = SuffixText<Word>::separator;
  static constexpr std::uint64_t step = std::uint64_t{1} << 16;  // suffixes between two reports of progress

  static Error forged(std::string_view message, std::uint64_t where) noexcept {
    return {ErrorCode::corpus_forged, message, where, 0};
  }
  [[nodiscard]] std::span<const std::byte> part(std::uint64_t begin, std::uint64_t end) const noexcept {
    return bytes_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }

  /// Checks the checksums of the sections, and the bytes between them.
  [[nodiscard]] Result<void> check_bytes() const noexcept {
    std::uint64_t end = CorpusFormat::header_bytes;
    for (std::size_t i = 0; i < corpus_sections; ++i) {
      const CorpusPart section = view_.layout().parts[i];
      const auto gap = part(end, section.offset);
      if (std::any_of(gap.begin(), gap.end(), [](std::byte byte) { return byte != std::byte{0}; }))
        return Error{ErrorCode::corpus_damaged,
                     "bytes between two sections of the corpus are not 0: take another copy of the file", end, 0};
      end = section.offset + section.bytes;
      if (Xxh64::of(part(section.offset, end)) != view_.header().checksums[i])
        return Error{ErrorCode::corpus_damaged, "a section of the corpus is damaged: take another copy of the file",
                     section.offset, i};
      progress_(i + 1, progress_steps());
    }
    return {};
  }

  /// Checks the documents, their separators and names, and the ids of all tokens.
  [[nodiscard]] Result<void> check_documents() const noexcept {
    const CorpusHeader& header = view_.header();
    if (view_.document_begin(0) != 0 || view_.name_begin(0) != 0)
      return forged("the first document of the corpus, or its name, does not begin at 0: build the corpus again", 0);
    for (std::uint64_t i = 0; i < header.documents; ++i) {
      const std::uint64_t begin = view_.document_begin(i);
      const std::uint64_t end = view_.document_begin(i + 1);
      if (begin >= end || end - begin < 2 || end > header.words)
        return forged("a document of the corpus has no tokens or lies outside of the text: build the corpus again", i);
      if (view_.name_begin(i) > view_.name_begin(i + 1) || view_.name_begin(i + 1) > header.name_bytes)
        return forged("the name of a document lies outside of the names: build the corpus again", i);
      for (std::uint64_t word = begin; word + 1 < end; ++word)
        if (text_.word(word) >= header.vocabulary)
          return forged("a token of the corpus is outside of its vocabulary: build the corpus again", word);
      if (text_.word(end - 1) != separator)
        return forged("a document of the corpus does not end with a separator: build the corpus again", i);
    }
    if (view_.document_begin(header.documents) != header.words ||
        view_.name_begin(header.documents) != header.name_bytes)
      return forged("the last document of the corpus, or its name, does not end at the end: build the corpus again",
                    header.documents);
    return {};
  }

  [[nodiscard]] Result<void> check_starts() const noexcept {
    const std::uint64_t vocabulary = view_.header().vocabulary;
    std::uint64_t previous = 0;
    for (std::uint64_t token = 0; token <= vocabulary; ++token) {
      const std::uint64_t start = view_.start(token);
      if (start < previous || (token == 0 && start != 0) || (token == vocabulary && start != view_.tokens()))
        return forged(
            "the first suffixes of the tokens do not rise from 0 to the number of tokens: build the corpus "
            "again",
            token);
      previous = start;
    }
    return {};
  }

  /// Checks that each suffix is at its place in the order. The order is strict, so no place occurs twice, and N places
  /// of N tokens are all of them.
  [[nodiscard]] Result<void> check_places() const noexcept {
    constexpr std::uint64_t ahead = 32;
    const std::uint64_t suffixes = view_.tokens();
    std::uint64_t token = 0;
    std::uint64_t before = 0;
    for (std::uint64_t index = 0; index < suffixes; ++index) {
      if (index + ahead < suffixes) text_.prefetch(view_.place(index + ahead));
      const std::uint64_t place = view_.place(index);
      while (view_.start(token + 1) <= index) ++token;
      if (place >= view_.words() || text_.word(place) != token)
        return forged("a suffix of the corpus is under another first token: build the corpus again", index);
      if (index != view_.start(token) && !rises(before, place))
        return forged("two suffixes of the corpus are in the wrong order: build the corpus again", index);
      if (index % CorpusFormat::fence_stride == 0 &&
          view_.fence(index / CorpusFormat::fence_stride) != text_.key(place + 1))
        return forged("a fence of the corpus is not the key of its suffix: build the corpus again", index);
      before = place;
      if ((index + 1) % step == 0) progress_(corpus_sections + (index + 1) / step, progress_steps());
    }
    return {};
  }

  [[nodiscard]] std::uint64_t progress_steps() const noexcept { return corpus_sections + view_.tokens() / step; }

  /// Returns true if the suffix at `left` comes before the one at `right`. Both begin with the same token.
  [[nodiscard]] bool rises(std::uint64_t left, std::uint64_t right) const noexcept {
    constexpr std::uint64_t last_lane = separator;
    const std::size_t depth = view_.header().depth;
    for (std::size_t offset = 1; offset < depth; offset += SuffixText<Word>::lanes) {
      const std::uint64_t mask = SuffixText<Word>::mask(depth - offset);  // lanes at or after the depth do not count
      const std::uint64_t a = text_.key(left + offset) & mask;
      const std::uint64_t b = text_.key(right + offset) & mask;
      if (a != b) return a < b;
      if ((a & last_lane) == 0) break;  // both documents or the depth end here
    }
    return left < right;
  }

  std::span<const std::byte> bytes_;
  const CorpusView& view_;
  SuffixText<Word> text_;
  Progress& progress_;
};

}  // namespace detail

/// Checks every byte of a corpus: the checksums, the documents, every id, and that the suffixes are complete and in
/// order. Calls progress(done, steps) now and then. Errors: those of CorpusStore::open(), and
///
///  * corpus_damaged (`value`: the offset of the section or of the bytes, `limit`: the number of the section, from 0).
///  * corpus_forged (`value`: the index of the document, token, word or suffix that the message names).
///
/// Cost: a pass over the bytes, and one or two cache misses for each token. No allocation.
template <class Progress>
[[nodiscard]] Result<void> verify_corpus(std::span<const std::byte> bytes, Progress progress) noexcept {
  const auto header = detail::decode(bytes);
  if (!header) return header.error();
  const detail::CorpusView view(bytes, *header);
  return header->token_bytes == sizeof(std::uint16_t)
             ? detail::CorpusCheck<std::uint16_t, Progress>(bytes, view, progress).run()
             : detail::CorpusCheck<std::uint32_t, Progress>(bytes, view, progress).run();
}
[[nodiscard]] inline Result<void> verify_corpus(std::span<const std::byte> bytes) noexcept {
  return verify_corpus(bytes, [](std::uint64_t /*done*/, std::uint64_t /*steps*/) {});
}

}}  // namespace reprise
