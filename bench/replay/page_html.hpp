// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "page_figures.hpp"

namespace reprise::replay {

/// Most categories, traces and strategies in a table.
inline constexpr std::size_t most_groups = 24;

/// Returns `text` with the characters escaped that have a meaning in HTML. Control characters become visible escapes.
std::string html(std::string_view text);

/// Returns lines of text, escaped; the newlines stay.
std::string html_lines(std::string_view text);

/// Returns a name from a trace: escaped, and isolated so that it cannot reverse the text around it.
std::string html_name(std::string_view name);

/// Returns a table cell that shows `speedup` as a bar, with the interval as a whisker and a mark at plain decoding.
/// `most` is the speedup at the full width.
std::string bar_cell(double speedup, const std::optional<Interval>& interval, double most);

/// Returns "1.76 to 1.93", or a dash without an interval.
std::string interval_text(const std::optional<Interval>& interval);

/// Returns "1 session" or "2,000 sessions".
std::string counted(std::uint64_t count, const std::string& what);

/// Returns a share in percent with one digit; "0.0%" of nothing.
std::string share(std::uint64_t part, std::uint64_t whole);

/// A table with a caption. The cells of a row are HTML; the first is its heading.
struct HtmlTable {
  std::string caption;
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
  std::size_t text_column = 0;  ///< a column of sentences, whose lines may be broken; 0: none

  [[nodiscard]] std::string text() const;
};

/// A stacked bar with a legend in words. Each part has a CSS class that gives it a color and a pattern.
struct StackedPart {
  std::string name;
  std::string style;
  std::uint64_t value = 0;
};
std::string stacked_bar(std::string_view label, const std::vector<StackedPart>& parts);

}  // namespace reprise::replay
