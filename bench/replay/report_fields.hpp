// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// A named value of a result, for programs.
struct Field {
  /// The format of a value.
  enum class Kind : std::uint8_t {
    plain,  ///< written unchanged
    text,   ///< quoted where the format has quotes
    json,   ///< JSON text; left out of CSV
  };
  std::string_view name;
  std::string value;
  Kind kind = Kind::plain;
};

/// Writes {"version", "results": [...]}. Each result has the given fields.
void write_json(std::ostream& out, std::span<const std::vector<Field>> results);

/// Writes the same results as CSV with a header line (RFC 4180).
void write_csv(std::ostream& out, std::span<const std::vector<Field>> results);

}  // namespace reprise::replay
