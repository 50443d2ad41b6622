// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::indexing {

/// The documents that --exclude leaves out.
class Exclusions {
 public:
  Exclusions() = default;
  /// Reads a file with one document a line: its name, or its id as 0x and 16 digits. Blank lines are ignored. Throws
  /// InputError if the file cannot be read.
  explicit Exclusions(const std::string& path);

  /// True if documents of this name are left out. Notes that the line is of use.
  bool contains(std::string_view name);
  /// The lines that no document has matched so far.
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  struct Line {
    std::string text;
    bool used = false;
  };
  std::map<std::uint64_t, Line> lines_;  // by the id of the document
};

/// The id of a document: the checksum of its name.
std::uint64_t document_id(std::string_view name);

}  // namespace reprise::indexing
