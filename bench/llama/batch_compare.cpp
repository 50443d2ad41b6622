// SPDX-License-Identifier: Apache-2.0
#include "batch_compare.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "common/input_error.hpp"
#include "common/options.hpp"

namespace reprise::llama {
namespace {

/// The first part of `plain`, as long as a run that ended before its session did.
RequestRun cut_to(RequestRun plain, const BatchSession& session) {
  const std::vector<TurnRun>& turns = session.run.turns;
  plain.turns.resize(std::min(plain.turns.size(), turns.size()));
  if (plain.turns.size() == turns.size() && !turns.empty()) {
    std::vector<Token>& output = plain.turns.back().output;
    output.resize(std::min(output.size(), turns.back().output.size()));
  }
  return plain;
}

/// Compares all runs of one request with the request decoded alone.
class TextCheck {
 public:
  TextCheck(Engine& engine, const Request& request, const BatchCompareSettings& settings)
      : engine_(engine), request_(request), settings_(settings) {
    Drafting plain = no_drafting();
    plain_ = run_request(engine, request, plain, settings.batch.settings);
  }

  [[nodiscard]] const RequestRun& plain() const { return plain_; }

  void check(const BatchSession& session, BatchCheck& into) {
    const bool whole = session.done && session.gave_up.empty();
    const auto difference = judged(first_difference(whole ? plain_ : cut_to(plain_, session), session.run));
    if (difference && (!into.difference || difference->verdict > into.difference->verdict))
      into.difference = difference;
    into.compared = true;
  }

 private:
  using Place = std::tuple<std::size_t, std::size_t, std::optional<Token>>;

  std::optional<Difference> judged(const std::optional<Difference>& difference) {
    if (!difference) return {};
    const Place place{difference->turn, difference->position, difference->drafted};
    const auto known = judged_.find(place);
    if (known != judged_.end()) return known->second;
    return judged_[place] = *llama::judged(engine_, request_, settings_.batch.settings, settings_.epsilon, difference);
  }

  Engine& engine_;
  const Request& request_;
  const BatchCompareSettings& settings_;
  RequestRun plain_;
  std::map<Place, Difference> judged_;  // runs often differ at the same place
};

class Comparer {
 public:
  Comparer(Engine& engine, std::span<const Request> requests, const Drafting& drafting,
           const BatchCompareSettings& settings, tools::Progress& progress)
      : engine_(engine), requests_(requests), drafting_(drafting), settings_(settings), progress_(progress) {
    for (const std::size_t sequences : settings.sequences)
      for (const BatchRule& rule : settings.rules) {
        BatchOptions options;
        if (rule.kind == BatchRule::Kind::told) options.curve = settings.told->for_planner();
        options.max_rows = engine.options().batch;
        BatchLane& lane = lanes_.emplace_back();
        lane.sequences = sequences;
        lane.rule = rule;
        lane.checks.resize(requests.size());
        planners_.emplace_back(std::move(options));
      }
  }

  BatchComparison compare() {
    BatchComparison result;
    progress_.start("decoding", lanes_.size() * settings_.repeat, "run");
    warm_up(engine_, requests_.front(), settings_.batch.settings);
    result.partial = !run_all();
    progress_.start("comparing", requests_.size());
    for (std::size_t i = 0; i < requests_.size() && !result.partial; ++i) {
      result.alone.add(check(i));
      progress_.step();
      result.partial = i + 1 < requests_.size() && stopped();
    }
    progress_.clear();
    for (BatchLane& lane : lanes_)
      if (!lane.runs.empty()) result.lanes.push_back(std::move(lane));
    return result;
  }

 private:
  [[nodiscard]] bool stopped() const { return settings_.batch.stop && settings_.batch.stop(); }

