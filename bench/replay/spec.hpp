// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::replay {

/// A strategy as given on the command line: name[:key=value,...].
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;  // in the order given

  /// The spec in the same spelling.
  [[nodiscard]] std::string text() const;
};

/// Reads a spec. A value `a..b` stands for every whole number from a to b: one spec each, with the last range varying
/// fastest. Checks the grammar only; strategies.hpp knows the names and keys. Throws InputError.
std::vector<Spec> parse_spec(std::string_view text);

}  // namespace reprise::replay
