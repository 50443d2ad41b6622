// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/timed_passes.hpp"
#include "reprise/evidence/isotonic.hpp"

namespace reprise::inline v0 {

/// The cost curve of one engine, learned from the times of its passes. CostControl learns it from passes of one
/// sequence; BatchPlanner keeps one curve for each range of batch sizes.
///
/// Learning: the curve tracks the time of a plain pass, which drifts as the context grows. It tracks the cost of each
/// row count as a ratio to the plain time. While the first plain times are averaged, the ratios are adjusted to each
/// new average.
///
///  * The first time of a row count is trusted if it is close to the expected time. Otherwise the second time is
///    trusted if it is close to the first. Otherwise the median of three times is trusted.
///  * Each later time moves the ratio by its relative error, divided by the number of samples (at most 64). The error
///    is clamped to three usual deviations. One pass in a hundred may therefore take ten times as long without harm.
///  * After a long stretch without a plain pass, the errors of well-known ratios correct the plain time.
///
/// Reading: pooling adjacent violators, weighted by the number of samples, makes the ratios non-decreasing in the rows.
/// This removes most of the noise and keeps steps sharp. Where the true cost falls, the learned curve is flat.
///
/// After a known row count, the curve continues with its mean slope over the upper half of the rows up to that count.
/// The mean includes four rows of a prior slope: CostCurve::default_per_row before the first time, 0.015 afterwards.
/// The curve stays at or below the straight line to the next known row count. The estimate is low on purpose, so that
/// lengths that were never sent are tried.
///
/// Exploring: a ratio can be outdated, or too high because of one slow pass. optimistic_cost() returns the lowest
/// plausible cost of such a row count, and may_explore() decides whether a try is due. Tries are expected to cost at
/// most 1/256 of all passes.
///
/// The curve uses integers only, takes 3 kB and never allocates. learn() takes about ten operations, or a hundred times
/// as many if it refits the curve. At first every learned time leads to a refit; later, every eighth does. Threads: one
/// at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = 64;

  LearnedCurve() noexcept { refit(); }

  /// Learns from a pass of `rows` rows. Without a time above 0, it only records that the time is missing. It learns no
  /// cost from 0 rows or from more than most_rows. `plain`: the pass carried no draft. From such a pass it learns the
  /// plain time: the measured time divided by the cost of the rows, because several rows can be pending.
  void learn(std::size_t rows, bool plain, std::optional<std::chrono::nanoseconds> measured) noexcept {
    const bool timed = measured && measured->count() > 0;
    budget_.begin_pass(plain, timed);
    if (!timed || rows == 0 || rows > most_rows) return;
    const std::uint64_t took = nanoseconds(*measured);
    budget_.count_pass();
    if (plain) {
      learn_plain(std::max<std::uint64_t>(1, UnitScale::divide(took, cost(rows))));
    } else if (plain_.known()) {
      if (plain_.refuted_by(took)) return forget();
      if (uncertain(rows)) budget_.spend();
      rows_[rows - 1].learn(took, cost(rows), passes(), plain_, usual_);
    }
    constexpr std::uint32_t often = 512;
    if (passes() < often || passes() % 8 == 0) refit();
  }

  /// Returns the expected cost of a pass with `rows` rows.
  [[nodiscard]] Cost cost(std::size_t rows) const noexcept {
    if (rows == 0) return cost_one;
    if (rows <= most_rows) return fitted_[rows - 1];
    const std::uint64_t beyond = std::min<std::uint64_t>(rows - most_rows, 1 << 16);
    return static_cast<Cost>(std::min(fitted_[most_rows - 1] + beyond * slope_, detail::RowRatio::most));
  }

