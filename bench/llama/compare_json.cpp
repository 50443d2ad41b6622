// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "common/json.hpp"
#include "common/text.hpp"
#include "compare_report.hpp"
#include "reprise/stats/statistics_text.hpp"

namespace reprise::llama {
namespace {

using tools::decimal;
using tools::quote_json;

void write(std::ostream& out, const char* name, const Sums& sums) {
  out << "\"" << name << "\": {\"tokens\": " << sums.tokens << ", \"turns\": " << sums.turns
      << ", \"tokens_per_second\": " << decimal(sums.tokens_per_second(), 3)
      << ", \"decoding_ns\": " << sums.decoding.count() << ", \"llama_decode_ns\": " << sums.model.count()
      << ", \"share_outside\": " << decimal(sums.share_outside(), 6) << ", \"prefill_ns\": " << sums.prefill.count()
      << ", \"statistics\": ";
  reprise::write_json(sums.statistics, [&](std::string_view piece) { out << piece; });
  out << "}";
}

void write(std::ostream& out, const Difference& difference) {
  const auto id = [&](const std::optional<Token>& token) {
    return token ? std::to_string(*token) : std::string("null");
  };
  out << "{\"turn\": " << difference.turn << ", \"position\": " << difference.position
      << ", \"without\": " << id(difference.plain) << ", \"with\": " << id(difference.drafted)
      << ", \"margin\": " << decimal(difference.margin, 6) << ", \"top_two\": " << decimal(difference.top_two, 6)
      << ", \"reproduced\": " << (difference.reproduced ? "true" : "false") << "}";
}

void write(std::ostream& out, const Pair& pair) {
  out << "{\"id\": " << quote_json(pair.id) << ", \"category\": " << quote_json(pair.category) << ", \"verdict\": \""
      << name(pair.verdict()) << "\", \"speedup\": " << decimal(speedup(pair.plain, pair.drafted), 6) << ",\n    ";
  write(out, "without", pair.plain);
  out << ",\n    ";
  write(out, "with", pair.drafted);
  out << ",\n    \"context_full\": " << (pair.context_full ? "true" : "false") << ", \"difference\": ";
  if (pair.difference)
    write(out, *pair.difference);
  else
    out << "null";
  out << ", \"predicted\": ";
  if (pair.prediction)
    out << "{\"tokens\": " << decimal(pair.prediction->tokens, 0) << ", \"cost\": " << decimal(pair.prediction->cost, 6)
        << ", \"speedup\": " << decimal(pair.prediction->speedup(), 6) << "}";
  else
    out << "null";
  out << "}";
}

}  // namespace

void write_json(std::ostream& out, const CompareReport& report) {
  const EngineOptions& engine = report.engine.options();
  const Sampling& sampling = report.settings.sampling;
  out << "{\"version\": 1, \"model\": " << quote_json(report.engine.description())
      << ", \"threads\": " << engine.threads << ", \"context\": " << report.engine.context_size()
      << ", \"leaves\": " << report.settings.leaves << ", \"cost\": " << quote_json(report.cost)
      << ", \"cost_model\": " << (report.cost_model.empty() ? std::string("null") : quote_json(report.cost_model))
      << ", \"repeat\": " << report.repeat << ", \"epsilon\": " << decimal(report.epsilon, 6)
      << ", \"temperature\": " << decimal(sampling.temperature, 6) << ", \"seed\": " << sampling.seed
      << ",\n \"checked\": " << quote_json(what_is_checked(sampling, report.epsilon)) << ", \"verdict\": \""
      << name(report.verdict()) << "\",\n \"strategies\": [";
  const char* before = "\n";
  for (const StrategyPairs& strategy : report.strategies) {
    out << before << " {\"strategy\": " << quote_json(strategy.spec) << ", \"sessions\": [";
    before = ",\n";
    const char* between = "\n";
    for (const Pair& pair : strategy.pairs) {
      out << between << "   ";
      write(out, pair);
      between = ",\n";
    }
    out << "]}";
  }
  out << "]}\n";
}

}  // namespace reprise::llama
