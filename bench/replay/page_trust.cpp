// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "loss_window.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

/// The largest error of the learned curve over the passes.
std::string learned_part(const PageData& page) {
  std::string text = "<h3>Does it know what a pass costs?</h3>\n";
  if (page.learned.empty()) {
    const bool told = page.settings.cost_known == CostKnown::told;
    return text + "<p>" +
           (page.lines.front().control.kind != ControlKind::cost ? "This control does not use costs."
            : told ? "The control was told the cost curve, so it had nothing to learn. Replay with "
                     "<code>--cost-known learned</code> to see how soon an engine's times teach it."
                   : "The control received no pass times.") +
           "</p>\n";
  }
  const bool carried = page.settings.cost_known == CostKnown::carried;
  text += carried ? "<p>Over all sessions of the first trace, one after the other.</p>\n"
                  : "<p>In the longest session of the first trace; each session starts afresh.</p>\n";
  HtmlTable errors{
      "Largest error of the learned costs over the passes; only row counts that at least 1% of passes have",
      {"Passes", "Rows", "Learned", "True", "Error"},
      {}};
  for (const CurvePoint& point : page.learned) {
    const std::size_t rows = point.worst_rows(page.rows);
    const CurvePoint::Row& row = point.rows[rows - 1];
    errors.rows.push_back({grouped(point.passes), grouped(rows), decimal(row.learned, 3), decimal(row.actual, 3),
                           signed_percent(row.error())});
  }
  const CurvePoint& end = page.learned.back();
  HtmlTable costs{"Learned and true cost by rows, after " + grouped(end.passes) + " passes",
                  {"Rows", "Learned", "True", "Error"},
                  {}};
  for (std::size_t i = 0; i < end.rows.size(); ++i)
    costs.rows.push_back({grouped(i + 1) + (end.rows[i].uncertain ? " (uncertain)" : ""),
                          decimal(end.rows[i].learned, 3), decimal(end.rows[i].actual, 3),
                          signed_percent(end.rows[i].error())});
  return text + errors.text() + "<details><summary>The whole curve at the end</summary>" + costs.text() +
         "</details>\n";
}

std::string window_part(const PageData& page) {
  std::string text = "<h3>How bad did it get?</h3>\n";
  const auto at = std::max_element(page.worst_losses.begin(), page.worst_losses.end());
  if (at == page.worst_losses.end() || *at == 0)
    return text + "<p>No run of passes of any session cost more than plain decoding.</p>\n";
  const auto session = static_cast<std::size_t>(at - page.worst_losses.begin());
  return text + "<p>Worst window: <strong id=\"worst-window\">" + decimal(*at, 1) +
         "</strong> plain passes lost, in session " + html_name(page.session(session).id) +
         ". This is the largest loss of any run of at most " + grouped(LossWindow::passes) +
         " consecutive passes: their cost beyond the cost of plain decoding.</p>\n";
}

}  // namespace

std::string trust_section(const PageData& page) {
  return "<section aria-labelledby=\"trust\"><h2 id=\"trust\">Can I trust it?</h2>\n" +
         reliability_part(page.counts.reliability) + learned_part(page) + window_part(page) + "</section>\n";
}

}  // namespace reprise::replay
