// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "common/table.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"

namespace reprise::server {
namespace {

using tools::decimal;
using tools::right;

constexpr std::size_t column = 9;
constexpr std::size_t chart_height = 16;

double per(double sum, std::uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }

/// The rows of one number of sequences.
using Group = std::span<const Row>;
std::vector<Group> groups_of(std::span<const Row> rows) {
  std::vector<Group> groups;
  for (std::size_t i = 0, from = 0; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && rows[i + 1].sequences == rows[i].sequences) continue;
    groups.push_back(rows.subspan(from, i + 1 - from));
    from = i + 1;
  }
  return groups;
}

/// The symbol of method number `i` of `methods` in the chart.
std::string mark(std::size_t i, std::size_t methods, bool unicode) {
  if (i + 1 == methods) return unicode ? "●" : "P";
  if (i == 0) return unicode ? "·" : ".";
  constexpr std::string_view marks[] = {"△", "□", "◇", "▽"};
  return unicode ? std::string(marks[(i - 1) % std::size(marks)])
                 : std::string(1, static_cast<char>('a' + (i - 1) % 26));
}

/// Draws speedups over numbers of sequences. Later methods are drawn over earlier ones.
void draw(std::ostream& out, const std::vector<Group>& groups, bool unicode) {
  double most = 1;
  for (const Group& group : groups)
    for (const Row& row : group) most = std::max(most, row.speedup());
  const std::size_t methods = groups.front().size();
  const std::size_t width = std::max<std::size_t>(column, methods + 3);
  for (std::size_t line = chart_height + 1; line-- > 0;) {
    const double step = most / chart_height;
    out << right(line % 4 == 0 ? decimal(static_cast<double>(line) * step, 2) : "", 6)
        << (unicode ? (line % 4 == 0 ? " ┤" : " │") : " |");
    for (const Group& group : groups) {
      std::string cell = std::string((width - methods) / 2, ' ');
      for (std::size_t i = 0; i < methods; ++i) {
        const bool here = std::llround(group[i].speedup() / step) == static_cast<long long>(line);
        cell += here ? mark(i, methods, unicode) : " ";
      }
      out << cell << std::string(width - methods - (width - methods) / 2, ' ');
    }
    out << "\n";
  }
  out << std::string(8, ' ');
  for (const Group& group : groups) {
    const std::string n = std::to_string(group.front().sequences);
    const std::size_t before = (width - n.size()) / 2;
    out << std::string(before, ' ') << n << std::string(width - n.size() - before, ' ');
  }
  out << "\n\n speedup by number of sequences:";
  for (std::size_t i = 0; i < methods; ++i)
    out << "  " << mark(i, methods, unicode) << " " << groups.front()[i].method.text();
  out << "\n";
}

/// The cells of the table line for one number of sequences.
std::vector<tools::Cell> cells_of(const Group& group) {
  const Row& planner = group.back();
  const ServerCounts& counts = planner.counts;
  double other = 0;
  std::vector<tools::Cell> cells = {std::to_string(planner.sequences)};
  for (const Row& row : group) {
    cells.emplace_back(decimal(row.counts.throughput(), 3));
    if (&row != &planner) other = std::max(other, row.counts.throughput());
  }
  cells.emplace_back(decimal(planner.speedup(), 3));
  cells.emplace_back(decimal(other > 0 ? counts.throughput() / other : 1, 3));
  cells.emplace_back(decimal(per(static_cast<double>(counts.drafted), counts.passes * planner.sequences), 2));
  cells.emplace_back(decimal(per(static_cast<double>(counts.accepted), counts.drafted), 3));
  cells.emplace_back(decimal(per(static_cast<double>(counts.planning_ns) / 1000, counts.passes), 1));
  return cells;
}

}  // namespace

void write_table(std::ostream& out, const Report& report, bool unicode) {
  const std::vector<Group> groups = groups_of(report.rows);
  if (groups.empty()) return;
  out << "throughput: tokens in the time of a pass of one row; " << tools::printable(report.curve) << "\n\n";
  const std::size_t methods = groups.front().size();
  std::vector<tools::Column> columns(methods + 6, {column});
  columns[methods + 2].width = column + 2;
  const tools::Table table(out, std::move(columns));
  std::vector<tools::Cell> heading = {"sequences"};
  for (const Row& row : groups.front()) heading.emplace_back(row.method.text());
  for (const char* text : {"gain", "over best", "drafted", "accept", "planning"}) heading.emplace_back(text);
  table.line(heading);
  heading.assign(methods + 1, "");
  heading.insert(heading.end(), {"on none", "other", {"/sequence    rate", 2}, "us/pass"});
  table.line(heading);
  for (const Group& group : groups) table.line(cells_of(group));
  out << "\n";
  draw(out, groups, unicode);
}

}  // namespace reprise::server
