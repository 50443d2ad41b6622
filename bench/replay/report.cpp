// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "report_fields.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/version.hpp"

namespace reprise::replay {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0.0 : part / whole; }
double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

using Kind = Field::Kind;

std::string cuts(const Counts& counts) {
  std::ostringstream text;
  tools::JsonWriter json(text);
  json.begin_object();
  for (std::size_t i = 0; i < cut_count; ++i) json.member(to_string(static_cast<Cut>(i)), counts.cuts[i]);
  json.end();
  return text.str();
}

std::string reliability(const Reliability& reliability) {
  std::ostringstream text;
  tools::JsonWriter json(text);
  json.begin_array();
  for (const Reliability::Bin& bin : reliability.bins()) {
    json.begin_object().member("tests", bin.tests).raw_member("claimed", tools::shortest(bin.mean_claim()));
    json.raw_member("observed", tools::shortest(bin.observed())).end();
  }
  json.end();
  return text.str();
}

/// The fields of both formats. Add new ones at the end, because readers of CSV count columns.
std::vector<Field> fields(const Report& report, const Row& row) {
  const Counts& counts = row.counts;
  const Ratios r = ratios(counts);
  const ReplaySettings& settings = report.settings;
  const bool learned = row.weighed() && timed(settings.cost_known);
  const bool recorded = report.curves[row.curve].pass_times() != nullptr;
  std::vector<Field> all = {
      {"trace", row.trace, Kind::text},
      {"category", row.category, Kind::text},
      {"strategy", row.strategy, Kind::text},
      {"cost", report.curves[row.curve].spec(), Kind::text},
      {"memory", std::string(name(row.kept)), Kind::text},
      {"sessions", std::to_string(counts.sessions)},
      {"turns", std::to_string(counts.turns)},
      {"tokens", std::to_string(counts.tokens)},
      {"passes", std::to_string(counts.passes)},
      {"drafted", std::to_string(counts.drafted)},
      {"accepted", std::to_string(counts.accepted)},
      {"mat", tools::shortest(r.mat)},
      {"acceptance_rate", tools::shortest(r.acceptance_rate)},
      {"drafted_per_pass", tools::shortest(r.drafted_per_pass)},
      {"ns_per_token", tools::shortest(r.ns_per_token)},
      {"ns_per_propose", tools::shortest(r.ns_per_propose)},
      {"max_propose_ns", std::to_string(counts.time.max_propose_ns)},
      {"peak_bytes", std::to_string(counts.peak_bytes)},
      {"speedup", tools::shortest(speedup(row))},
      {"lossless", counts.lossless() ? "true" : "false"},
      {"control", row.control.text(), Kind::text},
      {"cost_known", row.weighed() ? std::string(name(settings.cost_known)) : "unused", Kind::text},
      {"noise", tools::shortest(learned && !recorded ? settings.noise : 0)},
      {"seed", std::to_string(learned ? settings.seed : 0)},
      {"shape", std::string(shape_name(settings.trees)), Kind::text},
      {"max_nodes", std::to_string(row.max_nodes)},
      {"part", std::string(name(report.part)), Kind::text},
      {"control_ns_per_token", tools::shortest(r.control_ns_per_token)},
      {"worst_loss", tools::shortest(row.charge().worst_loss)},
      {"calibration_error", tools::shortest(counts.reliability.expected_calibration_error())},
      {"cuts", cuts(counts), Kind::json},
      {"reliability", reliability(counts.reliability), Kind::json},
      {"memory_bytes", std::to_string(row.memory_bytes)}};
  // Only where the options were given or a trace has top-k rows, so that other results keep their columns.
  if (settings.outliers != Outliers())
    all.push_back({"outliers", learned && !recorded ? settings.outliers.text() : "none", Kind::text});
  if (settings.slowdown) all.push_back({"slowdown", learned ? settings.slowdown->text() : "none", Kind::text});
  if (!settings.cost_prior.empty())
    all.push_back({"cost_prior", row.weighed() ? settings.cost_prior : "unused", Kind::text});
  if (!settings.corpora.empty())
    all.push_back({"corpora", row.reads_corpora ? settings.corpora : "unused", Kind::text});
  if (report.top_k) {
    all.push_back({"top_k", std::string(top_k_text(settings, counts)), Kind::text});
    all.push_back({"top_k_rows", std::to_string(counts.top_k_rows)});
  }
  return all;
}

std::vector<std::vector<Field>> results(const Report& report) {
  std::vector<std::vector<Field>> all;
  for (const Row& row : report.rows) all.push_back(fields(report, row));
  return all;
}

std::string quote_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Ratios ratios(const Counts& counts) {
  return {ratio(counts.tokens, counts.passes),
          ratio(counts.accepted, counts.drafted),
          ratio(counts.drafted, counts.passes),
          ratio(counts.time.total_ns, counts.tokens),
          ratio(counts.time.propose_ns, counts.time.proposals),
          ratio(counts.control_ns, counts.tokens)};
}

double speedup(const Row& row) {
  return row.counts.tokens == 0 ? 1.0 : ratio(static_cast<double>(row.counts.tokens), row.charge().cost);
}

std::string_view top_k_text(const ReplaySettings& settings, const Counts& counts) {
  if (!settings.top_k) return "off";
  return counts.top_k_rows == 0 ? "unused" : "accepted rows";
}

std::string_view top_k_note(const ReplaySettings& settings) {
  if (!settings.top_k) return "The top-k rows of the traces were not shown (--top-k off).\n";
  return "Top-k rows: strategies that want them were shown the rows of accepted tokens. Rows of rejected\n"
         "tokens are not in a trace: a lower bound.\n";
}

void write_json(std::ostream& out, std::span<const std::vector<Field>> results) {
  tools::JsonWriter json(out);
  json.begin_object().member("version", version_string).key("results").begin_array();
  for (const std::vector<Field>& result : results) {
    json.new_line().begin_object();
    for (const Field& field : result) {
      json.key(field.name);
      field.kind == Kind::text ? json.value(field.value) : json.raw(field.value);
    }
    json.end();
  }
  json.new_line().end().end();
  out << "\n";
}

void write_csv(std::ostream& out, std::span<const std::vector<Field>> results) {
  bool named = false;
  for (std::vector<Field> result : results) {
    std::erase_if(result, [](const Field& field) { return field.kind == Kind::json; });
    if (!std::exchange(named, true))
      for (const Field& field : result) out << (&field == &result.front() ? "" : ",") << field.name;
    out << "\r\n";
    for (const Field& field : result) out << (&field == &result.front() ? "" : ",") << quote_csv(field.value);
  }
  out << "\r\n";
}

void write_json(std::ostream& out, const Report& report) { write_json(out, results(report)); }
void write_csv(std::ostream& out, const Report& report) { write_csv(out, results(report)); }

}  // namespace reprise::replay
