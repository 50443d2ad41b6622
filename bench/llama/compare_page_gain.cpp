// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/text.hpp"
#include "compare_page.hpp"
#include "replay/page_figures.hpp"
#include "replay/page_html.hpp"
#include "replay/page_parts.hpp"

namespace reprise::llama {
namespace {

using replay::counted;
using replay::html;
using replay::html_name;
using replay::HtmlTable;
using replay::most_groups;
using replay::PassSums;
using tools::decimal;
using tools::grouped;

std::string answer(const ComparePage& page, std::span<const TimedSession> sessions) {
  const double speedup = replay::sum(sessions).speedup();
  const auto interval = replay::bootstrap(sessions);
  std::string text = "<p class=\"answer\"><strong id=\"speedup\">" + decimal(speedup, 3) +
                     "<span aria-hidden=\"true\">×</span><span class=\"unseen\"> times</span></strong> the speed of "
                     "plain decoding" +
                     std::string(speedup < 1 ? ": <em>drafting loses</em>" : "") + "</p>\n<p class=\"interval\">";
  if (interval)
    text += "95% interval over sessions: <strong id=\"interval\">" + replay::interval_text(interval) +
            "</strong> (bootstrap).";
  else
    text += "No interval: it needs at least two sessions.";
  if (interval && sessions.size() < 10)
    text += " With only " + counted(sessions.size(), "session") + ", the interval is likely too narrow.";
  text += "</p>\n<p>Measured in seconds with the strategy <code>" + html(page.main().spec) + "</code>";
  if (page.told != nullptr)
    return text + "; control was told the cost <code>" + html(page.report.cost) + "</code>.</p>\n";
  return text + (page.learned != nullptr ? "; control learned the cost of passes from their times.</p>\n" : ".</p>\n");
}

std::string facts(const ComparePage& page, std::span<const TimedSession> sessions) {
  const Summary all = page.main().total();
  std::vector<const Pair*> pairs;
  for (const Pair& pair : page.main().pairs)
    if (!pair.repeated) pairs.push_back(&pair);
  std::size_t slower = 0;
  for (const TimedSession& session : sessions) slower += session.tokens != 0 && session.speedup() < 1 ? 1 : 0;
  std::string text = "<dl class=\"facts\">";
  const auto fact = [&](const std::string& name, const std::string& value) {
    text += "<div><dt>" + name + "</dt><dd>" + value + "</dd></div>\n";
  };
  if (const auto at = replay::worst_session(sessions))
    fact("Worst session", "<strong id=\"worst-session\">" + decimal(sessions[*at].speedup(), 3) + "×</strong> " +
                              html_name(pairs[*at]->id));
  fact("Sessions slower than plain decoding",
       "<strong>" + grouped(slower) + "</strong> of " + grouped(sessions.size()));
  fact("Tokens per second", decimal(all.plain.tokens_per_second(), 1) + " without drafting, <strong>" +
                                decimal(all.drafted.tokens_per_second(), 1) + "</strong> with");
  fact("Tokens per pass (MAT)", "<strong>" + decimal(all.drafted.statistics.mean_accepted_tokens(), 3) + "</strong>");
  fact("Texts identical to plain decoding",
       "<strong id=\"identical\">" + grouped(all.identical) + "</strong> of " + grouped(all.sessions));
  return text + "</dl>\n";
}

std::string all_strategies(const ComparePage& page) {
  HtmlTable table{"All strategies on the same sessions",
                  {"Strategy", "Speedup", "95% interval", "Worst session", "Tokens/s", "Tokens per pass", "Identical",
                   "Near ties", "Wrong"},
                  {}};
  for (const StrategyPairs& strategy : page.report.strategies) {
    if (table.rows.size() == most_groups) break;
    const Summary all = strategy.total();
    const std::vector<TimedSession> sessions = timed_sessions(strategy);
    const auto worst = replay::worst_session(std::span(sessions));
    table.rows.push_back(
        {"<code>" + html(strategy.spec) + "</code>", decimal(speedup(all.plain, all.drafted), 3),
         replay::interval_text(replay::bootstrap(sessions)), worst ? decimal(sessions[*worst].speedup(), 3) : "–",
         decimal(all.drafted.tokens_per_second(), 1), decimal(all.drafted.statistics.mean_accepted_tokens(), 3),
         grouped(all.identical), grouped(all.near_ties), grouped(all.wrong)});
  }
  std::string text = "<h3>Strategies</h3>\n" + table.text();
  if (page.report.strategies.size() > most_groups)
    text += "<p class=\"note\">The first " + grouped(most_groups) + " of " + grouped(page.report.strategies.size()) +
            " strategies.</p>\n";
  return text;
}

/// All sessions, or the slowest ones if there are too many.
std::string all_sessions(const ComparePage& page) {
  constexpr std::size_t most = 200;
  std::vector<const Pair*> pairs;
  for (const Pair& pair : page.main().pairs) pairs.push_back(&pair);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair* a, const Pair* b) { return a->timed().speedup() < b->timed().speedup(); });
  HtmlTable table{"Sessions, the worst one first",
                  {"Session", "Category", "Speedup", "Tokens/s without", "Tokens/s with", "Tokens", "Text"},
                  {}};
  for (const Pair* pair : pairs) {
    if (table.rows.size() == most) break;
    const TimedSession timed = pair->timed();
    table.rows.push_back({html_name(pair->id), html_name(pair->category), decimal(timed.speedup(), 3),
                          decimal(timed.plain_tokens_per_second(), 1), decimal(timed.tokens_per_second(), 1),
                          grouped(timed.tokens), std::string(name(pair->verdict()))});
  }
  std::string text = "<details><summary>Every session</summary>\n" + table.text();
  if (pairs.size() > most)
    text += "<p class=\"note\">The " + grouped(most) + " slowest of " + grouped(pairs.size()) + " sessions.</p>\n";
  return text + "</details>\n";
}

