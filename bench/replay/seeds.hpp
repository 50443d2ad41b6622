// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "curve_log.hpp"
#include "replay.hpp"
#include "run.hpp"

namespace reprise::replay {

/// The result of one seed. Ratios are speedups relative to told: the same replay by a control that receives the curve.
struct SeedRun {
  std::uint64_t seed = 0;
  double speedup = 1;
  double ratio = 1;
  double last_quarter = 1;  ///< the ratio over the last quarter of the tokens
  double long_ratio = 0;    ///< the ratio of the sessions of 1,000 tokens or more; 0: there are none
  double short_ratio = 0;   ///< the ratio of the other sessions; 0: there are none
  /// The learned curve over the passes; with CostKnown::learned, of the session with the most tokens.
  std::vector<CurvePoint> curve;

  /// A run below this ratio in its last quarter still pays for a wrong curve.
  static constexpr double weak_below = 0.97;
  static constexpr std::uint64_t long_tokens = 1000;
  [[nodiscard]] bool weak() const { return last_quarter < weak_below; }
};

/// All seeds of one trace, category, strategy, control and curve.
struct SeedRow {
  std::string trace;
  /// "all", or the name of a category. The last quarter, long sessions and curves are recorded for "all" only.
  std::string category;
  std::string strategy;
  ControlSpec control;
  std::size_t curve = 0;  ///< index of the curve
  Counts told;            ///< the counts of told
  RowCounts told_rows;    ///< its passes by their rows
  Kept kept = Kept::session;
  std::vector<SeedRun> runs;  ///< by ascending seed, at least one

  [[nodiscard]] double told_speedup() const;
  /// The arithmetic mean and the minimum of a value of the runs.
  [[nodiscard]] double mean(double SeedRun::*value = &SeedRun::ratio) const;
  [[nodiscard]] double lowest(double SeedRun::*value) const;
  /// The run with the lowest ratio; the first of several.
  [[nodiscard]] const SeedRun& worst() const;
  [[nodiscard]] std::vector<std::uint64_t> weak_seeds() const;
};

/// Replays each trace, strategy, control and curve once with the curve told, and then with `seeds` seeds of the
/// simulated times, from settings.seed on. settings.cost_known says how the curve is learned. Runs are independent, so
/// `threads` of them run in parallel; results do not depend on it. Rows come in the order of replay_all().
///
/// Throws InputError where replay_all() does, and for a control that does not weigh costs.
std::vector<SeedRow> replay_seeds(const Assignment& assignment, std::size_t seeds, tools::Progress& progress);

/// Sums the cost of the passes of a stream, and the cost of its last quarter by tokens. The cost of a pass across the
/// border is divided in proportion to its tokens.
class StreamCost {
 public:
  /// `tokens`: the tokens of the whole stream.
  explicit StreamCost(std::uint64_t tokens) : border_(tokens - tokens / 4) {}

  void add(double cost, std::size_t committed);
  [[nodiscard]] double last_quarter() const { return last_quarter_; }

 private:
  std::uint64_t border_;
  std::uint64_t tokens_ = 0;
  double last_quarter_ = 0;
};

}  // namespace reprise::replay
