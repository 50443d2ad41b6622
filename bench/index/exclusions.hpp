// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace reprise::indexing {

/// The names of the documents that --exclude leaves out.
class Exclusions {
 public:
  Exclusions() = default;
  /// Reads a file with one name a line. Blank lines are ignored. Throws InputError if it cannot be read.
  explicit Exclusions(const std::string& path);

  /// True if documents of this name are left out. Notes that the line is of use.
  bool contains(const std::string& name);
  /// The names that no document has had so far, sorted.
  [[nodiscard]] std::vector<std::string> unused() const;

 private:
  std::map<std::string, bool> names_;  // true: a document has this name
};

}  // namespace reprise::indexing
