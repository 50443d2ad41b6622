// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"
#include "reprise_corpus/detail/corpus_view.hpp"
#include "reprise_corpus/detail/suffix_sort.hpp"
#include "reprise_corpus/detail/xxh64.hpp"

namespace reprise { inline namespace v0 {

/// A document of a corpus: tokens, and a name of any bytes. The name may be empty, and may repeat.
struct CorpusDocument {
  TokenSpan tokens;
  std::string_view name;
};

struct CorpusOptions {
  /// Tokens greater than or equal to this value are refused; from 1 to 2^31 - 1. Up to 65,535, a token takes 2 bytes;
  /// above, it takes 4 bytes.
  std::uint32_t vocabulary = 0;
  /// Any number that identifies the tokenizer, such as a hash of its file. With a different tokenizer, the same tokens
  /// mean different text.
  std::uint64_t fingerprint = 0;
};

namespace detail {

/// A corpus in memory while it is built.
template <CorpusWord Word>
class CorpusImage {
 public:
  /// Allocates the file. Error: out_of_memory (`value`: the bytes of the file).
  static Result<CorpusImage> make(const CorpusHeader& header) noexcept {
    CorpusImage image;
    const auto bytes = static_cast<std::size_t>(layout_of(header).file_bytes);
    if (!image.bytes_.resize(bytes, std::byte{0}))
      return Error{ErrorCode::out_of_memory, "there is no memory for the corpus: build it with reprise-index", bytes,
                   0};
    image.view_ = CorpusView({image.bytes_.data(), bytes}, header);
    return image;
  }

  void write_text(std::span<const CorpusDocument> documents) noexcept {
    std::uint64_t word = 0;
    std::uint64_t document = 0;
    std::uint64_t name_byte = 0;
    std::byte* const names = at(CorpusSection::names, (view_.header().documents + 1) * 8);
    for (const CorpusDocument& each : documents) {
      if (each.tokens.empty()) continue;
      store_little(word, at(CorpusSection::documents, document * 8));
      store_little(name_byte, at(CorpusSection::names, document * 8));
      for (const Token token : each.tokens) put_word(word++, static_cast<Word>(token));
      put_word(word++, SuffixText<Word>::separator);
      if (!each.name.empty()) std::memcpy(names + name_byte, each.name.data(), each.name.size());
      name_byte += each.name.size();
      ++document;
    }
    store_little(word, at(CorpusSection::documents, document * 8));
    store_little(name_byte, at(CorpusSection::names, document * 8));
  }

  /// Writes the places in order of their first tokens, and the index of the first place of each token.
  void write_places() noexcept {
    for_each_token(
        [&](std::uint64_t, Word token) { set_start(token + std::uint64_t{1}, view_.start(token + 1U) + 1); });
    for (std::uint64_t token = 1; token <= view_.header().vocabulary; ++token)
      set_start(token, view_.start(token) + view_.start(token - 1));
    for_each_token([&](std::uint64_t place, Word token) {
      const std::uint64_t index = view_.start(token);
      set_place(index, place);
      set_start(token, index + 1);
    });
    // Each start is now the end of its token, which is the start of the next token.
    for (std::uint64_t token = view_.header().vocabulary; token > 0; --token) set_start(token, view_.start(token - 1));
    set_start(0, 0);
  }

  /// Sorts the places of each first token. Error: out_of_memory (`value`: the bytes needed).
  Result<void> sort_places() noexcept {
    std::uint64_t most = 0;
    for (std::uint32_t token = 0; token < view_.header().vocabulary; ++token)
      most = std::max(most, view_.start(token + 1U) - view_.start(token));
    const auto count = static_cast<std::size_t>(most);
    detail::Buffer<SuffixRecord> records;
    detail::Buffer<SuffixRecord> scratch;
    if (!records.resize(count, {}) || !scratch.resize(count, {}))
      return Error{ErrorCode::out_of_memory, "there is no memory to sort the corpus: build it with reprise-index",
                   2 * count * sizeof(SuffixRecord), 0};
    SuffixSorter<Word> sorter(view_.text<Word>(), view_.header().depth, {scratch.data(), count});
    for (std::uint32_t token = 0; token < view_.header().vocabulary; ++token) {
      const std::uint64_t first = view_.start(token);
      const auto size = static_cast<std::size_t>(view_.start(token + 1U) - first);
      if (size < 2) continue;
      for (std::size_t i = 0; i < size; ++i) records[i] = {0, view_.place(first + i)};
      sorter.sort({records.data(), size}, 1);
      for (std::size_t i = 0; i < size; ++i) set_place(first + i, records[i].place);
    }
    return {};
  }

