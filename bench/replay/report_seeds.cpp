// SPDX-License-Identifier: Apache-2.0
#include "report_seeds.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"
#include "report_curve.hpp"
#include "report_json.hpp"

namespace reprise::replay {
namespace {

using tools::JsonWriter;

std::string listed(const std::vector<std::uint64_t>& seeds, std::string_view separator) {
  std::string text;
  for (const std::uint64_t seed : seeds) text += (text.empty() ? "" : std::string(separator)) + std::to_string(seed);
  return text;
}

void write_runs(JsonWriter& json, const SeedRow& row) {
  json.key("runs").begin_array();
  for (const SeedRun& run : row.runs) {
    json.begin_object().member("seed", run.seed).raw_member("speedup", tools::shortest(run.speedup));
    json.raw_member("ratio", tools::shortest(run.ratio));
    if (row.category == all_categories) {
      json.raw_member("last_quarter", tools::shortest(run.last_quarter));
      write_curve_json(json, run.curve, row.told_rows);
    }
    json.end();
  }
  json.end();
}

void write_row(JsonWriter& json, const SeedReport& report, const SeedRow& row) {
  const ReplaySettings& settings = report.settings;
  const SeedRun& worst = row.worst();
  const std::vector<std::uint64_t> weak = row.weak_seeds();
  const bool recorded = report.curves[row.curve].pass_times() != nullptr;
  const auto real = [&](std::string_view name, double value) { json.raw_member(name, tools::shortest(value)); };
  json.member("trace", row.trace).member("category", row.category).member("strategy", row.strategy);
  json.member("control", row.control.text()).member("cost", report.curves[row.curve].spec());
  json.member("memory", name(row.kept)).member("cost_known", name(settings.cost_known));
  real("noise", recorded ? 0 : settings.noise);
  json.member("outliers", recorded ? "none" : settings.outliers.text());
  json.member("slowdown", settings.slowdown ? settings.slowdown->text() : "none");
  json.member("poison", settings.poison ? settings.poison->text() : "none");
  json.member("first_seed", row.runs.front().seed).member("seeds", row.runs.size());
  json.member("shape", shape_name(settings.trees)).member("max_nodes", settings.max_nodes);
  json.member("part", name(report.part)).member("sessions", row.told.sessions).member("tokens", row.told.tokens);
  real("told_speedup", row.told_speedup());
  real("mean_ratio", row.mean());
  real("worst_ratio", worst.ratio);
  json.member("worst_seed", worst.seed).member("weak_last_quarters", weak.size());
  json.member("weak_seeds", listed(weak, " "));
  real("mean_long", row.mean(&SeedRun::long_ratio));
  real("worst_long", row.lowest(&SeedRun::long_ratio));
  real("mean_short", row.mean(&SeedRun::short_ratio));
  real("worst_short", row.lowest(&SeedRun::short_ratio));
  json.member("lossless", row.told.lossless());
  write_runs(json, row);
  if (!settings.cost_prior.empty()) json.member("cost_prior", settings.cost_prior);
  if (!settings.corpora.empty()) json.member("corpora", settings.corpora);
  write_top_k(json, report.top_k, settings, row.told);
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
  if (settings.poison) text += ", poison " + settings.poison->text();
  return text;
}

void write_head(std::ostream& out, const SeedReport& report, const SeedRow& row) {
  out << tools::printable(row.trace);
  if (row.category != all_categories) out << ", category " << tools::printable(row.category);
  out << "\n  " << tools::grouped(row.told.sessions) << (row.told.sessions == 1 ? " session, " : " sessions, ")
      << tools::grouped(row.told.tokens) << " tokens; " << name(report.settings.cost_known) << ", "
      << engine_text(report) << ", " << seeds_text(row) << "\n"
      << "  drafts: " << shape_and_rankings(report.settings, report.top_k) << "\n\n";
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

void write_results(JsonWriter& json, const SeedReport& report) {
  write_results(json, report.rows, [&](const SeedRow& row) { write_row(json, report, row); });
}

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
  if (worst != nullptr)
    write_curve(
        out, *worst,
        label(*worst) + " under " + curve_name(report.curves[worst->curve]) +
            (report.rows.front().trace == report.rows.back().trace ? "" : ", " + tools::printable(worst->trace)),
        style);
  write_summary(out, summary, report.settings.cost_known == CostKnown::learned);
  if (const std::string note = shape_note(report.settings, report.top_k); !note.empty()) out << "\n" << note;
}

}  // namespace reprise::replay
