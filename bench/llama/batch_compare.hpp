// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch_decode.hpp"
#include "common/progress.hpp"
#include "compare.hpp"
#include "replay/cost_curve.hpp"
#include "verdict.hpp"

namespace reprise::llama {

/// A session of a batched run, compared with the same session decoded alone, without drafting.
struct BatchCheck {
  std::optional<Difference> difference;  ///< the worst of all repetitions
  bool compared = false;                 ///< false: an interrupt came first

  [[nodiscard]] Verdict verdict() const { return difference ? difference->verdict : Verdict::identical; }
};

/// All runs of one rule with one number of sequences.
struct BatchLane {
  std::size_t sequences = 0;
  BatchRule rule;
  std::vector<BatchRun> runs;      ///< one for each repetition
  std::vector<BatchCheck> checks;  ///< one for each request

  /// Sums over all runs.
  [[nodiscard]] PassSums all() const;
  [[nodiscard]] PassSums decoding() const;
  /// The medians over the runs; 0 without runs.
  [[nodiscard]] double tokens_per_second() const { return median(&BatchRun::all); }
  [[nodiscard]] double tokens_per_second_without_prompts() const { return median(&BatchRun::decoding); }
  [[nodiscard]] std::size_t count(Verdict verdict) const;
  [[nodiscard]] std::size_t compared() const;

 private:
  [[nodiscard]] double median(PassSums BatchRun::*part) const;
};

struct BatchCompareSettings {
  std::vector<std::size_t> sequences;  ///< most sequences at once; one lane of each rule for each number
  std::vector<BatchRule> rules;
  const replay::CostCurve* told = nullptr;  ///< the curve of the rule `told`
  BatchSettings batch;                      ///< `sequences` is taken from above; `stop` ends all runs
  std::size_t repeat = 1;
  double epsilon = 0.05;
};

struct BatchComparison {
  std::vector<BatchLane> lanes;  ///< those that ran, at least in part
  Sums alone;                    ///< the compared sessions decoded alone
  bool partial = false;          ///< an interrupt left something out

  /// The worst verdict of all compared sessions.
  [[nodiscard]] Verdict verdict() const;
};

/// The rules named in `names`: plain, told, learned, and numbers of drafted tokens. Throws InputError for other names,
/// for a name that is given twice, and for `told` without a curve.
std::vector<BatchRule> batch_rules(std::span<const std::string> names, bool told);

/// Runs all requests with each rule and each number of sequences, `repeat` times; every second time in reverse order.
/// Then decodes each request alone and compares the texts. Planners keep their learned costs from repetition to
/// repetition.
BatchComparison compare_batches(Engine& engine, std::span<const Request> requests, const Drafting& drafting,
                                const BatchCompareSettings& settings, tools::Progress& progress);

}  // namespace reprise::llama
