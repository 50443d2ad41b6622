// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "common/input_error.hpp"
#include "reprise_corpus/mapped_corpus.hpp"

#if !defined(_WIN32)
#include <sys/mman.h>
#endif

namespace reprise::indexing {

/// The bytes of a file, mapped for reading. Unlike MappedCorpus, the file need not be a corpus yet, and the system
/// reads ahead, because builds and merges read files from their first byte to their last.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws InputError if the file cannot be mapped.
  explicit MappedFile(const std::string& path) {
    auto mapping = Mapping::of(path);
    if (!mapping) throw tools::InputError(path + ": " + std::string(mapping.error().message));
    mapping_ = *std::move(mapping);
#if !defined(_WIN32)
    if (!bytes().empty())
      static_cast<void>(::posix_madvise(const_cast<std::byte*>(bytes().data()), bytes().size(), POSIX_MADV_NORMAL));
#endif
  }

  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }

 private:
  using Mapping = reprise::detail::Mapping<reprise::detail::MapCalls>;
  Mapping mapping_;
};

}  // namespace reprise::indexing
