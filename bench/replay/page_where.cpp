// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "page_html.hpp"
#include "page_sections.hpp"
#include "reprise/core/draft.hpp"

namespace reprise::replay {
namespace {

using tools::decimal;
using tools::grouped;

std::string by_category(const PageData& page) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> tokens;
  for (std::size_t i = 0; i < page.sessions.size(); ++i) {
    names.push_back(page.session(i).category);
    tokens.push_back(page.main_costs()[i].tokens);
  }
  const Groups groups = group_by(names, tokens, most_groups);
  struct Line {
    std::size_t sessions;
    SessionCost all;
    std::optional<Interval> interval;
  };
  std::vector<Line> lines;
  double most = 1.1;  // the mark of plain decoding is inside the bar
  for (const Group& group : groups.groups) {
    std::vector<SessionCost> some;
    for (const std::size_t i : group.sessions) some.push_back(page.main_costs()[i]);
    lines.push_back({some.size(), sum(some), bootstrap(some)});
    const Line& line = lines.back();
    most = std::max({most, line.all.speedup(), line.interval ? line.interval->high : 0});
  }
  HtmlTable table{"Speedup by category", {"Category", "Speedup", "", "95% interval", "Sessions", "Tokens"}, {}};
  for (std::size_t i = 0; i < lines.size(); ++i)
    table.rows.push_back({html_name(groups.groups[i].name), decimal(lines[i].all.speedup(), 3),
                          bar_cell(lines[i].all.speedup(), lines[i].interval, most), interval_text(lines[i].interval),
                          grouped(lines[i].sessions), grouped(lines[i].all.tokens)});
  std::string text = table.text() +
                     "<p class=\"note\">Bars begin at 0; the line across a bar is the interval, and the dashed mark is "
                     "plain decoding.</p>\n";
  if (groups.folded != 0)
    text += "<p class=\"note\">The " + grouped(most_groups) +
            " categories with the most tokens; the last row has the " + grouped(groups.folded) + " others.</p>\n";
  return text;
}

/// The sessions with more than `position` output tokens, as in "9 of 156: code 7, json 2". Three sessions or fewer are
/// named, up to a half of all are counted by category, and more are counted together.
std::string reaching(const PageData& page, std::uint64_t position) {
  constexpr std::size_t most_named = 3;
  constexpr std::size_t most_categories = 4;
  std::vector<std::size_t> reach;
  std::size_t all = 0;
  for (std::size_t i = 0; i < page.sessions.size(); ++i) {
    const std::uint64_t tokens = page.main_costs()[i].tokens;
    all += tokens != 0 ? 1 : 0;
    if (tokens > position) reach.push_back(i);
  }
  if (reach.size() == all) return "all " + grouped(all);
  std::string text = grouped(reach.size()) + " of " + grouped(all);
  if (reach.size() <= most_named) {
    for (const std::size_t i : reach) text += (i == reach.front() ? ": " : ", ") + html_name(page.session(i).id);
    return text;
  }
  if (2 * reach.size() > all) return text;
  std::vector<std::string> names;
  for (const std::size_t i : reach) names.push_back(page.session(i).category);
  // Categories with the most sessions are kept.
  const Groups groups = group_by(names, std::vector<std::uint64_t>(names.size(), 1), most_categories);
  for (std::size_t i = 0; i < groups.groups.size(); ++i) {
    const bool rest = groups.folded != 0 && i + 1 == groups.groups.size();
    text += (i == 0 ? ": " : ", ") + (rest ? html(groups.groups[i].name) : html_name(groups.groups[i].name)) + " " +
            grouped(groups.groups[i].sessions.size());
  }
  return text;
}

std::string by_position(const PageData& page) {
  HtmlTable table{"Speedup by position in the output of a session",
                  {"Output tokens", "Speedup", "", "Tokens per pass", "Tokens", "Sessions that reach it"},
                  {},
                  5};
  double most = 1.1;  // the mark of plain decoding is inside the bar
  const auto cost_of = [](const PassSums::Position& at) { return SessionCost{at.tokens, at.cost}; };
  for (const PassSums::Position& at : page.passes.by_position) most = std::max(most, cost_of(at).speedup());
  for (std::size_t i = 0; i < PassSums::positions; ++i) {
    const PassSums::Position& at = page.passes.by_position[i];
    if (at.passes == 0) continue;
    const std::string from = grouped(PassSums::first_of(i));
    const std::string range = i + 1 == PassSums::positions
                                  ? "from&nbsp;" + from
                                  : from + "&nbsp;to&nbsp;" + grouped(PassSums::first_of(i + 1) - 1);
    table.rows.push_back({range, decimal(cost_of(at).speedup(), 3), bar_cell(cost_of(at).speedup(), {}, most),
                          decimal(static_cast<double>(at.tokens) / static_cast<double>(at.passes), 3),
                          grouped(at.tokens), reaching(page, PassSums::first_of(i))});
  }
  return table.text() +
         "<p class=\"note\">A pass counts where it begins. Short sessions are missing from the lower rows: where the "
         "sessions differ, so may the kind of text.</p>\n";
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

}  // namespace

std::string where_section(const PageData& page) {
  return "<section aria-labelledby=\"where\"><h2 id=\"where\">Where?</h2>\n<h3>By category</h3>\n" + by_category(page) +
         "<h3>By position in the session</h3>\n" + by_position(page) + "<h3>By source</h3>\n" + by_source(page.passes) +
         "</section>\n";
}

}  // namespace reprise::replay
