// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/progress.hpp"
#include "generate.hpp"
#include "predict.hpp"
#include "verdict.hpp"

namespace reprise::llama {

inline double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// Times and counts, summed over runs of sessions.
struct Sums {
  std::size_t turns = 0;
  std::size_t tokens = 0;  ///< generated tokens, including those that ended turns
  std::chrono::nanoseconds prefill{};
  std::chrono::nanoseconds decoding{};
  std::chrono::nanoseconds model{};  ///< the part of `decoding` spent in llama_decode
  Statistics statistics;
  double cost = 0;  ///< of the passes under the given curve; 0 if there is none

  void add(const RequestRun& run);
  Sums& operator+=(const Sums& other);
  [[nodiscard]] double tokens_per_second() const;
  /// The share of the decoding time outside llama_decode: strategy, control, loop, adapter, sampler.
  [[nodiscard]] double share_outside() const;
  /// The tokens per unit of cost. Plain decoding has 1 under every curve. Empty without a given curve.
  [[nodiscard]] std::optional<double> speedup_under_cost() const;
};

/// One session with and without a strategy, summed over all repetitions.
struct Pair {
  std::string id;
  std::string category;
  Sums plain;
  Sums drafted;
  std::optional<Difference> difference;  ///< the worst of all repetitions
  std::optional<Prediction> prediction;
  bool context_full = false;  ///< the session ended before its last turn
  bool repeated = false;      ///< the request was run before, see Request::repeated

  [[nodiscard]] Verdict verdict() const { return difference ? difference->verdict : Verdict::identical; }
};

/// The time per token without drafting divided by the time per token with it. If the texts are identical, this is the
/// ratio of the total times.
double speedup(const Sums& plain, const Sums& drafted);

/// Sums over several sessions.
struct Summary {
  std::size_t sessions = 0;
  std::size_t identical = 0;
  std::size_t near_ties = 0;
  std::size_t wrong = 0;
  Sums plain;
  Sums drafted;
  std::optional<Prediction> prediction;

  void add(const Pair& pair);
};

struct StrategyPairs {
  std::string spec;
  std::vector<Pair> pairs;

  /// The sums of all sessions except repeated ones.
  [[nodiscard]] Summary total() const;
  /// The sums of each category, in order of first occurrence. Repeated sessions are a category of their own.
  [[nodiscard]] std::vector<std::pair<std::string, Summary>> by_category() const;
};

struct CompareSettings {
  Settings settings;
  std::size_t repeat = 1;
  double epsilon = 0.05;
  std::optional<PredictionSettings> prediction = {};  ///< empty: no prediction
};

/// Runs each session once with each strategy, so that the strategies' memories hold it. Nothing is measured.
void fill_memories(Engine& engine, const std::vector<Request>& requests, std::vector<Drafting>& draftings,
                   const Settings& settings, tools::Progress& progress);

/// Judges a difference from plain decoding: decodes up to it again without drafting, and applies judge() to the logits.
/// A difference in length stays as it is, that is, wrong.
std::optional<Difference> judged(Engine& engine, const Request& request, const Settings& settings, double epsilon,
                                 std::optional<Difference> difference);

/// Generates a few tokens without drafting, so that no timed run pays for the first use of memory.
void warm_up(Engine& engine, const Request& request, const Settings& settings);

/// Runs each session `repeat` times, in turn without drafting and with each strategy; every second time in reverse
/// order. Generates a few tokens first, so that no run pays for the first use of memory. Judges differences afterwards,
/// in separate runs that are not timed.
std::vector<StrategyPairs> compare(Engine& engine, const std::vector<Request>& requests,
                                   std::vector<Drafting>& draftings, const CompareSettings& settings,
                                   tools::Progress& progress);

}  // namespace reprise::llama
