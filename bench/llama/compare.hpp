// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "generate.hpp"
#include "predict.hpp"
#include "verdict.hpp"

namespace reprise::llama {

inline double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

/// What runs of sessions took and counted.
struct Sums {
  std::size_t turns = 0;
  std::size_t tokens = 0;  ///< generated, what ended the turns included
  std::chrono::nanoseconds prefill{};
  std::chrono::nanoseconds decoding{};
  std::chrono::nanoseconds model{};  ///< of the decoding, in llama_decode
  Statistics statistics;

  void add(const RequestRun& run);
  Sums& operator+=(const Sums& other);
  [[nodiscard]] double tokens_per_second() const;
  /// Share of the decoding outside llama_decode: strategy, control, loop, adapter, sampler.
  [[nodiscard]] double share_outside() const;
};

/// One session with and without a strategy, all repetitions together.
struct Pair {
  std::string id;
  std::string category;
  Sums plain;
  Sums drafted;
  std::optional<Difference> difference;  ///< the worst of the repetitions'
  std::optional<Prediction> prediction;
  bool context_full = false;  ///< it ended before its last turn

  [[nodiscard]] Verdict verdict() const { return difference ? difference->verdict : Verdict::identical; }
};

/// How much faster: time per token without drafting over time per token with it. Where the texts are identical, the
/// ratio of the summed times.
double speedup(const Sums& plain, const Sums& drafted);

/// Several sessions together.
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
};

struct CompareSettings {
  Settings settings;
  std::size_t repeat = 1;
  double epsilon = 0.05;
  std::optional<PredictionSettings> prediction = {};  ///< none: nothing is predicted
};

/// Runs each session without drafting and with each strategy, one after the other, `repeat` times; every other time in
/// the reverse order. A few tokens are generated before, so that nobody pays for the first use of memory. Differences
/// are judged afterwards, in runs of their own that nobody times.
std::vector<StrategyPairs> compare(Engine& engine, const std::vector<Request>& requests,
                                   std::vector<Drafting>& draftings, const CompareSettings& settings,
                                   tools::Progress& progress);

}  // namespace reprise::llama
