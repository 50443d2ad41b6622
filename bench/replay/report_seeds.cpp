// SPDX-License-Identifier: Apache-2.0
#include "report_seeds.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"
#include "report_fields.hpp"

namespace reprise::replay {
namespace {

std::string listed(const std::vector<std::uint64_t>& seeds, std::string_view separator) {
  std::string text;
  for (const std::uint64_t seed : seeds) text += (text.empty() ? "" : std::string(separator)) + std::to_string(seed);
  return text;
}

std::string runs_json(const SeedRow& row) {
  std::ostringstream text;
  tools::JsonWriter json(text);
  json.begin_array();
  for (const SeedRun& run : row.runs) {
    json.begin_object().member("seed", run.seed).raw_member("speedup", tools::shortest(run.speedup));
    json.raw_member("ratio", tools::shortest(run.ratio));
    if (row.category == all_categories) json.raw_member("last_quarter", tools::shortest(run.last_quarter));
    json.end();
  }
  json.end();
  return text.str();
}

/// The fields of both formats. Add new ones at the end, because readers of CSV count columns.
std::vector<Field> fields(const SeedReport& report, const SeedRow& row) {
  using Kind = Field::Kind;
  const ReplaySettings& settings = report.settings;
  const SeedRun& worst = row.worst();
  const std::vector<std::uint64_t> weak = row.weak_seeds();
  return {{"trace", row.trace, Kind::text},
          {"category", row.category, Kind::text},
          {"strategy", row.strategy, Kind::text},
          {"control", row.control.text(), Kind::text},
          {"cost", report.curves[row.curve].spec(), Kind::text},
          {"memory", std::string(name(row.kept)), Kind::text},
          {"cost_known", std::string(name(settings.cost_known)), Kind::text},
          {"noise", tools::shortest(settings.noise)},
          {"first_seed", std::to_string(row.runs.front().seed)},
          {"seeds", std::to_string(row.runs.size())},
          {"shape", std::string(shape_name(settings.trees)), Kind::text},
          {"max_nodes", std::to_string(settings.max_nodes)},
          {"part", std::string(name(report.part)), Kind::text},
          {"sessions", std::to_string(row.told.sessions)},
          {"tokens", std::to_string(row.told.tokens)},
          {"told_speedup", tools::shortest(row.told_speedup())},
          {"mean_ratio", tools::shortest(row.mean())},
          {"worst_ratio", tools::shortest(worst.ratio)},
          {"worst_seed", std::to_string(worst.seed)},
          {"weak_last_quarters", std::to_string(weak.size())},
          {"weak_seeds", listed(weak, " "), Kind::text},
          {"lossless", row.told.lossless() ? "true" : "false"},
          {"runs", runs_json(row), Kind::json}};
}

std::vector<std::vector<Field>> results(const SeedReport& report) {
  std::vector<std::vector<Field>> all;
  for (const SeedRow& row : report.rows) all.push_back(fields(report, row));
  return all;
}

bool same_block(const SeedRow& a, const SeedRow& b) { return a.trace == b.trace && a.category == b.category; }

/// The strategy of a row, and its control if the strategy alone is ambiguous.
std::string label(const SeedRow& row) { return tools::printable(row.strategy); }

/// A curve for people: linear:S, or the name of its file without the folder.
std::string curve_name(const CostCurve& curve) {
  return tools::printable(curve.linear() != nullptr ? curve.spec()
                                                    : std::filesystem::path(curve.spec()).filename().string());
}

std::string weak_text(const SeedRow& row) {
  constexpr std::size_t most_named = 6;
  std::vector<std::uint64_t> weak = row.weak_seeds();
  if (weak.empty()) return "none";
  const std::string count = std::to_string(weak.size());
  const bool more = weak.size() > most_named;
  if (more) weak.resize(most_named);
  return count + " (seed " + listed(weak, ", ") + (more ? ", ...)" : ")");
}

/// Writes the summary of all rows that are not of a single category.
void write_summary(std::ostream& out, std::span<const SeedRow> rows) {
  double logs = 0;
  std::size_t cells = 0;
  std::size_t runs = 0;
  std::size_t weak = 0;
  const SeedRow* lowest = nullptr;
  const SeedRow* worst = nullptr;
  for (const SeedRow& row : rows) {
    if (row.category != all_categories) continue;
    ++cells;
    runs += row.runs.size();
    weak += row.weak_seeds().size();
    for (const SeedRun& run : row.runs) logs += std::log(run.ratio);
    if (lowest == nullptr || row.mean() < lowest->mean()) lowest = &row;
    if (worst == nullptr || row.worst().ratio < worst->worst().ratio) worst = &row;
  }
  if (cells == 0) return;
  out << "all " << tools::grouped(runs) << " runs, relative to told: geometric mean "
      << tools::decimal(std::exp(logs / static_cast<double>(runs)), 4) << ", lowest mean of a line "
      << tools::decimal(lowest->mean(), 4) << ", worst run " << tools::decimal(worst->worst().ratio, 4) << " (seed "
      << worst->worst().seed << "),\nruns whose last quarter is below " << tools::decimal(SeedRun::weak_below, 2)
      << " of told: " << weak << "\n";
}

}  // namespace

void write_json(std::ostream& out, const SeedReport& report) { write_json(out, results(report)); }
void write_csv(std::ostream& out, const SeedReport& report) { write_csv(out, results(report)); }

void write_table(std::ostream& out, const SeedReport& report, const TableStyle&) {
  constexpr std::size_t widest = 36;
  std::size_t names = 8;
  std::size_t curves = 5;
  for (const SeedRow& row : report.rows) {
    names = std::clamp(tools::utf8_columns(label(row)), names, widest);
    curves = std::clamp(tools::utf8_columns(curve_name(report.curves[row.curve])), curves, widest);
  }
  const tools::Table table(
      out, {{names, tools::Align::left, true}, {2}, {curves, tools::Align::left, true}, {8}, {8}, {8}, {9}, {3}});
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const SeedRow& row = report.rows[i];
    if (i == 0 || !same_block(report.rows[i - 1], row)) {
      out << (i == 0 ? "" : "\n") << tools::printable(row.trace);
      if (row.category != all_categories) out << ", category " << tools::printable(row.category);
      out << "\n  " << tools::grouped(row.told.sessions) << (row.told.sessions == 1 ? " session, " : " sessions, ")
          << tools::grouped(row.told.tokens) << " tokens; " << name(report.settings.cost_known) << ", noise "
          << tools::shortest(report.settings.noise) << ", seeds " << row.runs.front().seed << " to "
          << row.runs.back().seed << "\n\n";
      table.line({"", "", "", "told", "mean /", "worst /", "seed of"}, "   last quarter below");
      table.line({"strategy", "", "curve", "speedup", "told", "told", "worst"},
                 "   " + tools::decimal(SeedRun::weak_below, 2) + " of told");
    }
    table.line({label(row), "", curve_name(report.curves[row.curve]), tools::decimal(row.told_speedup(), 3),
                tools::decimal(row.mean(), 4), tools::decimal(row.worst().ratio, 4), std::to_string(row.worst().seed)},
               row.category == all_categories ? "   " + weak_text(row) : "");
  }
  out << "\n";
  write_summary(out, report.rows);
}

}  // namespace reprise::replay
