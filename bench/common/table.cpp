// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include "text.hpp"
#include "utf8.hpp"

namespace reprise::tools {

void Table::line(const std::vector<Cell>& cells, std::string_view rest) const {
  std::size_t at = 0;
  for (const Cell& cell : cells) {
    const Column& first = columns_[at];
    std::size_t width = 0;
    for (const std::size_t end = at + cell.span; at < end; ++at) width += columns_[at].width;
    const std::string text = printable(cell.text);
    *out_ << (first.align == Align::left ? left(text, width) : right(text, width));
    if (first.own_line && utf8_columns(text) > width) *out_ << "\n" << std::string(width, ' ');
  }
  *out_ << rest << "\n";
}

}  // namespace reprise::tools
