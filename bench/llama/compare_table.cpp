// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "common/json.hpp"
#include "common/text.hpp"
#include "compare_report.hpp"

namespace reprise::llama {
namespace {

using tools::decimal;
using tools::left;
using tools::right;

constexpr std::size_t name_width = 18;

std::string percent(double share) { return decimal(100 * share, 2) + "%"; }

void heading(std::ostream& out, bool predicted) {
  out << left("", name_width) << right("", 9) << right("", 8) << right("tokens/s", 16) << right("", 9)
      << (predicted ? right("pre-", 9) : "") << right("", 7) << right("accept", 8) << right("drafted", 9)
      << right("outside llama_decode", 22) << right("prefill seconds", 17) << right("identi-", 9) << right("near", 6)
      << "\n"
      << left("", name_width) << right("sessions", 9) << right("tokens", 8) << right("without", 9) << right("with", 7)
      << right("speedup", 9) << (predicted ? right("dicted", 9) : "") << right("MAT", 7) << right("rate", 8)
      << right("/pass", 9) << right("without", 13) << right("with", 9) << right("without", 10) << right("with", 7)
      << right("cal", 9) << right("ties", 6) << right("wrong", 7) << "\n";
}

void line(std::ostream& out, const std::string& name, const Summary& sum, bool predicted) {
  const Statistics& drafted = sum.drafted.statistics;
  out << left(name, name_width) << right(std::to_string(sum.sessions), 9)
      << right(std::to_string(sum.drafted.tokens), 8) << right(decimal(sum.plain.tokens_per_second(), 1), 9)
      << right(decimal(sum.drafted.tokens_per_second(), 1), 7) << right(decimal(speedup(sum.plain, sum.drafted), 3), 9);
  if (predicted) out << right(sum.prediction ? decimal(sum.prediction->speedup(), 3) : "-", 9);
  out << right(decimal(drafted.mean_accepted_tokens(), 3), 7) << right(decimal(drafted.acceptance_rate(), 3), 8)
      << right(decimal(drafted.drafted_per_pass(), 2), 9) << right(percent(sum.plain.share_outside()), 13)
      << right(percent(sum.drafted.share_outside()), 9) << right(decimal(seconds(sum.plain.prefill), 2), 10)
      << right(decimal(seconds(sum.drafted.prefill), 2), 7) << right(std::to_string(sum.identical), 9)
      << right(std::to_string(sum.near_ties), 6) << right(std::to_string(sum.wrong), 7) << "\n";
}

/// The sums of each category, in the order in which they first occur, and of all.
std::vector<std::pair<std::string, Summary>> summaries(const StrategyPairs& strategy) {
  std::vector<std::pair<std::string, Summary>> sums;
  Summary all;
  for (const Pair& pair : strategy.pairs) {
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& other) { return other.first == pair.category; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {pair.category, {}});
    sum->second.add(pair);
    all.add(pair);
  }
  if (sums.size() != 1) sums.emplace_back("all", all);
  return sums;
}

std::string token(const Engine& engine, std::optional<Token> token) {
  if (!token) return "nothing";
  return tools::quote_json(engine.text({&*token, 1})) + " (" + std::to_string(*token) + ")";
}

void differences(std::ostream& out, const StrategyPairs& strategy, const Engine& engine) {
  for (const Pair& pair : strategy.pairs) {
    if (pair.context_full) out << "  " << pair.id << ": ended early, the context was full\n";
    if (!pair.difference) continue;
    const Difference& d = *pair.difference;
    out << "  " << name(d.verdict) << ": " << pair.id << ", turn " << d.turn + 1 << ", token " << d.position + 1
        << ": without " << token(engine, d.plain) << ", with " << token(engine, d.drafted) << "; margin "
        << decimal(d.margin, 5) << ", of the top two " << decimal(d.top_two, 5)
        << (d.reproduced ? "" : "; plain decoding did not repeat itself") << "\n";
  }
}

}  // namespace

Verdict CompareReport::verdict() const {
  Verdict worst = Verdict::identical;
  for (const StrategyPairs& strategy : strategies)
    for (const Pair& pair : strategy.pairs) worst = std::max(worst, pair.verdict());
  return worst;
}

void write_table(std::ostream& out, const CompareReport& report) {
  const bool predicted = !report.cost_model.empty();
  const EngineOptions& engine = report.engine.options();
  out << report.engine.description() << ", " << engine.threads << (engine.threads == 1 ? " thread" : " threads")
      << ", context " << report.engine.context_size() << ", cost " << report.cost << ", up to "
      << report.settings.leaves << (report.settings.leaves == 1 ? " path" : " paths") << ", every session "
      << (report.repeat == 1 ? std::string("once") : std::to_string(report.repeat) + " times") << "\n";
  for (const StrategyPairs& strategy : report.strategies) {
    out << "\n" << strategy.spec << "\n";
    heading(out, predicted);
    for (const auto& [name, sum] : summaries(strategy)) line(out, name, sum, predicted);
    differences(out, strategy, report.engine);
  }
  out << "\ntokens/s, speedup: decoding alone, what strategies read of prompts included; prefill beside it. speedup: "
         "time per token without\n  over time per token with drafting. tokens: those with drafting, all repetitions.\n";
  if (predicted)
    out << "predicted: tokens / summed cost of the passes, when the tokens generated without drafting are replayed "
           "under\n  "
        << report.cost_model << "; time outside llama_decode is not in it\n";
  out << "compared: " << what_is_checked(report.settings.sampling, report.epsilon) << "\n"
      << "verdict: " << name(report.verdict())
      << (report.verdict() == Verdict::near_tie ? ": some texts differ; not lossless as run here" : "") << "\n";
}

}  // namespace reprise::llama
