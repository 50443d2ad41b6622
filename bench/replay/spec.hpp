// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::replay {

/// A strategy as it is asked for: name[:key=value,...].
struct Spec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;  // in the order given

  /// Spelt as it was given.
  [[nodiscard]] std::string text() const;
};

/// Reads a spec. A value `a..b` stands for every whole number from a to b: one spec each, the last range running
/// fastest. Only the grammar is checked here; strategies.hpp knows which names and keys there are. Throws
/// InputError.
std::vector<Spec> parse_spec(std::string_view text);

}  // namespace reprise::replay
