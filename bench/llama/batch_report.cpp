// SPDX-License-Identifier: Apache-2.0
#include "batch_report.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "compare_report.hpp"

namespace reprise::llama {
namespace {

using tools::decimal;
using tools::JsonWriter;
using tools::printable;

/// The lane of plain batched decoding with the same number of sequences; null if there is none.
const BatchLane* plain_of(const BatchReport& report, const BatchLane& lane) {
  for (const BatchLane& other : report.comparison.lanes)
    if (other.sequences == lane.sequences && other.rule.kind == BatchRule::Kind::plain) return &other;
  return nullptr;
}

/// The speed divided by that of plain batched decoding.
std::optional<double> speedup(const BatchReport& report, const BatchLane& lane) {
  const BatchLane* const plain = plain_of(report, lane);
  if (plain == nullptr || plain->tokens_per_second() == 0) return {};
  return lane.tokens_per_second() / plain->tokens_per_second();
}
/// The same for passes without prompt rows.
std::optional<double> decoding_speedup(const BatchReport& report, const BatchLane& lane) {
  const BatchLane* const plain = plain_of(report, lane);
  if (plain == nullptr || plain->tokens_per_second_without_prompts() == 0) return {};
  return lane.tokens_per_second_without_prompts() / plain->tokens_per_second_without_prompts();
}

std::size_t preemptions(const BatchLane& lane) {
  std::size_t count = 0;
  for (const BatchRun& run : lane.runs) count += run.preemptions;
  return count;
}
std::size_t most_running(const BatchLane& lane) {
  std::size_t most = 0;
  for (const BatchRun& run : lane.runs) most = std::max(most, run.most_running);
  return most;
}
bool stopped(const BatchLane& lane) {
  return std::any_of(lane.runs.begin(), lane.runs.end(), [](const BatchRun& run) { return run.stopped; });
}

class LaneTable {
 public:
  explicit LaneTable(std::ostream& out)
      : table_(out,
               {{8, tools::Align::left}, {10}, {9}, {10}, {9}, {8}, {10}, {9}, {9}, {9}, {7}, {10}, {6}, {7}, {7}}) {
    table_.line({"", "", "", {"without prompts", 2}, "", "rows", "", "", "outside", "at", "", "near", "", "pre-"});
    table_.line({"rule", "tokens/s", "speedup", "tokens/s", "speedup", "passes", "/pass", "drafted", "accepted",
                 "decode", "once", "identical", "ties", "wrong", "empted"});
  }
  void line(const BatchReport& report, const BatchLane& lane) const {
    const PassSums all = lane.all();
    const auto ratio = [](const std::optional<double>& value) { return value ? decimal(*value, 3) : "-"; };
    table_.line(
        {lane.rule.name(), decimal(lane.tokens_per_second(), 1), ratio(speedup(report, lane)),
         decimal(lane.tokens_per_second_without_prompts(), 1), ratio(decoding_speedup(report, lane)),
         std::to_string(all.passes), decimal(all.rows_per_pass(), 2), std::to_string(all.drafted),
         std::to_string(all.accepted), decimal(100 * all.share_outside(), 2) + "%", std::to_string(most_running(lane)),
         std::to_string(lane.count(Verdict::identical)), std::to_string(lane.count(Verdict::near_tie)),
         std::to_string(lane.count(Verdict::wrong)), std::to_string(preemptions(lane))},
        stopped(lane) ? " (interrupted)" : "");
  }

