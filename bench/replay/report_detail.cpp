// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/table.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"
#include "report.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t narrowest_diagram = 20;
constexpr std::size_t widest_diagram = 50;

}  // namespace

std::string bar_and_mark(double share, double marked, std::size_t width, bool unicode) {
  const auto column = [&](double of) {
    return static_cast<std::size_t>(std::llround(of * static_cast<double>(width)));
  };
  const std::size_t filled = column(share);
  const std::size_t mark = std::min(column(marked), width);
  std::string text;
  for (std::size_t i = 0; i <= std::max(filled, mark); ++i) {
    if (i == mark) {
      text += unicode ? "│" : "|";
    } else if (i < filled) {
      text += unicode ? "█" : "#";
    } else if (i != filled) {
      text += " ";
    } else if (i < mark) {
      text += " ";
    }
  }
  return text;
}

void write_reasons(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style) {
  std::vector<std::pair<std::uint64_t, std::size_t>> reasons;
  for (std::size_t i = 0; i < cut_count; ++i)
    if (row.counts.cuts[i] != 0) reasons.emplace_back(row.counts.cuts[i], i);
  std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string line = name + ":";
  for (const auto& [passes, cut] : reasons) {
    const double share = 100 * static_cast<double>(passes) / static_cast<double>(row.counts.passes);
    const std::string one = " " + std::string(to_string(static_cast<Cut>(cut))) + " " + tools::decimal(share, 1) + "%" +
                            (&reasons.back().second == &cut ? "" : ",");
    if (tools::utf8_columns(line) + one.size() > style.columns) {
      out << line << "\n";
      line = "   ";
    }
    line += one;
  }
  out << line << (reasons.empty() ? " no passes" : "") << "\n";
}

void write_reliability(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style) {
  constexpr std::size_t text_width = 12 + 11 + 9 + 9 + 2;
  const std::size_t width = std::clamp(style.columns > text_width + 1 ? style.columns - text_width - 1 : 0,
                                       narrowest_diagram, widest_diagram);
  const Reliability& reliability = row.counts.reliability;
  out << "drafted tokens of " << name << ": claimed against observed probability\n";
  if (reliability.total().tests == 0) {
    out << "  none was tested\n\n";
    return;
  }
  const tools::Table table(out, {{12, tools::Align::left}, {11}, {9}, {9}});
  table.line({"  bin", "tested", "claimed", "true"}, "  " + tools::left("0", width) + "1");
  const auto line = [&](const std::string& range, const Reliability::Bin& bin, const std::string& rest) {
    table.line(
        {range, tools::grouped(bin.tests), tools::decimal(bin.mean_claim(), 3), tools::decimal(bin.observed(), 3)},
        "  " + rest);
  };
  const auto edge = [](std::size_t at) { return tools::decimal(static_cast<double>(at) / Reliability::bin_count, 2); };
  for (std::size_t i = 0; i < Reliability::bin_count; ++i) {
    const Reliability::Bin& bin = reliability.bins()[i];
    if (bin.tests == 0) continue;
    line("  " + edge(i) + "-" + edge(i + 1), bin, bar_and_mark(bin.observed(), bin.mean_claim(), width, style.unicode));
  }
  line("  all", reliability.total(),
       "calibration error " + tools::decimal(reliability.expected_calibration_error(), 3) + "; bar: true, " +
           (style.unicode ? "│" : "|") + ": claimed\n");
}

}  // namespace reprise::replay
