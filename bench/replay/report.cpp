// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "report_json.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "thread_clock.hpp"

namespace reprise::replay {
namespace {

double ratio(double part, double whole) { return whole == 0 ? 0.0 : part / whole; }
double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

void write_cuts(tools::JsonWriter& json, const Counts& counts) {
  json.key("cuts").begin_object();
  for (std::size_t i = 0; i < cut_count; ++i) json.member(to_string(static_cast<Cut>(i)), counts.cuts[i]);
  json.end();
}

void write_reliability(tools::JsonWriter& json, const Reliability& reliability) {
  json.key("reliability").begin_array();
  for (const Reliability::Bin& bin : reliability.bins()) {
    json.begin_object().member("tests", bin.tests).raw_member("claimed", tools::shortest(bin.mean_claim()));
    json.raw_member("observed", tools::shortest(bin.observed())).end();
  }
  json.end();
}

void write_row(tools::JsonWriter& json, const Report& report, const Row& row) {
  const Counts& counts = row.counts;
  const Ratios r = ratios(counts);
  const ReplaySettings& settings = report.settings;
  const bool by_cost = row.control.kind == ControlKind::cost;
  const bool learned = by_cost && timed(settings.cost_known);
  const bool recorded = report.curves[row.curve].pass_times() != nullptr;
  const auto real = [&](std::string_view name, double value) { json.raw_member(name, tools::shortest(value)); };
  json.member("trace", row.trace).member("category", row.category).member("strategy", row.strategy);
  json.member("cost", report.curves[row.curve].spec()).member("memory", name(row.kept));
  json.member("sessions", counts.sessions).member("turns", counts.turns).member("tokens", counts.tokens);
  json.member("passes", counts.passes).member("drafted", counts.drafted).member("accepted", counts.accepted);
  real("mat", r.mat);
  real("acceptance_rate", r.acceptance_rate);
  real("drafted_per_pass", r.drafted_per_pass);
  real("ns_per_token", r.ns_per_token);
  real("ns_per_propose", r.ns_per_propose);
  json.member("max_propose_ns", counts.time.max_propose_ns).member("peak_bytes", counts.peak_bytes);
  real("speedup", speedup(row));
  json.member("lossless", counts.lossless()).member("control", row.control.text());
  json.member("cost_known", by_cost ? name(settings.cost_known) : row.weighed() ? name(CostKnown::told) : "unused");
  real("noise", learned && !recorded ? settings.noise : 0);
  json.member("seed", learned ? settings.seed : 0).member("shape", shape_name(settings.trees));
  json.member("max_nodes", row.max_nodes).member("part", name(report.part));
  real("control_ns_per_token", r.control_ns_per_token);
  real("worst_loss", row.charge().worst_loss);
  real("calibration_error", counts.reliability.expected_calibration_error());
  write_cuts(json, counts);
  write_reliability(json, counts.reliability);
  json.member("memory_bytes", row.memory_bytes).member("clock", ThreadClock::name);
  if (settings.outliers != Outliers())
    json.member("outliers", learned && !recorded ? settings.outliers.text() : "none");
  if (settings.slowdown) json.member("slowdown", learned ? settings.slowdown->text() : "none");
  if (settings.poison) json.member("poison", learned ? settings.poison->text() : "none");
  if (!settings.cost_prior.empty()) json.member("cost_prior", by_cost ? settings.cost_prior : "unused");
  if (!settings.eos.empty()) {
    json.key("eos").begin_array();
    for (const Token token : settings.eos) json.value(token);
    json.end();
  }
  if (!settings.corpora.empty()) json.member("corpora", row.reads_corpora ? settings.corpora : "unused");
  write_top_k(json, report.top_k, settings, counts);
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

void write_top_k(tools::JsonWriter& json, bool there, const ReplaySettings& settings, const Counts& counts) {
  if (!there) return;
  json.member("top_k", !settings.top_k ? "off" : counts.top_k_rows == 0 ? "unused" : "accepted rows");
  json.member("top_k_rows", counts.top_k_rows);
}

std::string shape_and_rankings(const ReplaySettings& settings, bool there) {
  const std::string shape = settings.trees ? "trees" : "chains";
  if (settings.top_k && there) return shape + ", rankings of accepted tokens (--top-k on)";
  if (there) return shape + ", no rankings (--top-k off)";
  return shape + ", no rankings (the traces have none)";
}

std::string shape_note(const ReplaySettings& settings, bool there) {
  std::string text;
  if (settings.trees)
    text += tools::wrapped(
        "Trees (--shape tree): for engines that verify trees (Capabilities::max_leaves). With two functions, an engine "
        "gets chains, which are the default.\n");
  if (!there) return text;
  if (!settings.top_k) return text + "The top-k rows of the traces were not shown (--top-k off).\n";
  return text + tools::wrapped(
                    "Top-k rows: strategies that want them were shown the rows of accepted tokens. Rows of rejected "
                    "tokens are not in a trace: a lower bound.\n");
}

void write_results(tools::JsonWriter& json, const Report& report) {
  write_results(json, report.rows, [&](const Row& row) { write_row(json, report, row); });
  if (!report.heads.empty()) write_heads(json, report.heads, report.curves);
}

}  // namespace reprise::replay
