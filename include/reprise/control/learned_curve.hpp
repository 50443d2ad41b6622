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

/// The cost curve of one engine, learned from the times of its passes (one sequence each).
///
/// Learning: the time of a plain pass is tracked, because it drifts as the context grows. The cost of each row count is
/// tracked as its ratio to that time. Ratios are corrected while the first plain times are being averaged.
///
///  * The first time of a row count is trusted if it is close to the expected one. Otherwise the second is trusted if
///    it is close to the first. Otherwise the median of three is.
///  * Later times move the ratio by their relative error divided by the number of times seen (at most 64). The error is
///    clamped to three times the usual deviation, so one pass in a hundred may take ten times as long without harm.
///  * In long stretches without a plain pass, the errors of well known ratios correct the plain time.
///
/// Reading: ratios are made to rise with the rows by pool adjacent violators, weighted by the times seen. This removes
/// most of the noise and keeps steps sharp. A curve that falls somewhere is learned as flat there.
///
/// After a known row count, the curve continues with the mean slope of the upper half of the rows up to it. Four rows
/// of a prior slope are averaged in: CostCurve::default_per_row before the first time, 0.015 afterwards. The curve
/// stays at or below the line to the next known row count. This estimate is low, so that lengths which were never sent
/// are tried.
///
/// Exploring: a ratio can be outdated, or too high because of one slow pass. optimistic_cost() is the lowest plausible
/// cost of such a row count, and may_explore() decides whether a try is due. Tries are expected to cost at most 1/256
/// of all passes.
///
/// Integers only; 3 kB; nothing allocates. learn() takes about ten operations, and a hundred times that when the curve
/// is fitted again: every time at first, every eighth time later. Threads: one at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = 64;

  LearnedCurve() noexcept { refit(); }

  /// Learns from a pass of `rows` rows; without a measured time, it only records that there is none. `plain`: the pass
  /// carried no draft. The plain time is then learned from it: the measured time divided by the cost of its rows, since
  /// several rows can be pending.
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

  /// The expected cost of a pass with `rows` rows.
  [[nodiscard]] Cost cost(std::size_t rows) const noexcept {
    if (rows == 0) return cost_one;
    if (rows <= most_rows) return fitted_[rows - 1];
    const std::uint64_t beyond = std::min<std::uint64_t>(rows - most_rows, 1 << 16);
    return static_cast<Cost>(std::min(fitted_[most_rows - 1] + beyond * slope_, detail::RowRatio::most));
  }

  /// Returns true if the next pass should be plain, to time it. `loss`: the cost of that, in plain passes. A probe is
  /// nearly free where the draft is worth little, so it waits for such a moment. Each pass saves 1/256 of a plain pass
  /// for it, or more while few plain times are known. The result is true at the latest after 256 passes, or after 16 if
  /// `closely`. It is always false for an engine that does not time plain passes.
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely) const noexcept {
    return budget_.should_probe_plain(loss, closely, plain_);
  }
  /// The largest number of rows for the next pass: a pass far beyond all timed row counts may be expensive. There is no
  /// limit after a few hundred passes, nor for an engine that measures nothing.
  [[nodiscard]] std::size_t explored_rows() const noexcept { return budget_.rows(plain_, widest_, most_rows + 1); }

  /// Returns true if the cost of a row count is not well known: never timed, not yet trusted, or not timed for 512
  /// passes.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    if (rows < 2 || rows > most_rows) return false;
    const detail::RowRatio& row = rows_[rows - 1];
    return !row.trusted || row.stale(passes());
  }
  /// The lowest plausible cost of an uncertain row count. If it was never trusted, this is the cost of the nearest
  /// certain row count below. If it was timed long ago, this is 1 plus half of its cost above 1.
  [[nodiscard]] Cost optimistic_cost(std::size_t rows) const noexcept {
    if (!uncertain(rows)) return cost(rows);
    if (rows_[rows - 1].trusted) return cost_one + (cost(rows) - cost_one) / 2;
    std::size_t below = rows - 1;
    while (below > 1 && uncertain(below)) --below;
    return cost(below);
  }
  /// The measured cost of a pass that took `time`, at most 2.5 times the expected cost.
  [[nodiscard]] Cost measured(std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (!plain_.known() || time.count() <= 0) return cost(rows);
    return static_cast<Cost>(std::min(plain_.cost_of(nanoseconds(time)), std::uint64_t{cost(rows)} * 5 / 2));
  }
  /// Returns true if a try is due whose expected loss is `loss`, in plain passes. Each pass saves 1/256 of a plain pass
  /// for tries.
  [[nodiscard]] bool may_explore(std::int64_t loss) const noexcept { return budget_.may_explore(loss, plain_); }

  /// The number of passes whose time was learned from. Costs read from the curve are valid until it changes.
  [[nodiscard]] std::uint32_t passes() const noexcept { return budget_.passes(); }

 private:
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t optimistic_slope = to_cost(0.015);  // after the first time: unknown lengths get tried
  static constexpr std::uint64_t prior_rows = 4;                     // rows for which one of these counts

  static std::uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 39;  // nine minutes
    return static_cast<std::uint64_t>(std::min<std::int64_t>(time.count(), most));
  }

  void learn_plain(std::uint64_t time) noexcept {
    const std::uint64_t before = plain_.value;
    plain_.seen = passes();
    plain_.learn(time, usual_);
    // Until the plain time has settled, the ratios to it move with it.
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

  /// The slope of the cost after a known row: that of the upper half of the rows up to it, averaged with four rows of
  /// the prior.
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
  std::uint64_t slope_ = 0;  // after the last known row
  std::size_t widest_ = 1;   // the largest known row count
};

}  // namespace reprise
