// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
#include "page_parts.hpp"
#include "page_sections.hpp"
#include "report.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

std::string cost_text(const CostCurve& curve) {
  if (const LinearCost* linear = curve.linear())
    return "<code>" + html(curve.spec()) + "</code>: each drafted token adds " + tools::shortest(100 * linear->slope) +
           "% to the cost of a pass";
  return "<code>" + html(curve.spec()) + "</code>";
}

std::string answer(const PageData& page) {
  const auto sessions = page.main_costs();
  const double speedup = sum(sessions).speedup();
  const auto interval = bootstrap(sessions);
  std::string text =
      "<p class=\"answer\"><strong id=\"speedup\">" + decimal(speedup, 3) +
      "<span aria-hidden=\"true\">×</span><span class=\"unseen\"> times</span></strong> " +
      (speedup < 1 ? "the speed of plain decoding: <em>drafting loses</em>" : "the speed of plain decoding") +
      "</p>\n<p class=\"interval\">";
  if (interval)
    text += "95% interval over sessions: <strong id=\"interval\">" + interval_text(interval) + "</strong> (bootstrap).";
  else
    text += "No interval: it needs at least two sessions.";
  if (interval && sessions.size() < 10)
    text += " With only " + counted(sessions.size(), "session") + ", the interval is likely too narrow.";
  return text + "</p>\n<p>Strategy <code>" + html(page.lines.front().label) + "</code>, cost " +
         cost_text(page.curves[page.main]) + ".</p>\n";
}

std::string facts(const PageData& page) {
  const auto sessions = page.main_costs();
  const Ratios r = ratios(page.counts);
  std::size_t slower = 0;
  std::size_t with_tokens = 0;
  for (const SessionCost& session : sessions) {
    with_tokens += session.tokens != 0 ? 1 : 0;
    slower += session.tokens != 0 && session.speedup() < 1 ? 1 : 0;
  }
  std::string text = "<dl class=\"facts\">";
  const auto fact = [&](const std::string& name, const std::string& value) {
    text += "<div><dt>" + name + "</dt><dd>" + value + "</dd></div>\n";
  };
  if (const auto at = worst_session(sessions))
    fact("Worst session", "<strong id=\"worst-session\">" + decimal(sessions[*at].speedup(), 3) + "×</strong> " +
                              html_name(page.session(*at).id));
  fact("Sessions slower than plain decoding", "<strong>" + grouped(slower) + "</strong> of " + grouped(with_tokens));
  fact("Tokens per pass (MAT)", "<strong>" + decimal(r.mat, 3) + "</strong>");
  fact("Drafting and control, not charged",
       "<strong>" + grouped(static_cast<std::uint64_t>(std::llround(r.ns_per_token + r.control_ns_per_token))) +
           " ns</strong> per token");
  return text + "</dl>\n";
}

/// The speedups of all strategies under all curves: for all sessions, or for those of one trace.
HtmlTable lines_table(const PageData& page, const std::string& caption, std::size_t first, std::size_t sessions) {
  HtmlTable table{caption, {"Strategy"}, {}};
  for (std::size_t i = 0; i < page.curves.size(); ++i)
    table.heading.push_back((i == page.main ? "<strong>" : "") + html(page.curves[i].spec()) +
                            (i == page.main ? "</strong>" : ""));
  table.heading.emplace_back("95% interval, " + html(page.curves[page.main].spec()));
  for (const PageLine& line : page.lines) {
    if (table.rows.size() == most_groups) break;
    std::vector<std::string> cells = {"<code>" + html(line.label) + "</code>"};
    for (const auto& costs : line.costs)
      cells.push_back(decimal(sum(std::span(costs).subspan(first, sessions)).speedup(), 3));
    cells.push_back(interval_text(bootstrap(std::span(line.costs[page.main]).subspan(first, sessions))));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

std::string all_lines(const PageData& page) {
  std::string text = "<h3>Speedup of each strategy under each cost</h3>\n<div id=\"curves\"></div>\n";
  text += lines_table(page, "Speedup of each strategy under each cost, all sessions", 0, page.sessions.size()).text();
  if (page.lines.size() > most_groups)
    text += "<p class=\"note\">The first " + grouped(most_groups) + " of " + grouped(page.lines.size()) +
            " strategies.</p>\n";
  if (page.traces.size() < 2) return text;
  text += "<details><summary>The same for each trace</summary>\n";
  std::size_t first = 0;
  std::size_t shown = 0;
  for (const Trace& trace : page.traces) {
    if (shown++ < most_groups) text += lines_table(page, trace.path, first, trace.sessions.size()).text();
    first += trace.sessions.size();
  }
  if (shown > most_groups)
    text += "<p class=\"note\">The first " + grouped(most_groups) + " of " + grouped(shown) + " traces.</p>\n";
  return text + "</details>\n";
}

}  // namespace

std::string gain_section(const PageData& page) {
  return "<section aria-labelledby=\"gain\"><h2 id=\"gain\">What would I gain?</h2>\n" + answer(page) + facts(page) +
         histogram(speedups_of(page.main_costs())) + all_lines(page) + "</section>\n";
}

}  // namespace reprise::replay
