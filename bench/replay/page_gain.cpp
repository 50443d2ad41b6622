// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
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

/// The shape of the drafts, whether rankings were used, and what an engine needs for both.
std::string shape(const PageData& page) {
  const bool trees = page.settings.trees;
  const bool rankings = page.counts.top_k_rows != 0;
  std::string text = "<p id=\"shape\">Drafts are <strong>" + std::string(trees ? "trees" : "chains") +
                     "</strong>, <strong>" + (rankings ? "with" : "without") +
                     "</strong> rankings of the target (top-k rows";
  if (rankings)
    text += ": " + counted(page.counts.top_k_rows, "row") + " of accepted tokens";
  else if (!has_top_k(page.traces))
    text += ": the traces have none";
  else
    text += page.settings.top_k ? ": this strategy wants none" : ": <code>--top-k off</code>";
  text += "). ";
  if (!trees && !rankings)
    return text + "An engine with two functions, <code>verify</code> and <code>commit</code>, gets this.</p>\n";
  text += "This needs an engine with more than two functions: ";
  if (trees) text += "one that verifies trees (<code>Capabilities::max_leaves</code>)";
  if (rankings) text += std::string(trees ? " and" : "one that") + " shows its rankings (<code>top_k(i)</code>)";
  return text + ".</p>\n";
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
         cost_text(page.curves[page.main]) + ".</p>\n" + shape(page);
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

/// The distance of the labels of an axis of counts: 1, 2 or 5 times a power of ten, so that `most` takes at most four.
std::size_t count_step(std::size_t most) {
  for (std::size_t power = 1;; power *= 10)
    for (const std::size_t digit : {1U, 2U, 5U})
      if (digit * power * 4 >= most) return digit * power;
}

/// Returns a histogram of the speedups of the sessions with tokens, drawn without a script; empty for fewer than three.
std::string histogram(std::span<const SessionCost> sessions) {
  constexpr std::size_t bins = 24;
  std::vector<double> speedups;
  for (const SessionCost& session : sessions)
    if (session.tokens != 0) speedups.push_back(session.speedup());
  if (speedups.size() < 3) return {};
  std::sort(speedups.begin(), speedups.end());
  const double low = std::min(speedups.front(), 1.0);
  const double high = std::max(speedups.back(), low + 0.1);
  std::array<std::size_t, bins> counts{};
  for (const double speedup : speedups) {
    const auto bin = static_cast<std::size_t>((speedup - low) / (high - low) * bins);
    ++counts[std::min(bin, bins - 1)];
  }
  const std::size_t step = count_step(*std::max_element(counts.begin(), counts.end()));
  const std::size_t top = (*std::max_element(counts.begin(), counts.end()) + step - 1) / step * step;
  // The plot; its left margin holds five digits in the text size of a phone.
  constexpr double left = 72;
  constexpr double width = 508;
  constexpr double bottom = 158;
  constexpr double height = 104;
  const auto x = [&](double speedup) { return left + width * (speedup - low) / (high - low); };
  const auto y = [&](std::size_t count) {
    return bottom - height * static_cast<double>(count) / static_cast<double>(top);
  };
  std::string svg =
      "<figure><svg class=\"chart\" id=\"histogram\" viewBox=\"0 0 600 218\" role=\"img\" aria-label=\"Histogram of "
      "the "
      "speedups of " +
      counted(speedups.size(), "session") + ": from " + decimal(speedups.front(), 2) + ", median " +
      decimal(speedups[speedups.size() / 2], 2) + ", to " + decimal(speedups.back(), 2) + "\">";
  for (std::size_t count = step; count <= top; count += step)
    svg += "<line class=\"grid\" x1=\"" + decimal(left, 1) + "\" y1=\"" + decimal(y(count), 1) + "\" x2=\"" +
           decimal(left + width, 1) + "\" y2=\"" + decimal(y(count), 1) + "\"/>";
  for (std::size_t count = 0; count <= top; count += step)
    svg += "<text class=\"count\" x=\"" + decimal(left - 8, 1) + "\" y=\"" + decimal(y(count) + 5, 1) +
           "\" text-anchor=\"end\">" + grouped(count) + "</text>";
  for (std::size_t i = 0; i < bins; ++i) {
    if (counts[i] == 0) continue;
    const double tall = std::max(2.0, bottom - y(counts[i]));
    svg += "<rect class=\"fill\" x=\"" + decimal(left + width * static_cast<double>(i) / bins + 1, 1) + "\" y=\"" +
           decimal(bottom - tall, 1) + "\" width=\"" + decimal(width / bins - 2, 1) + "\" height=\"" +
           decimal(tall, 1) + "\"><title>" + counted(counts[i], "session") + "</title></rect>";
  }
  svg += "<line class=\"axis\" x1=\"" + decimal(left, 1) + "\" y1=\"" + decimal(bottom, 1) + "\" x2=\"" +
         decimal(left + width, 1) + "\" y2=\"" + decimal(bottom, 1) + "\"/><line class=\"mark\" x1=\"" +
         decimal(x(1), 1) + "\" y1=\"" + decimal(bottom - height - 8, 1) + "\" x2=\"" + decimal(x(1), 1) + "\" y2=\"" +
         decimal(bottom, 1) + "\"/>";
  const auto label = [&](double speedup, const std::string& anchor) {
    svg += "<text x=\"" + decimal(x(speedup), 1) + "\" y=\"" + decimal(bottom + 23, 1) + "\" text-anchor=\"" + anchor +
           "\">" + decimal(speedup, 2) + "×</text>";
  };
  label(low, "start");
  label((low + high) / 2, "middle");
  label(high, "end");
  return svg + "<text x=\"2\" y=\"24\">sessions</text><text x=\"" + decimal(left + width / 2, 1) +
         "\" y=\"210\" text-anchor=\"middle\">speedup of a session</text></svg><figcaption>Sessions by their speedup. "
         "The dashed line is plain decoding.</figcaption></figure>\n";
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
         histogram(page.main_costs()) + all_lines(page) + "</section>\n";
}

}  // namespace reprise::replay
