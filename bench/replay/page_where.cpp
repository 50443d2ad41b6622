// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

std::vector<std::string> categories(const PageData& page) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < page.sessions.size(); ++i) names.push_back(page.session(i).category);
  return names;
}

std::string by_position(const PageData& page) {
  HtmlTable table{"Speedup by position in the output of a session",
                  {"Output tokens", "Speedup", "", "Tokens per pass", "Tokens"},
                  {}};
  double most = 1.1;  // the mark of plain decoding is inside the bar
  const auto cost_of = [](const PassSums::Position& at) { return SessionCost{at.tokens, at.cost}; };
  for (const PassSums::Position& at : page.passes.by_position) most = std::max(most, cost_of(at).speedup());
  for (std::size_t i = 0; i < PassSums::positions; ++i) {
    const PassSums::Position& at = page.passes.by_position[i];
    if (at.passes == 0) continue;
    const std::string from = grouped(PassSums::first_of(i));
    const std::string range =
        i + 1 == PassSums::positions ? "from " + from : from + " to " + grouped(PassSums::first_of(i + 1) - 1);
    table.rows.push_back({range, decimal(cost_of(at).speedup(), 3), bar_cell(cost_of(at).speedup(), {}, most),
                          decimal(static_cast<double>(at.tokens) / static_cast<double>(at.passes), 3),
                          grouped(at.tokens)});
  }
  return table.text() + "<p class=\"note\">A pass counts where it begins.</p>\n";
}

}  // namespace

std::string where_section(const PageData& page) {
  return "<section aria-labelledby=\"where\"><h2 id=\"where\">Where?</h2>\n<h3>By category</h3>\n" +
         by_category(std::span<const std::string>(categories(page)), page.main_costs()) +
         "<h3>By position in the session</h3>\n" + by_position(page) + "<h3>By source</h3>\n" + by_source(page.passes) +
         "</section>\n";
}

}  // namespace reprise::replay
