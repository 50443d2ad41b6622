// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/core/detail/prefetch.hpp"
#include "reprise/corpus/detail/corpus_format.hpp"
#include "reprise/corpus/detail/suffix_sort.hpp"
#include "reprise/corpus/detail/xxh64.hpp"

namespace reprise::inline v0::detail {

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
    return load_number<std::uint64_t>(at(section, index * sizeof(std::uint64_t)));
  }

  CorpusHeader header_;
  const std::byte* data_ = nullptr;
  CorpusLayout layout_;
};

}  // namespace reprise::detail