std::string by_position(const ComparePage& page) {
  HtmlTable table{"Speedup of the passes by position in the output of a session",
                  {"Output tokens", "Speedup", "", "Tokens per pass", "Tokens"},
                  {}};
  const auto& plain = page.notes.plain().sums().by_position;
  const auto& drafted = page.notes.drafted().sums().by_position;
  const auto per_token = [](const PassSums::Position& at) { return at.cost / static_cast<double>(at.tokens); };
  const auto speedup = [&](std::size_t i) { return per_token(plain[i]) / per_token(drafted[i]); };
  std::vector<std::size_t> known;
  double most = 1.1;  // the mark of plain decoding is inside the bar
  for (std::size_t i = 0; i < PassSums::positions; ++i) {
    if (plain[i].cost <= 0 || drafted[i].cost <= 0 || plain[i].tokens == 0 || drafted[i].tokens == 0) continue;
    known.push_back(i);
    most = std::max(most, speedup(i));
  }
  for (const std::size_t i : known) {
    const std::string from = grouped(PassSums::first_of(i));
    const std::string range =
        i + 1 == PassSums::positions ? "from " + from : from + " to " + grouped(PassSums::first_of(i + 1) - 1);
    table.rows.push_back({range, decimal(speedup(i), 3), replay::bar_cell(speedup(i), {}, most),
                          decimal(static_cast<double>(drafted[i].tokens) / static_cast<double>(drafted[i].passes), 3),
                          grouped(drafted[i].tokens)});
  }
  return table.text() +
         "<p class=\"note\">A pass counts where it begins. Pass times only: the time between passes is not in these "
         "speedups.</p>\n";
}

}  // namespace

std::string gain_section(const ComparePage& page) {
  const std::vector<TimedSession> sessions = timed_sessions(page.main());
  return "<section aria-labelledby=\"gain\"><h2 id=\"gain\">What would I gain?</h2>\n" + answer(page, sessions) +
         facts(page, sessions) + replay::histogram(replay::speedups_of(std::span<const TimedSession>(sessions))) +
         all_strategies(page) + all_sessions(page) + "</section>\n";
}

std::string where_section(const ComparePage& page) {
  std::vector<std::string> names;
  std::vector<TimedSession> sessions;
  for (const Pair& pair : page.main().pairs) {
    names.push_back(pair.category);
    sessions.push_back(pair.timed());
  }
  return "<section aria-labelledby=\"where\"><h2 id=\"where\">Where?</h2>\n<h3>By category</h3>\n" +
         replay::by_category(std::span<const std::string>(names), std::span<const TimedSession>(sessions)) +
         "<h3>By position in the session</h3>\n" + by_position(page) + "<h3>By source</h3>\n" +
         replay::by_source(page.notes.drafted().sums()) + "</section>\n";
}

}  // namespace reprise::llama
