// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "documents.hpp"
#include "mapped_file.hpp"
#include "output_file.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"

namespace reprise::indexing {

using reprise::detail::CorpusHeader;
using reprise::detail::CorpusSection;

/// Writes the file of a corpus from its first byte to its last: the text, then the index. Only the names and the bounds
/// of documents are in memory.
class CorpusFile {
 public:
  /// `depth`: the tokens that the index is sorted by.
  CorpusFile(const std::string& path, std::size_t vocabulary,
             std::uint32_t depth = reprise::detail::CorpusFormat::depth);

  /// Throws BuildError if the disk or the limit for the size of a file has no room for a corpus of `bytes` bytes.
  void expect_size(std::uint64_t bytes) { file_.expect_size(bytes); }

  // The text: any number of documents.

  void begin_document(std::string_view name);
  /// Throws InputError if a token is not below the vocabulary. `where` and `field` name its place in the input.
  void add(std::span<const std::uint32_t> tokens, const std::string& where, const FieldName& field);
  /// Ends a document. One without tokens is left out; then it returns false.
  bool end_document();

  /// Ends the text and maps it. Throws BuildError if the disk has no room for the index.
  void end_text(std::uint64_t fingerprint);

  // The index: all places, in order.

  [[nodiscard]] const CorpusHeader& header() const { return header_; }
  /// The bytes of the text, after end_text().
  [[nodiscard]] std::span<const std::byte> text() const;
  void add_places(std::span<const std::uint32_t> places);
  void add_places(std::span<const std::uint64_t> places);

  /// Writes the rest and publishes the file. Throws BuildError if the number of places is wrong.
  void finish();

 private:
  void begin_section(CorpusSection section);
  void put(std::span<const std::byte> bytes);
  void put_numbers(std::span<const std::uint64_t> numbers);
  void end_section();
  template <class Place>
  void add_any_places(std::span<const Place> places);
  template <class Word>
  void put_fences();

  std::string path_;
  OutputFile file_;
  CorpusHeader header_;
  CorpusSection section_ = CorpusSection::tokens;
  reprise::detail::Xxh64 checksum_;
  std::vector<std::byte> bytes_;       // of a call
  std::vector<std::uint64_t> begins_;  // of documents
  std::vector<std::uint64_t> name_ends_ = {0};
  std::string names_;
  std::vector<std::uint64_t> starts_;  // while the text is written, the number of suffixes of each first token
  MappedFile mapped_;
  std::uint64_t places_ = 0;  // written so far
};

}  // namespace reprise::indexing
