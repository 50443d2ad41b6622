// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <string_view>

#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "compare_report.hpp"
#include "reprise/stats/statistics_text.hpp"

namespace reprise::llama {

using tools::decimal;
using tools::JsonWriter;

void write(JsonWriter& json, const Difference& difference) {
  const auto token = [&](const char* name, const std::optional<Token>& id) {
    json.raw_member(name, id ? std::to_string(*id) : "null");
  };
  json.begin_object().member("turn", difference.turn).member("position", difference.position);
  token("without", difference.plain);
  token("with", difference.drafted);
  json.raw_member("margin", decimal(difference.margin, 6)).raw_member("top_two", decimal(difference.top_two, 6));
  json.member("reproduced", difference.reproduced).end();
}

void write(JsonWriter& json, const Sampling& sampling) {
  json.raw_member("temperature", decimal(sampling.temperature, 6)).member("seed", sampling.seed);
  json.member("grammar", !sampling.grammar.empty());
}

namespace {

/// All counts as the library's JSON object.
std::string statistics_json(const Statistics& statistics) {
  std::string json;
  reprise::write_json(statistics, [&](std::string_view piece) { json += piece; });
  return json;
}

/// Writes the counts that are exact on every machine.
void write_counts(JsonWriter& json, const Sums& sums) {
  json.raw_member("mat", decimal(sums.statistics.mean_accepted_tokens(), 6));
  json.raw_member("nodes_per_pass", decimal(sums.statistics.drafted_per_pass(), 6));
  const std::optional<double> speedup = sums.speedup_under_cost();
  json.raw_member("speedup_under_cost", speedup ? decimal(*speedup, 6) : "null");
}

void write(JsonWriter& json, const char* name, const Sums& sums) {
  json.key(name).begin_object().member("tokens", sums.tokens).member("turns", sums.turns);
  write_counts(json, sums);
  json.raw_member("tokens_per_second", decimal(sums.tokens_per_second(), 3));
  json.member("decoding_ns", sums.decoding.count()).member("llama_decode_ns", sums.model.count());
  json.raw_member("share_outside", decimal(sums.share_outside(), 6)).member("prefill_ns", sums.prefill.count());
  json.raw_member("statistics", statistics_json(sums.statistics)).end();
}

void write(JsonWriter& json, const Prediction& prediction) {
  json.begin_object().raw_member("tokens", decimal(prediction.tokens, 0));
  json.raw_member("cost", decimal(prediction.cost, 6)).raw_member("speedup", decimal(prediction.speedup(), 6)).end();
}

/// Writes a member that may be null.
template <class Value>
void write_optional(JsonWriter& json, const char* name, const std::optional<Value>& value) {
  json.key(name);
  if (value)
    write(json, *value);
  else
    json.null();
}

void write(JsonWriter& json, const Pair& pair) {
  json.begin_object().member("id", pair.id).member("category", pair.category).member("verdict", name(pair.verdict()));
  json.raw_member("speedup", decimal(speedup(pair.plain, pair.drafted), 6)).new_line(4);
  write(json, "without", pair.plain);
  json.new_line(4);
  write(json, "with", pair.drafted);
  json.new_line(4).member("context_full", pair.context_full);
  write_optional(json, "difference", pair.difference);
  write_optional(json, "predicted", pair.prediction);
  json.end();
}

/// Writes the members of a sum over sessions.
void write(JsonWriter& json, const Summary& sum) {
  json.member("sessions", sum.sessions).member("tokens", sum.drafted.tokens);
  json.member("passes", sum.drafted.statistics.passes);
  write_counts(json, sum.drafted);
  json.raw_member("speedup", decimal(speedup(sum.plain, sum.drafted), 6));
}

}  // namespace

void write_json(std::ostream& out, const CompareReport& report) {
  const EngineOptions& engine = report.engine.options();
  JsonWriter json(out);
  json.begin_object().member("version", 1).member("model", report.engine.description());
  json.member("threads", engine.threads).member("context", report.engine.context_size());
  json.member("leaves", report.settings.leaves).member("cost", report.cost).key("cost_model");
  report.cost_model.empty() ? json.null() : json.value(report.cost_model);
  json.member("memory", replay::name(report.kept))
      .member("filled_with", report.filled_with)
      .member("repeat", report.repeat)
      .raw_member("epsilon", decimal(report.epsilon, 6));
  write(json, report.settings.sampling);
  json.member("picks", name(report.settings.picks)).new_line(1).member("checked", report.checked());
  json.member("verdict", name(report.verdict())).new_line(1).key("strategies").begin_array();
  for (const StrategyPairs& strategy : report.strategies) {
    json.new_line(1).begin_object().member("strategy", strategy.spec);
    write(json.new_line(2).key("total").begin_object(), strategy.total());
    json.end().key("categories").begin_array();
    for (const auto& [category, sum] : strategy.by_category()) {
      write(json.new_line(3).begin_object().member("category", category), sum);
      json.end();
    }
    json.end().new_line(2).key("sessions").begin_array();
    for (const Pair& pair : strategy.pairs) write(json.new_line(3), pair);
    json.end().end();
  }
  json.end().end();
  out << "\n";
}

}  // namespace reprise::llama
