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

/// Sums of categories, one line each. The columns of predictions and of the given curve appear only if there are some.
class SummaryTable {
 public:
  SummaryTable(std::ostream& out, bool predicted, bool charged)
      : predicted_(predicted), charged_(charged), table_(out, columns(predicted, charged)) {
    line({"", "", "", {"tokens/s", 2}, ""}, "pre-", "under",
         {"", "accept", "drafted", {"outside llama_decode", 2}, {"prefill seconds", 2}, "identi-", "near"});
    line({"", "sessions", "tokens", "without", "with", "speedup"}, "dicted", "--cost",
         {"MAT", "rate", "/pass", "without", "with", "without", "with", "cal", "ties", "wrong"});
  }

  void line(const std::string& name, const Summary& sum) const {
    const Statistics& drafted = sum.drafted.statistics;
    line({name, std::to_string(sum.sessions), std::to_string(sum.drafted.tokens),
          decimal(sum.plain.tokens_per_second(), 1), decimal(sum.drafted.tokens_per_second(), 1),
          decimal(speedup(sum.plain, sum.drafted), 3)},
         sum.prediction ? decimal(sum.prediction->speedup(), 3) : "-",
         decimal(sum.drafted.speedup_under_cost().value_or(1), 3),
         {decimal(drafted.mean_accepted_tokens(), 3), decimal(drafted.acceptance_rate(), 3),
          decimal(drafted.drafted_per_pass(), 2), percent(sum.plain.share_outside()),
          percent(sum.drafted.share_outside()), decimal(seconds(sum.plain.prefill), 2),
          decimal(seconds(sum.drafted.prefill), 2), std::to_string(sum.identical), std::to_string(sum.near_ties),
          std::to_string(sum.wrong)});
  }

 private:
  static std::vector<tools::Column> columns(bool predicted, bool charged) {
    std::vector<tools::Column> columns = {{18, tools::Align::left}, {9}, {8}, {9}, {7}, {9}};
    if (predicted) columns.push_back({9});
    if (charged) columns.push_back({8});
    for (const unsigned width : {7U, 8U, 9U, 13U, 9U, 10U, 7U, 9U, 6U, 7U}) columns.push_back({width});
    return columns;
  }
  void line(std::vector<Cell> cells, const std::string& prediction, const std::string& charge,
            const std::vector<Cell>& more) const {
    if (predicted_) cells.emplace_back(prediction);
    if (charged_) cells.emplace_back(charge);
    cells.insert(cells.end(), more.begin(), more.end());
    table_.line(cells);
  }

  bool predicted_;
  bool charged_;
  tools::Table table_;
};

/// The sums of each category, in order of first occurrence, then the total.
std::vector<std::pair<std::string, Summary>> summaries(const StrategyPairs& strategy) {
  auto sums = strategy.by_category();
  if (sums.size() != 1) sums.emplace_back("all", strategy.total());
  return sums;
}

void differences(std::ostream& out, const StrategyPairs& strategy, const Engine& engine) {
  for (const Pair& pair : strategy.pairs) {
    if (pair.context_full) out << "  " << printable(pair.id) << ": ended early, the context was full\n";
    if (!pair.difference) continue;
    write_difference(out, pair.id, *pair.difference, engine);
  }
}

std::string filled(std::size_t sessions) {
  if (sessions == 0) return "";
  return " (filled with " + std::to_string(sessions) + (sessions == 1 ? " session)" : " sessions)");
}

bool repeats(const CompareReport& report) {
  for (const StrategyPairs& strategy : report.strategies)
    if (std::any_of(strategy.pairs.begin(), strategy.pairs.end(), [](const Pair& pair) { return pair.repeated; }))
      return true;
  return false;
}

}  // namespace

void write_difference(std::ostream& out, const std::string& id, const Difference& d, const Engine& engine) {
  const auto token = [&](const std::optional<Token>& id_of_token) {
    if (!id_of_token) return std::string("nothing");
    return printable(tools::quote_json(engine.text({&*id_of_token, 1}))) + " (" + std::to_string(*id_of_token) + ")";
  };
  out << "  " << name(d.verdict) << ": " << printable(id) << ", turn " << d.turn + 1 << ", token " << d.position + 1
      << ": without " << token(d.plain) << ", with " << token(d.drafted) << "; margin " << decimal(d.margin, 5)
      << ", of the top two " << decimal(d.top_two, 5) << (d.reproduced ? "" : "; plain decoding did not repeat itself")
      << "\n";
}

Verdict CompareReport::verdict() const {
  Verdict worst = Verdict::identical;
  for (const StrategyPairs& strategy : strategies)
    for (const Pair& pair : strategy.pairs) worst = std::max(worst, pair.verdict());
  return worst;
}

std::string CompareReport::checked() const {
  if (settings.picks == PickSource::target) return what_is_checked(settings.sampling, epsilon);
  return "the recorded tokens count as the model's picks, so the texts are the same; this says nothing about lossless "
         "decoding";
}

void write_table(std::ostream& out, const CompareReport& report) {
  const bool predicted = !report.cost_model.empty();
  const bool charged = report.settings.charged != nullptr;
  const EngineOptions& engine = report.engine.options();
  out << printable(report.engine.description()) << ", " << engine.threads
      << (engine.threads == 1 ? " thread" : " threads") << ", context " << report.engine.context_size() << ", cost "
      << printable(report.cost) << ", up to " << report.settings.leaves
      << (report.settings.leaves == 1 ? " path" : " paths") << ", memory " << replay::name(report.kept)
      << filled(report.filled_with) << ", picks " << name(report.settings.picks) << ", every session "
      << (report.repeat == 1 ? std::string("once") : std::to_string(report.repeat) + " times") << "\n";
  for (const StrategyPairs& strategy : report.strategies) {
    out << "\n" << printable(strategy.spec) << "\n";
    const SummaryTable table(out, predicted, charged);
    for (const auto& [name, sum] : summaries(strategy)) table.line(name, sum);
    differences(out, strategy, report.engine);
  }
  out << "\ntokens/s, speedup: decoding only, with the strategies' reading of prompts, without prefill. speedup: "
         "time per token without\n  over time per token with drafting. tokens: those with drafting, all repetitions.\n";
  if (repeats(report)) out << "repeated: sessions above, asked once more at the end; not in 'all'\n";
  if (charged)
    out << "under --cost: tokens / summed cost of the passes under " << printable(report.cost)
        << ", whatever the time of the passes\n";
  if (predicted)
    out << "predicted: tokens / summed cost of the passes, for a replay of the tokens generated without drafting "
           "under\n  "
        << printable(report.cost_model) << "; without the time outside llama_decode\n";
  out << "compared: " << report.checked() << "\n"
      << "verdict: " << name(report.verdict())
      << (report.verdict() == Verdict::near_tie ? ": some texts differ; not lossless as run here" : "") << "\n";
}

}  // namespace reprise::llama