  /// Returns true if the next pass should be plain, so that a plain pass is timed. `loss`: the cost of this probe, in
  /// plain passes. A probe is nearly free if the draft is worth little, so probes wait for such a draft. Each timed
  /// pass saves 1/256 of a plain pass for the next probe, or more while few plain times are known. The result is true
  /// once 256 timed passes (16 if `closely` is true) have followed the last timed plain pass. It is false before the
  /// first timed pass, and after a plain pass that was not timed.
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely) const noexcept {
    return budget_.should_probe_plain(loss, closely, plain_);
  }
  /// Returns the maximum number of rows of the next pass, because a pass far beyond all timed row counts may be
  /// expensive. The limit grows as passes are timed, and exceeds most_rows after a few hundred. It is most_rows + 1 if
  /// the last pass was not timed.
  [[nodiscard]] std::size_t explored_rows() const noexcept { return budget_.rows(plain_, widest_, most_rows + 1); }

  /// Returns true if the cost of a row count is uncertain: never timed, not trusted yet, or not timed for 512 passes.
  /// Returns false for fewer than 2 rows and for more than most_rows.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    if (rows < 2 || rows > most_rows) return false;
    const detail::RowRatio& row = rows_[rows - 1];
    return !row.trusted || row.stale(passes());
  }
  /// Returns the lowest plausible cost of a row count: cost(), unless uncertain(rows). If the time of the row count was
  /// never trusted, returns the cost of the nearest smaller row count that is certain. If the row count was timed long
  /// ago, returns 1 plus half of its cost above 1.
  [[nodiscard]] Cost optimistic_cost(std::size_t rows) const noexcept {
    if (!uncertain(rows)) return cost(rows);
    if (rows_[rows - 1].trusted) return cost_one + (cost(rows) - cost_one) / 2;
    std::size_t below = rows - 1;
    while (below > 1 && uncertain(below)) --below;
    return cost(below);
  }
  /// Returns the measured cost of a pass that took `time`, limited to 2.5 times the expected cost. Returns cost(rows)
  /// if `time` is not above 0 or no plain time is known.
  [[nodiscard]] Cost measured(std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (!plain_.known() || time.count() <= 0) return cost(rows);
    return static_cast<Cost>(std::min(plain_.cost_of(nanoseconds(time)), std::uint64_t{cost(rows)} * 5 / 2));
  }
  /// Returns true if a try with an expected loss of `loss` plain passes is due. Each pass since the last try saves
  /// 1/256 of a plain pass for tries. At most one timed pass in 32 is a try.
  [[nodiscard]] bool may_explore(std::int64_t loss) const noexcept { return budget_.may_explore(loss, plain_); }

  /// Returns the number of timed passes of 1 to most_rows rows. Costs read from the curve stay valid until this number
  /// changes.
  [[nodiscard]] std::uint32_t passes() const noexcept { return budget_.passes(); }

 private:
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t optimistic_slope = to_cost(0.015);  // after the first time; unknown lengths are tried
  static constexpr std::uint64_t prior_rows = 4;                     // number of rows that the prior slope counts as

  static std::uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 39;  // nine minutes
    return static_cast<std::uint64_t>(std::min<std::int64_t>(time.count(), most));
  }

  void learn_plain(std::uint64_t time) noexcept {
    const std::uint64_t before = plain_.value;
    plain_.seen = passes();
    plain_.learn(time, usual_);
    // Until the plain time has settled, each timed plain pass rescales the ratios.
    if (before == 0 || plain_.count >= detail::PlainTime::settled) return;
    for (detail::RowRatio& row : rows_) row.rescale(before, plain_.value);
  }
  void forget() noexcept {
    plain_ = {};
    rows_.fill({});
    refit();
  }

  void refit() noexcept {
    detail::IsotonicPools<most_rows> pools;
    for (std::size_t i = 1; i < most_rows; ++i)
      if (rows_[i].trusted) pools.add(rows_[i].value, std::min<std::uint32_t>(rows_[i].count, 64));
    fitted_[0] = cost_one;
    std::size_t last = 0;  // the last known row before i
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!rows_[i].trusted) continue;
      fitted_[i] = static_cast<Cost>(std::max<std::uint64_t>(pools.next(), cost_one));
      const std::uint64_t rise = std::min<std::uint64_t>((fitted_[i] - fitted_[last]) / (i - last), slope_at(last));
      for (std::size_t j = last + 1; j < i; ++j) fitted_[j] = static_cast<Cost>(fitted_[last] + (j - last) * rise);
      last = i;
    }
    widest_ = last + 1;
    slope_ = slope_at(last);
    for (std::size_t i = last + 1; i < most_rows; ++i)
      fitted_[i] = static_cast<Cost>(std::min(fitted_[last] + (i - last) * slope_, detail::RowRatio::most));
  }

  /// Returns the slope of the cost after a known row count. It is the slope over the upper half of the rows up to that
  /// count, averaged with four rows of the prior.
  [[nodiscard]] std::uint64_t slope_at(std::size_t i) const noexcept {
    const std::size_t half = i / 2;
    return (fitted_[i] - fitted_[half] + prior_rows * (passes() == 0 ? default_slope : optimistic_slope)) /
           (i - half + prior_rows);
  }

  std::array<detail::RowRatio, most_rows> rows_{};
  detail::PlainTime plain_;
  detail::UsualError usual_;
  detail::ExplorationBudget budget_;
  std::array<Cost, most_rows> fitted_{};
  std::uint64_t slope_ = 0;  // cost per row after the last known row
  std::size_t widest_ = 1;   // the largest known row count
};

}  // namespace reprise