  /// Returns false after an interrupt.
  bool run_all() {
    const std::size_t rules = settings_.rules.size();
    for (std::size_t first = 0; first < lanes_.size(); first += rules)
      for (std::size_t time = 0; time < settings_.repeat; ++time)
        for (std::size_t i = 0; i < rules; ++i) {
          const std::size_t lane = first + (time % 2 == 1 ? rules - 1 - i : i);
          if (stopped() || !run(lanes_[lane], planners_[lane])) return false;
          progress_.step();
        }
    return true;
  }
  bool run(BatchLane& lane, BatchPlanner& planner) {
    BatchSettings settings = settings_.batch;
    settings.sequences = lane.sequences;
    lane.runs.push_back(decode_batch(engine_, requests_, drafting_, lane.rule, planner, settings));
    return !lane.runs.back().stopped;
  }
  /// Decodes request i alone and compares all runs of it.
  RequestRun check(std::size_t i) {
    TextCheck text(engine_, requests_[i], settings_);
    for (BatchLane& lane : lanes_)
      for (const BatchRun& run : lane.runs) text.check(run.sessions[i], lane.checks[i]);
    return text.plain();
  }

  Engine& engine_;
  std::span<const Request> requests_;
  const Drafting& drafting_;
  const BatchCompareSettings& settings_;
  tools::Progress& progress_;
  std::vector<BatchLane> lanes_;
  std::deque<BatchPlanner> planners_;  // one for each lane
};

PassSums sum(const std::vector<BatchRun>& runs, PassSums BatchRun::*part) {
  PassSums all;
  for (const BatchRun& run : runs) all += run.*part;
  return all;
}

}  // namespace

PassSums BatchLane::all() const { return sum(runs, &BatchRun::all); }
PassSums BatchLane::decoding() const { return sum(runs, &BatchRun::decoding); }

double BatchLane::median(PassSums BatchRun::*part) const {
  std::vector<double> speeds;
  for (const BatchRun& run : runs) speeds.push_back((run.*part).tokens_per_second());
  std::sort(speeds.begin(), speeds.end());
  const std::size_t half = speeds.size() / 2;
  if (speeds.empty()) return 0;
  return speeds.size() % 2 == 1 ? speeds[half] : (speeds[half - 1] + speeds[half]) / 2;
}

std::size_t BatchLane::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(checks.begin(), checks.end(), [&](const BatchCheck& check) {
    return check.compared && check.verdict() == verdict;
  }));
}
std::size_t BatchLane::compared() const {
  return static_cast<std::size_t>(
      std::count_if(checks.begin(), checks.end(), [](const BatchCheck& check) { return check.compared; }));
}

Verdict BatchComparison::verdict() const {
  Verdict worst = Verdict::identical;
  for (const BatchLane& lane : lanes)
    for (const BatchCheck& check : lane.checks) worst = std::max(worst, check.verdict());
  return worst;
}

std::vector<BatchRule> batch_rules(std::span<const std::string> names, bool told) {
  using Kind = BatchRule::Kind;
  std::vector<BatchRule> rules;
  for (const std::string& name : names) {
    BatchRule rule;
    if (name == "told")
      rule.kind = Kind::told;
    else if (name == "learned")
      rule.kind = Kind::learned;
    else if (name != "plain")
      rule = {Kind::fixed, tools::read_whole("--rules", name, 1, 32, "plain, told, learned, or a whole number", name)};
    if (rule.kind == Kind::told && !told)
      throw tools::InputError("--rules told: needs a cost curve; give --cost linear:S or --cost FILE.json");
    for (const BatchRule& other : rules)
      if (other.name() == rule.name()) throw tools::InputError("--rules: " + name + " is given twice");
    rules.push_back(rule);
  }
  return rules;
}

BatchComparison compare_batches(Engine& engine, std::span<const Request> requests, const Drafting& drafting,
                                const BatchCompareSettings& settings, tools::Progress& progress) {
  if (requests.empty()) return {};
  return Comparer(engine, requests, drafting, settings, progress).compare();
}

}  // namespace reprise::llama
