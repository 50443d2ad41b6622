// SPDX-License-Identifier: Apache-2.0
#include "report_curve.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/table.hpp"
#include "common/text.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t narrowest_share_bar = 16;
constexpr std::size_t widest_share_bar = 50;

std::string fixed(double value) { return tools::significant(value, 6); }

/// The row counts to draw: all small ones, some larger ones, and those that told uses.
std::vector<std::size_t> drawn_rows(const CurvePoint& point, const RowCounts& told) {
  constexpr std::array<std::size_t, 5> larger = {12, 16, 20, 24, 28};
  std::vector<std::size_t> rows;
  for (std::size_t i = 1; i <= point.rows.size(); ++i)
    if (i <= 9 || i == point.rows.size() || told.common(i) ||
        std::find(larger.begin(), larger.end(), i) != larger.end())
      rows.push_back(i);
  return rows;
}

/// A bar up to `share` of `width` columns, with a mark at `marked` of them.
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

void write_end(std::ostream& out, const CurvePoint& end, const RowCounts& told, std::size_t width, bool unicode) {
  const std::vector<std::size_t> drawn = drawn_rows(end, told);
  // A cost that was learned far too high does not flatten the other bars: it is cut at twice the highest true cost.
  double learned = 1;
  double actual = 1;
  for (const std::size_t rows : drawn) {
    learned = std::max(learned, end.rows[rows - 1].learned);
    actual = std::max(actual, end.rows[rows - 1].actual);
  }
  const double most = std::clamp(learned, actual, 2 * actual);
  const tools::Table table(out, {{6}, {9}, {9}, {9}});
  table.line({"rows", "true", "learned", "error"},
             "      bar: learned, " + std::string(unicode ? "│" : "|") + ": true");
  for (const std::size_t rows : drawn) {
    const CurvePoint::Row& row = end.rows[rows - 1];
    table.line({std::to_string(rows), tools::decimal(row.actual, 3), tools::decimal(row.learned, 3),
                tools::signed_percent(row.error())},
               std::string(" ") + (told.common(rows) ? "*" : " ") + (row.uncertain ? "?" : " ") + "  " +
                   bar_and_mark(std::min(row.learned / most, 1.0), row.actual / most, width, unicode) +
                   (row.learned > most ? ">" : ""));
  }
  out << "  *: told sends it in 1% of its passes or more. ?: uncertain to the control.\n\n";
}

void write_errors(std::ostream& out, std::span<const CurvePoint> points, const RowCounts& told, std::size_t width,
                  bool unicode) {
  double most = 0;
  const auto error = [&](const CurvePoint& point) { return point.rows[point.worst_rows(told) - 1].error(); };
  for (const CurvePoint& point : points) most = std::max(most, std::abs(error(point)));
  const tools::Table table(out, {{9}, {9}, {9}});
  table.line({"passes", "rows", "error"}, "    largest error of the row counts marked *");
  for (const CurvePoint& point : points) {
    std::string bar;
    const double share = most == 0 ? 0 : std::abs(error(point)) / most;
    for (auto i = static_cast<std::size_t>(std::llround(share * static_cast<double>(width))); i > 0; --i)
      bar += unicode ? "█" : "#";
    table.line(
        {tools::grouped(point.passes), std::to_string(point.worst_rows(told)), tools::signed_percent(error(point))},
        bar.empty() ? "" : "    " + bar);
  }
  out << "\n";
}

}  // namespace

void write_curve_json(tools::JsonWriter& json, std::span<const CurvePoint> points, const RowCounts& counted) {
  json.key("curve").begin_array();
  for (const CurvePoint& point : points) {
    json.begin_object().member("passes", point.passes).member("context", point.context);
    json.key("learned").begin_array();
    for (const CurvePoint::Row& row : point.rows) json.raw(fixed(row.learned));
    json.end().key("true").begin_array();
    for (const CurvePoint::Row& row : point.rows) json.raw(fixed(row.actual));
    json.end().key("uncertain").begin_array();
    for (std::size_t i = 0; i < point.rows.size(); ++i)
      if (point.rows[i].uncertain) json.value(i + 1);
    const std::size_t worst = point.worst_rows(counted);
    json.end().raw_member("largest_error", fixed(point.rows[worst - 1].error()));
    json.member("largest_error_rows", worst).end();
  }
  json.end();
}

void write_curve(std::ostream& out, const SeedRow& row, const std::string& title, const TableStyle& style) {
  const SeedRun& run = row.worst();
  if (run.curve.empty()) return;
  const CurvePoint& end = run.curve.back();
  out << "learned curve of " << title << ", seed " << run.seed << " (" << tools::decimal(run.ratio, 4)
      << " of told)\nafter " << tools::grouped(end.passes) << " passes, context " << tools::grouped(end.context)
      << "\n\n";
  constexpr std::size_t numbers = 40;
  const std::size_t width =
      std::clamp(style.columns > numbers ? style.columns - numbers : 0, narrowest_share_bar, widest_share_bar);
  write_end(out, end, row.told_rows, width, style.unicode);
  write_errors(out, run.curve, row.told_rows, width, style.unicode);
}

}  // namespace reprise::replay
