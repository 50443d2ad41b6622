// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reprise/core/datastore.hpp"
#include "reprise_corpus/mapped_corpus.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The corpora of the command line, mapped for reading.
class Corpora {
 public:
  /// Drafters read at most this many, in addition to a history.
  static constexpr std::size_t most = 3;

  Corpora() = default;
  /// Maps the files. Throws InputError if one cannot be used, if there are too many, if their vocabularies or
  /// fingerprints differ, or if they do not have the fingerprint given.
  Corpora(const std::vector<std::string>& paths, std::optional<std::uint64_t> fingerprint);

  /// Throws InputError for a token that the corpora cannot contain: they belong to another tokenizer.
  void check(std::span<const Trace> traces) const;

  /// References to the stores, in the order of the command line. They are valid while this object exists.
  [[nodiscard]] std::vector<DatastoreRef> stores() const;

 private:
  std::vector<std::string> paths_;
  std::vector<MappedCorpus> corpora_;
};

}  // namespace reprise::replay
