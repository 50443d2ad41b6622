// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "mapped_file.hpp"
#include "reprise/core/result.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"

namespace reprise::indexing {

using reprise::detail::CorpusHeader;
using reprise::detail::CorpusSection;

/// A document of a corpus: its bounds in the text, without its separator, and its name.
struct CorpusDocumentBounds {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
};

/// A corpus that is read: a mapped file with a valid header. All functions throw InputError if the file is not a whole
/// corpus.
class CorpusInput {
 public:
  explicit CorpusInput(const std::string& path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const CorpusHeader& header() const { return header_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return file_.bytes(); }
  [[nodiscard]] std::span<const std::byte> section(CorpusSection section) const;

  /// Compares the checksums of all sections. Calls report(bytes) now and then.
  void check_sections(const std::function<void(std::uint64_t)>& report) const;
  [[nodiscard]] CorpusDocumentBounds document(std::uint64_t index) const;

 private:
  std::string path_;
  MappedFile file_;
  CorpusHeader header_;
};

/// The message of an error of a corpus, with its numbers.
std::string words_of(const Error& error);

/// The name of a section in messages and results.
std::string name_of(CorpusSection section);

}  // namespace reprise::indexing
