// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "common/json_writer.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "compare_report.hpp"

namespace reprise::llama {
namespace {

using tools::Cell;
using tools::decimal;
using tools::printable;

std::string percent(double share) { return decimal(100 * share, 2) + "%"; }

/// Sums of categories, one line each. The column of predictions appears only if there are some.
class SummaryTable {
 public:
  SummaryTable(std::ostream& out, bool predicted) : predicted_(predicted), table_(out, columns(predicted)) {
    line({"", "", "", {"tokens/s", 2}, ""}, "pre-",
         {"", "accept", "drafted", {"outside llama_decode", 2}, {"prefill seconds", 2}, "identi-", "near"});
    line({"", "sessions", "tokens", "without", "with", "speedup"}, "dicted",
         {"MAT", "rate", "/pass", "without", "with", "without", "with", "cal", "ties", "wrong"});
  }

  void line(const std::string& name, const Summary& sum) const {
    const Statistics& drafted = sum.drafted.statistics;
    line({name, std::to_string(sum.sessions), std::to_string(sum.drafted.tokens),
          decimal(sum.plain.tokens_per_second(), 1), decimal(sum.drafted.tokens_per_second(), 1),
          decimal(speedup(sum.plain, sum.drafted), 3)},
         sum.prediction ? decimal(sum.prediction->speedup(), 3) : "-",
         {decimal(drafted.mean_accepted_tokens(), 3), decimal(drafted.acceptance_rate(), 3),
          decimal(drafted.drafted_per_pass(), 2), percent(sum.plain.share_outside()),
          percent(sum.drafted.share_outside()), decimal(seconds(sum.plain.prefill), 2),
          decimal(seconds(sum.drafted.prefill), 2), std::to_string(sum.identical), std::to_string(sum.near_ties),
          std::to_string(sum.wrong)});
  }

 private:
  static std::vector<tools::Column> columns(bool predicted) {
    std::vector<tools::Column> columns = {{18, tools::Align::left}, {9}, {8}, {9}, {7}, {9}};
    if (predicted) columns.push_back({9});
    for (const unsigned width : {7U, 8U, 9U, 13U, 9U, 10U, 7U, 9U, 6U, 7U}) columns.push_back({width});
    return columns;
  }
  void line(std::vector<Cell> cells, const std::string& prediction, const std::vector<Cell>& more) const {
    if (predicted_) cells.emplace_back(prediction);
    cells.insert(cells.end(), more.begin(), more.end());
    table_.line(cells);
  }

  bool predicted_;
  tools::Table table_;
};

/// The sums of each category, in order of first occurrence, then the total.
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
  return printable(tools::quote_json(engine.text({&*token, 1}))) + " (" + std::to_string(*token) + ")";
}

void differences(std::ostream& out, const StrategyPairs& strategy, const Engine& engine) {
  for (const Pair& pair : strategy.pairs) {
    if (pair.context_full) out << "  " << printable(pair.id) << ": ended early, the context was full\n";
    if (!pair.difference) continue;
    const Difference& d = *pair.difference;
    out << "  " << name(d.verdict) << ": " << printable(pair.id) << ", turn " << d.turn + 1 << ", token "
        << d.position + 1 << ": without " << token(engine, d.plain) << ", with " << token(engine, d.drafted)
        << "; margin " << decimal(d.margin, 5) << ", of the top two " << decimal(d.top_two, 5)
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
  out << printable(report.engine.description()) << ", " << engine.threads
      << (engine.threads == 1 ? " thread" : " threads") << ", context " << report.engine.context_size() << ", cost "
      << printable(report.cost) << ", up to " << report.settings.leaves
      << (report.settings.leaves == 1 ? " path" : " paths") << ", every session "
      << (report.repeat == 1 ? std::string("once") : std::to_string(report.repeat) + " times") << "\n";
  for (const StrategyPairs& strategy : report.strategies) {
    out << "\n" << printable(strategy.spec) << "\n";
    const SummaryTable table(out, predicted);
    for (const auto& [name, sum] : summaries(strategy)) table.line(name, sum);
    differences(out, strategy, report.engine);
  }
  out << "\ntokens/s, speedup: decoding only, with the strategies' reading of prompts, without prefill. speedup: "
         "time per token without\n  over time per token with drafting. tokens: those with drafting, all repetitions.\n";
  if (predicted)
    out << "predicted: tokens / summed cost of the passes, for a replay of the tokens generated without drafting "
           "under\n  "
        << printable(report.cost_model) << "; without the time outside llama_decode\n";
  out << "compared: " << what_is_checked(report.settings.sampling, report.epsilon) << "\n"
      << "verdict: " << name(report.verdict())
      << (report.verdict() == Verdict::near_tie ? ": some texts differ; not lossless as run here" : "") << "\n";
}

}  // namespace reprise::llama