 private:
  tools::Table table_;
};

void write_differences(std::ostream& out, const BatchReport& report, const BatchLane& lane) {
  for (std::size_t i = 0; i < lane.checks.size(); ++i) {
    const std::string id = report.requests[i].id + " (" + lane.rule.name() + ")";
    if (lane.checks[i].difference) write_difference(out, id, *lane.checks[i].difference, report.engine);
    for (const BatchRun& run : lane.runs)
      if (!run.sessions[i].gave_up.empty())
        out << "  " << printable(id) << ": gave up: " << run.sessions[i].gave_up << "\n";
  }
}

const char* cache_name(const Engine& engine) { return engine.options().unified ? "unified" : "separate"; }

std::string verdict_text(const BatchComparison& comparison) {
  std::size_t compared = 0;
  for (const BatchLane& lane : comparison.lanes) compared += lane.compared();
  if (compared == 0) return "not compared";
  return std::string(name(comparison.verdict()));
}

void write(JsonWriter& json, const char* key, const PassSums& sums) {
  json.key(key).begin_object().member("tokens", sums.tokens).member("passes", sums.passes).member("rows", sums.rows);
  json.member("prompt_rows", sums.prompt_rows).member("drafted", sums.drafted).member("accepted", sums.accepted);
  json.member("ns", sums.time.count()).member("llama_decode_ns", sums.model.count());
  json.raw_member("tokens_per_second", decimal(sums.tokens_per_second(), 3));
  json.raw_member("rows_per_pass", decimal(sums.rows_per_pass(), 3));
  json.raw_member("share_outside", decimal(sums.share_outside(), 6)).end();
}

void write(JsonWriter& json, const BatchRun& run) {
  json.begin_object().member("stopped", run.stopped).member("most_running", run.most_running);
  json.member("preemptions", run.preemptions);
  write(json, "all", run.all);
  write(json, "without_prompts", run.decoding);
  json.end();
}

void write_session(JsonWriter& json, const Request& request, const BatchLane& lane, std::size_t i) {
  const BatchCheck& check = lane.checks[i];
  json.begin_object().member("id", request.id).member("category", request.category).member("draft", request.draft);
  json.member("verdict", check.compared ? name(check.verdict()) : std::string_view("not compared"));
  json.key("difference");
  check.difference ? write(json, *check.difference) : void(json.null());
  json.key("runs").begin_array();
  for (const BatchRun& run : lane.runs) {
    const BatchSession& session = run.sessions[i];
    Statistics statistics;
    for (const TurnRun& turn : session.run.turns) statistics += turn.statistics;
    json.begin_object().member("turns", session.run.turns.size()).member("done", session.done);
    json.member("context_full", session.run.context_full).member("preemptions", session.preemptions).key("gave_up");
    session.gave_up.empty() ? json.null() : json.value(session.gave_up);
    json.member("tokens", statistics.tokens).member("passes", statistics.passes);
    json.member("drafted", statistics.drafted).member("accepted", statistics.accepted).end();
  }
  json.end().end();
}

void write(JsonWriter& json, const BatchReport& report, const BatchLane& lane) {
  json.new_line(1).begin_object().member("sequences", lane.sequences).member("rule", lane.rule.name());
  json.raw_member("tokens_per_second", decimal(lane.tokens_per_second(), 3));
  json.raw_member("tokens_per_second_without_prompts", decimal(lane.tokens_per_second_without_prompts(), 3));
  const auto ratio = [&](const char* key, const std::optional<double>& value) {
    json.raw_member(key, value ? decimal(*value, 6) : "null");
  };
  ratio("speedup", speedup(report, lane));
  ratio("speedup_without_prompts", decoding_speedup(report, lane));
  json.member("compared", lane.compared());
  json.member("identical", lane.count(Verdict::identical)).member("near_ties", lane.count(Verdict::near_tie));
  json.member("wrong", lane.count(Verdict::wrong)).new_line(2);
  write(json, "all", lane.all());
  write(json.new_line(2), "without_prompts", lane.decoding());
  json.new_line(2).key("runs").begin_array();
  for (const BatchRun& run : lane.runs) write(json.new_line(3), run);
  json.end().new_line(2).key("sessions").begin_array();
  for (std::size_t i = 0; i < lane.checks.size(); ++i) write_session(json.new_line(3), report.requests[i], lane, i);
  json.end().end();
}

}  // namespace

void write_table(std::ostream& out, const BatchReport& report) {
  const BatchComparison& comparison = report.comparison;
  const EngineOptions& engine = report.engine.options();
  out << printable(report.engine.description()) << ", " << engine.threads
      << (engine.threads == 1 ? " thread" : " threads") << ", context " << engine.context << " ("
      << cache_name(report.engine) << "), chunks of " << report.settings.batch.chunk << ", "
      << printable(report.strategy) << ", cost " << printable(report.cost) << ", " << report.requests.size()
      << " sessions\n";
  std::size_t sequences = 0;
  std::optional<LaneTable> table;
  for (const BatchLane& lane : comparison.lanes) {
    if (lane.sequences != std::exchange(sequences, lane.sequences)) {
      out << "\nup to " << lane.sequences << (lane.sequences == 1 ? " sequence" : " sequences") << " at once\n";
      table.emplace(out);
    }
    table->line(report, lane);
  }
  out << "\n";
  for (const BatchLane& lane : comparison.lanes) write_differences(out, report, lane);
  if (comparison.alone.turns > 0)
    out << "alone, one session after the other, without drafting: " << decimal(comparison.alone.tokens_per_second(), 1)
        << " tokens/s without prompts\n";
  out << "tokens/s: all generated tokens / all of the time, prompts included; the median of " << report.settings.repeat
      << (report.settings.repeat == 1 ? " run" : " runs")
      << ". speedup: against plain.\n  without prompts: tokens/s of the passes without prompt rows. outside decode: "
         "share of the time outside llama_decode.\n"
      << "compared with each session decoded alone: "
      << what_is_checked(report.settings.batch.settings.sampling, report.settings.epsilon) << "\n"
      << "verdict: " << verdict_text(comparison) << (comparison.partial ? " (partial: interrupted)" : "") << "\n";
}

void write_json(std::ostream& out, const BatchReport& report) {
  const BatchComparison& comparison = report.comparison;
  const EngineOptions& engine = report.engine.options();
  const Sampling& sampling = report.settings.batch.settings.sampling;
  JsonWriter json(out);
  json.begin_object().member("version", 1).member("model", report.engine.description());
  json.member("threads", engine.threads).member("context", report.engine.context_size());
  json.member("cache", cache_name(report.engine)).member("batch", engine.batch);
  json.member("chunk", report.settings.batch.chunk).member("strategy", report.strategy).member("cost", report.cost);
  json.member("repeat", report.settings.repeat).raw_member("epsilon", decimal(report.settings.epsilon, 6));
  write(json, sampling);
  json.new_line(1)
      .member("checked", what_is_checked(sampling, report.settings.epsilon))
      .member("verdict", verdict_text(comparison));
  json.member("partial", comparison.partial);
  json.raw_member("alone_tokens_per_second", decimal(comparison.alone.tokens_per_second(), 3));
  json.new_line(1).key("lanes").begin_array();
  for (const BatchLane& lane : comparison.lanes) write(json, report, lane);
  json.end().end();
  out << "\n";
}

}  // namespace reprise::llama
