// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "page_figures.hpp"
#include "pass_tally.hpp"
#include "reliability.hpp"

/// \file The parts that the pages of reprise-replay and of reprise-llama have in common, as HTML.
namespace reprise::replay {

/// Most categories, traces and strategies in a table.
inline constexpr std::size_t most_groups = 24;

/// Returns "1 session" or "2,000 sessions".
std::string counted(std::uint64_t count, const std::string& what);

/// Returns a relative error with its sign: "+1.5%".
std::string signed_percent(double error);

/// Elements of a drawing.
std::string svg_line(const std::string& style, double x1, double y1, double x2, double y2);
std::string svg_label(double x, double y, const std::string& anchor, const std::string& text);

/// Returns the speedups of the sessions that have tokens.
template <SessionResult S>
std::vector<double> speedups_of(std::span<const S> sessions) {
  std::vector<double> speedups;
  for (const S& session : sessions)
    if (session.tokens != 0) speedups.push_back(session.speedup());
  return speedups;
}

/// Returns a histogram of the speedups of sessions, drawn without a script; empty for fewer than three sessions.
std::string histogram(std::vector<double> speedups);

/// The sessions of a category, for a table.
struct CategoryLine {
  std::string name;
  std::size_t sessions = 0;
  std::uint64_t tokens = 0;
  double speedup = 1;
  std::optional<Interval> interval;
};
std::string category_table(const std::vector<CategoryLine>& lines, std::size_t folded);

/// Returns a table of speedups by category. `names` has the category of each session.
template <SessionResult S>
std::string by_category(std::span<const std::string> names, std::span<const S> sessions) {
  std::vector<std::uint64_t> tokens;
  for (const S& session : sessions) tokens.push_back(session.tokens);
  const Groups groups = group_by(names, tokens, most_groups);
  std::vector<CategoryLine> lines;
  for (const Group& group : groups.groups) {
    std::vector<S> some;
    for (const std::size_t i : group.sessions) some.push_back(sessions[i]);
    const S all = sum(some);
    lines.push_back({group.name, some.size(), all.tokens, all.speedup(), bootstrap(some)});
  }
  return category_table(lines, groups.folded);
}

/// Returns a table of drafted tokens by source.
std::string by_source(const PassSums& sums);

/// Returns what became of the proposed tokens: a paragraph and a bar.
std::string drafted_tokens(const PassSums& sums);

/// Returns a table of passes by the reason why their draft was not sent whole.
std::string cut_reasons(const PassSums& sums);

/// A speedup beside that of a run, and what it means.
struct Bound {
  std::string name;
  std::string meaning;
  double speedup = 1;
};
std::string bound_bars(const std::string& caption, const std::vector<Bound>& bounds);

/// Returns the reliability diagram with its numbers.
std::string reliability_part(const Reliability& reliability);

}  // namespace reprise::replay
