// SPDX-License-Identifier: Apache-2.0
#include "page_parts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

/// What a cut means, for readers of the page.
constexpr std::string_view meaning(Cut cut) {
  constexpr std::string_view meanings[cut_count] = {
      "every proposed token was sent",
      "nothing to propose: no earlier text matched",
      "no candidate, or no further one, was likely enough to be worth its cost",
      "drafting was skipped for a while after losses",
      "the limit of drafted tokens in a pass",
      "the draft was malformed",
      "deeper than the engine allows",
      "more rows than the engine allows",
      "the engine allows only certain numbers of rows",
      "more drafted rows than the engine can roll back",
      "the context of the engine is full",
      "the limit of output tokens",
      "no memory for a draft",
      "a grammar or another rule refused the tokens",
      "the strategy failed"};
  return meanings[static_cast<std::size_t>(cut)];
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

}  // namespace

std::string counted(std::uint64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string signed_percent(double error) {
  const std::string text = decimal(100 * error, 1) + "%";
  return error < 0 ? text : "+" + text;
}

std::string svg_line(const std::string& style, double x1, double y1, double x2, double y2) {
  return "<line class=\"" + style + "\" x1=\"" + decimal(x1, 1) + "\" y1=\"" + decimal(y1, 1) + "\" x2=\"" +
         decimal(x2, 1) + "\" y2=\"" + decimal(y2, 1) + "\"/>";
}
std::string svg_label(double x, double y, const std::string& anchor, const std::string& text) {
  return "<text x=\"" + decimal(x, 1) + "\" y=\"" + decimal(y, 1) + "\" text-anchor=\"" + anchor + "\">" + text +
         "</text>";
}

std::string histogram(std::vector<double> speedups) {
  constexpr std::size_t bins = 24;
  if (speedups.size() < 3) return {};
  std::sort(speedups.begin(), speedups.end());
  const double low = std::min(speedups.front(), 1.0);
  const double high = std::max(speedups.back(), low + 0.1);
  std::array<std::size_t, bins> counts{};
  for (const double speedup : speedups) {
    const auto bin = static_cast<std::size_t>((speedup - low) / (high - low) * bins);
    ++counts[std::min(bin, bins - 1)];
  }
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  const auto x = [&](double speedup) { return 20 + 560 * (speedup - low) / (high - low); };
  std::string svg =
      "<figure><svg class=\"chart\" viewBox=\"0 0 600 130\" role=\"img\" aria-label=\"Histogram of the speedups of " +
      counted(speedups.size(), "session") + ": from " + decimal(speedups.front(), 2) + ", median " +
      decimal(speedups[speedups.size() / 2], 2) + ", to " + decimal(speedups.back(), 2) + "\">";
  for (std::size_t i = 0; i < bins; ++i) {
    if (counts[i] == 0) continue;
    const double height = std::max(2.0, 84 * static_cast<double>(counts[i]) / most);
    svg += "<rect class=\"fill\" x=\"" + decimal(20 + 560.0 * static_cast<double>(i) / bins + 1, 1) + "\" y=\"" +
           decimal(100 - height, 1) + "\" width=\"" + decimal(560.0 / bins - 2, 1) + "\" height=\"" +
           decimal(height, 1) + "\"><title>" + counted(counts[i], "session") + "</title></rect>";
  }
  svg += "<line class=\"axis\" x1=\"20\" y1=\"100\" x2=\"580\" y2=\"100\"/><line class=\"mark\" x1=\"" +
         decimal(x(1), 1) + "\" y1=\"10\" x2=\"" + decimal(x(1), 1) + "\" y2=\"100\"/>";
  const auto label = [&](double speedup, const std::string& anchor) {
    svg += "<text x=\"" + decimal(x(speedup), 1) + "\" y=\"120\" text-anchor=\"" + anchor + "\">" +
           decimal(speedup, 2) + "×</text>";
  };
  label(low, "start");
  label((low + high) / 2, "middle");
  label(high, "end");
  return svg +
         "</svg><figcaption>Sessions by their speedup. The dashed line is plain decoding.</figcaption></figure>\n";
}

std::string category_table(const std::vector<CategoryLine>& lines, std::size_t folded) {
  double most = 1.1;  // the mark of plain decoding is inside the bar
  for (const CategoryLine& line : lines) most = std::max({most, line.speedup, line.interval ? line.interval->high : 0});
  HtmlTable table{"Speedup by category", {"Category", "Speedup", "", "95% interval", "Sessions", "Tokens"}, {}};
  for (const CategoryLine& line : lines)
    table.rows.push_back({html_name(line.name), decimal(line.speedup, 3), bar_cell(line.speedup, line.interval, most),
                          interval_text(line.interval), grouped(line.sessions), grouped(line.tokens)});
  std::string text = table.text() +
                     "<p class=\"note\">Bars begin at 0; the line across a bar is the interval, and the dashed mark is "
                     "plain decoding.</p>\n";
  if (folded != 0)
    text += "<p class=\"note\">The " + grouped(most_groups) +
            " categories with the most tokens; the last row has the " + grouped(folded) + " others.</p>\n";
  return text;
}

std::string by_source(const PassSums& sums) {
  HtmlTable table{
      "Drafted tokens by source", {"Source", "Sent", "Accepted", "Acceptance rate", "Share of all output tokens"}, {}};
  for (std::size_t i = 0; i < draft_source_count; ++i) {
    const PassSums::Drafted& source = sums.by_source[i];
    if (source.proposed == 0) continue;
    table.rows.push_back({html(to_string(static_cast<DraftSource>(i))), grouped(source.sent), grouped(source.accepted),
                          share(source.accepted, source.sent), share(source.accepted, sums.tokens)});
  }
  const std::uint64_t own = sums.tokens - std::min(sums.drafted.accepted, sums.tokens);
  table.rows.push_back({"the model's own", "–", "–", "–", share(own, sums.tokens)});
  return table.text();
}

std::string drafted_tokens(const PassSums& sums) {
  const PassSums::Drafted& drafted = sums.drafted;
  std::uint64_t passes = 0;
  for (const std::uint64_t count : sums.passes) passes += count;
  return "<p>All " + grouped(passes) + " passes proposed " + grouped(drafted.proposed) + " tokens. " +
         grouped(sums.undrafted) + " passes (" + share(sums.undrafted, passes) + ") carried no draft. In " +
         grouped(sums.all_accepted) + " passes (" + share(sums.all_accepted, passes) +
         ") the whole draft was accepted, so a longer one might have gained more.</p>\n" +
         stacked_bar("Proposed tokens by what became of them",
                     {{"accepted", "accepted", drafted.accepted},
                      {"sent and rejected", "rejected", drafted.sent - std::min(drafted.accepted, drafted.sent)},
                      {"proposed, not sent", "withheld", drafted.proposed - std::min(drafted.sent, drafted.proposed)}});
}

std::string cut_reasons(const PassSums& sums) {
  std::uint64_t passes = 0;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < cut_count; ++i) {
    passes += sums.passes[i];
    if (sums.passes[i] != 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return sums.passes[a] > sums.passes[b]; });
  HtmlTable table{"Passes by the reason why their draft was not sent whole",
                  {"Reason", "Meaning", "Passes", "Share", "Tokens not sent"},
                  {},
                  1};
  for (const std::size_t i : order)
    table.rows.push_back({"<code>" + html(to_string(static_cast<Cut>(i))) + "</code>",
                          html(meaning(static_cast<Cut>(i))), grouped(sums.passes[i]), share(sums.passes[i], passes),
                          grouped(sums.withheld[i])});
  return table.text();
}

std::string bound_bars(const std::string& caption, const std::vector<Bound>& bounds) {
  double most = 1.1;  // the mark of plain decoding is inside the bar
  for (const Bound& bound : bounds) most = std::max(most, bound.speedup);
  HtmlTable table{caption, {"", "Speedup", "", "Meaning"}, {}, 3};
  for (const Bound& bound : bounds)
    table.rows.push_back({bound.name, decimal(bound.speedup, 3), bar_cell(bound.speedup, {}, most), bound.meaning});
  return table.text();
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

}  // namespace reprise::replay
