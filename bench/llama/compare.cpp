// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include <algorithm>
#include <utility>

namespace reprise::llama {
namespace {

/// A session with all its runs.
class SessionComparison {
 public:
  SessionComparison(Engine& engine, const Request& request, std::vector<Drafting>& draftings,
                    const CompareSettings& settings)
      : engine_(engine), request_(request), settings_(settings) {
    lanes_.push_back({&plain_, {}, {}});
    for (Drafting& drafting : draftings) lanes_.push_back({&drafting, {}, {}});
  }

  /// Runs plain decoding and every strategy once.
  void run(bool reversed) {
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = lanes_[reversed ? lanes_.size() - 1 - i : i];
      lane.runs.push_back(run_request(engine_, request_, *lane.drafting, settings_.settings));
      lane.sums.add(lane.runs.back());
    }
  }

  [[nodiscard]] const RequestRun& plain() const { return lanes_.front().runs.front(); }
  /// The result for one strategy.
  Pair pair(std::size_t strategy) {
    const Lane& lane = lanes_[1 + strategy];
    Pair pair{request_.id, request_.category, lanes_.front().sums, lane.sums, {}, {}, false, request_.repeated};
    for (const RequestRun& run : lane.runs) {
      pair.context_full = pair.context_full || run.context_full;
      const std::optional<Difference> difference =
          judged(engine_, request_, settings_.settings, settings_.epsilon, first_difference(plain(), run));
      if (difference && (!pair.difference || difference->verdict > pair.difference->verdict))
        pair.difference = difference;
    }
    return pair;
  }

 private:
  struct Lane {
    Drafting* drafting;
    std::vector<RequestRun> runs;
    Sums sums;
  };

  Engine& engine_;
  const Request& request_;
  const CompareSettings& settings_;
  Drafting plain_ = no_drafting();
  std::vector<Lane> lanes_;  // plain decoding first
};

}  // namespace

void warm_up(Engine& engine, const Request& request, const Settings& settings) {
  Request few = request;
  few.turns.resize(1);
  few.turns.front().max_tokens = 8;
  Drafting plain = no_drafting();
  static_cast<void>(run_request(engine, few, plain, settings));
}

std::optional<Difference> judged(Engine& engine, const Request& request, const Settings& settings, double epsilon,
                                 std::optional<Difference> difference) {
  if (!difference || !difference->plain || !difference->drafted) return difference;
  Request again = request;
  again.turns.resize(difference->turn + 1);
  again.turns.back().max_tokens = difference->position + 1;
  Probe probe;
  probe.turn = difference->turn;
  probe.position = difference->position;
  Watch watch;
  watch.probe = &probe;
  Drafting plain = no_drafting();
  const RequestRun run = run_request(engine, again, plain, settings, watch);
  const bool there = run.turns.size() == again.turns.size() && run.turns.back().output.size() > probe.position;
  difference->reproduced = there && run.turns.back().output[probe.position] == *difference->plain;
  judge(*difference, probe, epsilon);
  return difference;
}

void Sums::add(const RequestRun& run) {
  for (const TurnRun& turn : run.turns)
    *this += {1, turn.output.size(), turn.prefill, turn.decoding, turn.model, turn.statistics, turn.cost};
}

Sums& Sums::operator+=(const Sums& other) {
  turns += other.turns;
  tokens += other.tokens;
  prefill += other.prefill;
  decoding += other.decoding;
  model += other.model;
  statistics += other.statistics;
  cost += other.cost;
  return *this;
}

double Sums::tokens_per_second() const {
  return decoding.count() == 0 ? 0 : static_cast<double>(tokens) / seconds(decoding);
}

double Sums::share_outside() const { return decoding.count() == 0 ? 0 : 1 - seconds(model) / seconds(decoding); }

std::optional<double> Sums::speedup_under_cost() const {
  if (cost == 0) return {};
  return static_cast<double>(statistics.tokens) / cost;
}

double speedup(const Sums& plain, const Sums& drafted) {
  const double before = plain.tokens_per_second();
  return before > 0 ? drafted.tokens_per_second() / before : 1;
}

void Summary::add(const Pair& pair) {
  ++sessions;
  ++(pair.verdict() == Verdict::identical ? identical : pair.verdict() == Verdict::near_tie ? near_ties : wrong);
  plain += pair.plain;
  drafted += pair.drafted;
  if (!pair.prediction) return;
  if (!prediction) prediction.emplace();
  *prediction += *pair.prediction;
}

Summary StrategyPairs::total() const {
  Summary sum;
  for (const Pair& pair : pairs)
    if (!pair.repeated) sum.add(pair);
  return sum;
}

std::vector<std::pair<std::string, Summary>> StrategyPairs::by_category() const {
  std::vector<std::pair<std::string, Summary>> sums;
  for (const Pair& pair : pairs) {
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const auto& other) { return other.first == pair.category; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {pair.category, {}});
    sum->second.add(pair);
  }
  return sums;
}

void fill_memories(Engine& engine, const std::vector<Request>& requests, std::vector<Drafting>& draftings,
                   const Settings& settings, tools::Progress& progress) {
  progress.start("filling memories", requests.size());
  for (const Request& request : requests) {
    for (Drafting& drafting : draftings)
      if (drafting.past) static_cast<void>(run_request(engine, request, drafting, settings));
    progress.step();
  }
  progress.clear();
}

std::vector<StrategyPairs> compare(Engine& engine, const std::vector<Request>& requests,
                                   std::vector<Drafting>& draftings, const CompareSettings& settings,
                                   tools::Progress& progress) {
  std::vector<StrategyPairs> results;
  std::vector<Predictor> predictors;
  for (const Drafting& drafting : draftings) {
    results.push_back({drafting.spec, {}});
    if (settings.prediction) predictors.emplace_back(drafting, *settings.prediction);
  }
  if (requests.empty()) return results;
  progress.start("comparing", requests.size());
  warm_up(engine, requests.front(), settings.settings);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SessionComparison session(engine, requests[i], draftings, settings);
    for (std::size_t time = 0; time < settings.repeat; ++time) session.run((i + time) % 2 == 1);
    for (std::size_t j = 0; j < draftings.size(); ++j) {
      results[j].pairs.push_back(session.pair(j));
      if (settings.prediction) results[j].pairs.back().prediction = predictors[j].predict(requests[i], session.plain());
    }
    progress.step();
  }
  progress.clear();
  return results;
}

}  // namespace reprise::llama
