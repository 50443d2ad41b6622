// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
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
using tools::signed_percent;

std::string svg_line(const std::string& style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + style + "\" x1=\"" + decimal(x1, 1) + "\" y1=\"" + decimal(y1, 1) + "\" x2=\"" +
         decimal(x2, 1) + "\" y2=\"" + decimal(y2, 1) + "\"/>";
}
std::string svg_label(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + decimal(x, 1) + "\" y=\"" + decimal(y, 1) + "\" text-anchor=\"" + anchor + "\">" + text +
         "</text>";
}

/// Claimed against observed probability. The area of a point is proportional to its tests.
std::string reliability_drawing(const Reliability& reliability) {
  constexpr double left = 46;
  constexpr double bottom = 310;
  constexpr double side = 290;
  std::string svg =
      "<figure><svg class=\"chart square\" id=\"reliability\" viewBox=\"-16 -4 380 366\" role=\"img\" "
      "aria-label=\"Reliability diagram; the table after it has the numbers\">";
  for (const double at : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    const double x = left + side * at;
    const double y = bottom - side * at;
    svg += svg_line("grid", left, y, left + side, y) + svg_line("grid", x, bottom, x, bottom - side);
    svg += svg_label(x, bottom + 20, "middle", decimal(at, 2)) + svg_label(left - 6, y + 4, "end", decimal(at, 2));
  }
  svg += svg_line("mark", left, bottom, left + side, bottom - side);
  svg += svg_label(left + side / 2, bottom + 38, "middle", "claimed probability");
  svg += "<text transform=\"rotate(-90)\" x=\"-165\" y=\"0\" text-anchor=\"middle\">observed</text>";
  std::uint64_t most = 1;
  for (const Reliability::Bin& bin : reliability.bins()) most = std::max(most, bin.tests);
  for (const Reliability::Bin& bin : reliability.bins()) {
    if (bin.tests == 0) continue;
    const double radius = 3 + 9 * std::sqrt(static_cast<double>(bin.tests) / static_cast<double>(most));
    svg += "<circle class=\"point\" cx=\"" + decimal(left + side * bin.mean_claim(), 1) + "\" cy=\"" +
           decimal(bottom - side * bin.observed(), 1) + "\" r=\"" + decimal(radius, 1) + "\"><title>claimed " +
           decimal(bin.mean_claim(), 3) + ", observed " + decimal(bin.observed(), 3) + ", " + grouped(bin.tests) +
           " tests</title></circle>";
  }
  return svg +
         "</svg><figcaption>On the dashed diagonal, claims are exactly right. Above it, they are too low. Larger "
         "points have more tests.</figcaption></figure>\n";
}

std::string reliability_part(const Reliability& reliability) {
  std::string text = "<h3>Are its probabilities right?</h3>\n";
  if (reliability.total().tests == 0) return text + "<p>No drafted token was tested.</p>\n";
  text += "<p>Calibration error: <strong>" + decimal(reliability.expected_calibration_error(), 3) +
          "</strong>, the mean distance between claimed and observed probability over " +
          grouped(reliability.total().tests) + " tests.</p>\n" + reliability_drawing(reliability);
  HtmlTable table{"Claimed and observed probability of drafted tokens", {"Claimed", "Observed", "Tests"}, {}};
  for (const Reliability::Bin& bin : reliability.bins())
    if (bin.tests != 0)
      table.rows.push_back({decimal(bin.mean_claim(), 3), decimal(bin.observed(), 3), grouped(bin.tests)});
  return text + "<details><summary>The numbers</summary>" + table.text() + "</details>\n";
}

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
