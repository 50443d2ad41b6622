// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::tools {

enum class Align : std::uint8_t { left, right };

/// A column of a Table.
struct Column {
  std::size_t width = 0;
  Align align = Align::right;
  bool own_line = false;  ///< text too long for the column ends its line; otherwise later columns shift
};

/// A text in one column, or across several.
struct Cell {
  Cell(const char* shown) : text(shown) {}
  Cell(std::string shown, std::size_t columns = 1) : text(std::move(shown)), span(columns) {}

  std::string text;
  std::size_t span = 1;
};

/// Text in columns, for people. Cells are printed as printable() returns them.
class Table {
 public:
  Table(std::ostream& out, std::vector<Column> columns) : out_(&out), columns_(std::move(columns)) {}

  /// Writes one line. Cells fill the columns from the left, and columns without a cell are left out. `rest` follows
  /// unchanged, for example a bar.
  void line(const std::vector<Cell>& cells, std::string_view rest = {}) const;

 private:
  std::ostream* out_;
  std::vector<Column> columns_;
};

}  // namespace reprise::tools
