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
#include "report_curve.hpp"
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
    if (row.category == all_categories) {
      json.raw_member("last_quarter", tools::shortest(run.last_quarter));
      json.raw_member("curve", curve_json(run.curve, row.told_rows));
    }
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
  const bool recorded = report.curves[row.curve].pass_times() != nullptr;
  std::vector<Field> all = {{"trace", row.trace, Kind::text},
                            {"category", row.category, Kind::text},
                            {"strategy", row.strategy, Kind::text},
                            {"control", row.control.text(), Kind::text},
                            {"cost", report.curves[row.curve].spec(), Kind::text},
                            {"memory", std::string(name(row.kept)), Kind::text},
                            {"cost_known", std::string(name(settings.cost_known)), Kind::text},
                            {"noise", tools::shortest(recorded ? 0 : settings.noise)},
                            {"outliers", recorded ? "none" : settings.outliers.text(), Kind::text},
                            {"slowdown", settings.slowdown ? settings.slowdown->text() : "none", Kind::text},
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
                            {"mean_long", tools::shortest(row.mean(&SeedRun::long_ratio))},
                            {"worst_long", tools::shortest(row.lowest(&SeedRun::long_ratio))},
                            {"mean_short", tools::shortest(row.mean(&SeedRun::short_ratio))},
                            {"worst_short", tools::shortest(row.lowest(&SeedRun::short_ratio))},
                            {"lossless", row.told.lossless() ? "true" : "false"},
                            {"runs", runs_json(row), Kind::json}};
  if (!settings.cost_prior.empty()) all.push_back({"cost_prior", settings.cost_prior, Kind::text});
  if (!settings.corpora.empty()) all.push_back({"corpora", settings.corpora, Kind::text});
  if (report.top_k) {
    all.push_back({"top_k", std::string(top_k_text(settings, row.told)), Kind::text});
    all.push_back({"top_k_rows", std::to_string(row.told.top_k_rows)});
  }
  return all;
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

std::string seeds_text(const SeedRow& row) {
  const std::string first = std::to_string(row.runs.front().seed);
  return row.runs.size() == 1 ? "seed " + first : "seeds " + first + " to " + std::to_string(row.runs.back().seed);
}

/// The simulated engine: how its pass times come about.
std::string engine_text(const SeedReport& report) {
  const ReplaySettings& settings = report.settings;
  const bool recorded = std::all_of(report.curves.begin(), report.curves.end(),
                                    [](const CostCurve& curve) { return curve.pass_times() != nullptr; });
  std::string text = recorded ? "recorded pass times" : "noise " + tools::shortest(settings.noise);
  if (settings.outliers != Outliers()) text += ", outliers " + settings.outliers.text();
  if (settings.slowdown) text += ", slowdown " + settings.slowdown->text();
  return text;
}

void write_head(std::ostream& out, const SeedReport& report, const SeedRow& row) {
  out << tools::printable(row.trace);
  if (row.category != all_categories) out << ", category " << tools::printable(row.category);
  out << "\n  " << tools::grouped(row.told.sessions) << (row.told.sessions == 1 ? " session, " : " sessions, ")
      << tools::grouped(row.told.tokens) << " tokens; " << name(report.settings.cost_known) << ", "
      << engine_text(report) << ", " << seeds_text(row) << "\n\n";
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

/// The runs of all rows that are not of a single category.
struct Summary {
  std::vector<const SeedRow*> rows;

  explicit Summary(std::span<const SeedRow> all) {
    for (const SeedRow& row : all)
      if (row.category == all_categories) rows.push_back(&row);
  }

  /// The geometric mean, the lowest mean of a row and the lowest value of a run, of the runs that have the value.
  struct Means {
    double geometric = 0;
    const SeedRow* lowest_mean = nullptr;
    const SeedRow* lowest = nullptr;
  };
  [[nodiscard]] Means means(double SeedRun::*value) const {
    Means means;
    double logs = 0;
    std::size_t runs = 0;
    for (const SeedRow* row : rows) {
      if (row->lowest(value) == 0) continue;
      runs += row->runs.size();
      for (const SeedRun& run : row->runs) logs += std::log(run.*value);
      if (means.lowest_mean == nullptr || row->mean(value) < means.lowest_mean->mean(value)) means.lowest_mean = row;
      if (means.lowest == nullptr || row->lowest(value) < means.lowest->lowest(value)) means.lowest = row;
    }
    if (runs != 0) means.geometric = std::exp(logs / static_cast<double>(runs));
    return means;
  }
  [[nodiscard]] std::size_t runs() const {
    std::size_t count = 0;
    for (const SeedRow* row : rows) count += row->runs.size();
    return count;
  }
  [[nodiscard]] std::size_t weak() const {
    std::size_t count = 0;
    for (const SeedRow* row : rows) count += row->weak_seeds().size();
    return count;
  }
};

void write_summary(std::ostream& out, const Summary& summary, bool by_length) {
  const auto line = [&](const std::string& what, double SeedRun::*value) {
    const Summary::Means means = summary.means(value);
    if (means.lowest == nullptr) return;
    out << what << ": geometric mean " << tools::decimal(means.geometric, 4) << ", lowest mean of a line "
        << tools::decimal(means.lowest_mean->mean(value), 4) << ", worst run "
        << tools::decimal(means.lowest->lowest(value), 4) << "\n";
  };
  out << tools::grouped(summary.runs()) << (summary.runs() == 1 ? " run" : " runs") << ", speedup relative to told\n";
  line("  all sessions", &SeedRun::ratio);
  if (by_length) line("  sessions of 1,000 tokens and more", &SeedRun::long_ratio);
  if (by_length) line("  shorter sessions", &SeedRun::short_ratio);
  out << "  runs whose last quarter is below " << tools::decimal(SeedRun::weak_below, 2)
      << " of told: " << summary.weak() << "\n";
}

}  // namespace

void write_json(std::ostream& out, const SeedReport& report) { write_json(out, results(report)); }
void write_csv(std::ostream& out, const SeedReport& report) { write_csv(out, results(report)); }

void write_table(std::ostream& out, const SeedReport& report, const TableStyle& style) {
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
      out << (i == 0 ? "" : "\n");
      write_head(out, report, row);
      table.line({"", "", "", "told", "mean /", "worst /", "seed of"}, "   last quarter below");
      table.line({"strategy", "", "curve", "speedup", "told", "told", "worst"},
                 "   " + tools::decimal(SeedRun::weak_below, 2) + " of told");
    }
    table.line({label(row), "", curve_name(report.curves[row.curve]), tools::decimal(row.told_speedup(), 3),
                tools::decimal(row.mean(), 4), tools::decimal(row.worst().ratio, 4), std::to_string(row.worst().seed)},
               row.category == all_categories ? "   " + weak_text(row) : "");
  }
  out << "\n";
  const Summary summary(report.rows);
  const SeedRow* worst = summary.means(&SeedRun::ratio).lowest;
  for (const SeedRow* row : summary.rows)
    if (style.curves || row == worst)
      write_curve(
          out, *row,
          label(*row) + " under " + curve_name(report.curves[row->curve]) +
              (report.rows.front().trace == report.rows.back().trace ? "" : ", " + tools::printable(row->trace)),
          style);
  write_summary(out, summary, report.settings.cost_known == CostKnown::learned);
  if (report.top_k) out << "\n" << top_k_note(report.settings);
}

}  // namespace reprise::replay