  /// Writes the fences, the checksums and the header, and returns the bytes of the corpus.
  Bytes finish() noexcept {
    for (std::uint64_t fence = 0; fence < view_.header().fences(); ++fence) {
      const std::uint64_t after_first = view_.place(fence * CorpusFormat::fence_stride) + 1;
      store_little(view_.text<Word>().key(after_first), at(CorpusSection::fences, fence * 8));
    }
    CorpusHeader header = view_.header();
    for (std::size_t i = 0; i < corpus_sections; ++i) {
      const CorpusPart part = view_.layout().parts[i];
      header.checksums[i] = Xxh64::of({bytes_.data() + part.offset, static_cast<std::size_t>(part.bytes)});
    }
    const auto first = encode(header);
    std::copy(first.begin(), first.end(), bytes_.begin());
    return std::move(bytes_);
  }

 private:
  [[nodiscard]] std::byte* at(CorpusSection section, std::uint64_t byte) noexcept {
    return bytes_.data() + view_.layout()[section].offset + byte;
  }
  void put_word(std::uint64_t index, Word word) noexcept {
    store_little(word, at(CorpusSection::tokens, index * sizeof(Word)));
  }
  void set_start(std::uint64_t token, std::uint64_t index) noexcept {
    store_little(index, at(CorpusSection::starts, token * 8));
  }
  void set_place(std::uint64_t index, std::uint64_t place) noexcept {
    store_place(place, at(CorpusSection::places, index * view_.header().place_bytes), view_.header().place_bytes);
  }
  /// Calls visit(place, token) for each token of the text.
  template <class Visit>
  void for_each_token(Visit visit) noexcept {
    const SuffixText<Word> words = view_.text<Word>();
    for (std::size_t i = 0; i < words.size(); ++i)
      if (const Word word = words.word(i); word != SuffixText<Word>::separator) visit(i, word);
  }

  Bytes bytes_;
  CorpusView view_;
};

/// Returns the header of a corpus of these documents, without checksums. Errors: as make_corpus().
inline Result<CorpusHeader> header_of(std::span<const CorpusDocument> documents,
                                      const CorpusOptions& options) noexcept {
  if (options.vocabulary == 0 || options.vocabulary > CorpusFormat::most_tokens)
    return Error{ErrorCode::invalid_argument,
                 "CorpusOptions::vocabulary is not from 1 to 2147483647: set it to the "
                 "size of the model's vocabulary",
                 options.vocabulary, CorpusFormat::most_tokens};
  CorpusHeader header;
  header.vocabulary = options.vocabulary;
  header.fingerprint = options.fingerprint;
  for (const CorpusDocument& document : documents) {
    if (document.tokens.empty()) continue;
    for (const Token token : document.tokens)
      if (static_cast<std::uint32_t>(token) >= options.vocabulary)
        return Error{ErrorCode::token_out_of_range,
                     "a token of a document is outside CorpusOptions::vocabulary: check the vocabulary and the file",
                     static_cast<std::uint32_t>(token), options.vocabulary};
    header.words += document.tokens.size() + 1;
    header.documents += 1;
    header.name_bytes += document.name.size();
  }
  if (header.words > CorpusFormat::most_words || header.name_bytes > CorpusFormat::most_words)
    return Error{ErrorCode::size_out_of_range, "the documents are too large for one corpus: build several",
                 header.words, CorpusFormat::most_words};
  header.choose_widths();
  return header;
}

template <CorpusWord Word>
Result<Bytes> make_corpus(std::span<const CorpusDocument> documents, const CorpusHeader& header) noexcept {
  auto image = CorpusImage<Word>::make(header);
  if (!image) return image.error();
  image->write_text(documents);
  image->write_places();
  if (auto sorted = image->sort_places(); !sorted) return sorted.error();
  return image->finish();
}

/// Like the function below, with the header of header_of(). Tests make its places wider.
inline Result<Bytes> make_corpus(std::span<const CorpusDocument> documents, const CorpusHeader& header) noexcept {
  return header.token_bytes == 2 ? make_corpus<std::uint16_t>(documents, header)
                                 : make_corpus<std::uint32_t>(documents, header);
}

}  // namespace detail

/// Returns the bytes of a corpus of these documents, for CorpusStore::open() or save_file(). Documents without tokens
/// are left out. The same documents in the same order always give the same bytes. `reprise-index` builds corpora that
/// do not fit into memory.
///
/// Errors: invalid_argument; token_out_of_range (`value`: the token, `limit`: the vocabulary); size_out_of_range;
/// out_of_memory.
///
/// Cost: about 0.6 microseconds for each token. Memory: the file, about 6.2 bytes for each token of a vocabulary up to
/// 65,535, and while sorting 32 bytes for each occurrence of the most frequent token.
///
/// Method: a suffix array (Manber and Myers 1990) that is sorted by the first 64 tokens of each suffix.
[[nodiscard]] inline Result<Bytes> make_corpus(std::span<const CorpusDocument> documents,
                                               const CorpusOptions& options) noexcept {
  const auto header = detail::header_of(documents, options);
  if (!header) return header.error();
  return detail::make_corpus(documents, *header);
}

}}  // namespace reprise
