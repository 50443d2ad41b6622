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
/// Two things are tracked: the time of a plain pass, which drifts as the context grows, and for each number of rows
/// the ratio to it, corrected while the first plain times are being averaged. The first time of a row count is believed
/// if it is close to the expected one, else the second if it is like the first, else the median of three. Later ones
/// move the ratio by their relative error over the number of times seen (at most 64 are remembered), held within three
/// times the usual deviation: one pass in a hundred may take ten times as long without harm. In long stretches without
/// a plain pass, the plain time is corrected by the errors of well known ratios.
///
/// Reading: ratios are made to rise with the rows (pool adjacent violators, weighted by the times seen), which takes
/// out most of the noise and keeps steps sharp; curves that fall somewhere are learned as flat there. After a known
/// row count, the slope of the upper half of those up to it goes on, counted together with four rows of the prior
/// (CostCurve::default_per_row before there are times, 0.015 then), but not above the line to the next known one. That
/// is rather low, so that lengths which were never sent get tried.
///
/// Knowledge can be outdated, or one slow pass can have given a row count a bad name: optimistic_cost() is the least
/// that such a row count might cost, and may_explore() says whether a try is due. Tries are expected to cost at most a
/// 256th of all passes.
///
/// Integers only; 3 kB; nothing allocates. learn(): some ten operations, and a hundred times that when the curve is
/// fitted again (every time at first, every eighth time later). Threads: one at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = 64;

  LearnedCurve() noexcept { refit(); }

  /// A pass took `time`, if that was measured. `plain`: it carried no draft; a ratio of its rows that is not 1 is then
  /// believed, and the plain time learned from it.
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

  /// Whether the next pass should be plain, to time it. `loss`: the price of that, in plain passes. Where a draft is
  /// worth little the time of a plain pass is nearly free, so that moment is waited for: a 256th of a plain pass is
  /// saved up with every pass, more of it while few times are known. At the latest after 256 passes; `closely`: 16.
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely) const noexcept {
    return budget_.should_probe_plain(loss, closely, plain_);
  }
  /// The most rows that the next pass should have: far beyond all timed row counts a pass may be expensive. After a few
  /// hundred passes there is no limit, nor for an engine that measures nothing.
  [[nodiscard]] std::size_t explored_rows() const noexcept { return budget_.rows(plain_, widest_, most_rows + 1); }

  /// Not known well: never seen, nor believed yet, or not seen for 512 passes.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    if (rows < 2 || rows > most_rows) return false;
    const detail::RowRatio& row = rows_[rows - 1];
    return !row.trusted || row.stale(passes());
  }
  /// The least that an uncertain row count might cost: if it was never believed, the cost of the nearest certain one
  /// below; if it was seen long ago, half of its cost above a plain pass.
  [[nodiscard]] Cost optimistic_cost(std::size_t rows) const noexcept {
    if (!uncertain(rows)) return cost(rows);
    if (rows_[rows - 1].trusted) return cost_one + (cost(rows) - cost_one) / 2;
    std::size_t below = rows - 1;
    while (below > 1 && uncertain(below)) --below;
    return cost(below);
  }
  /// The measured cost of a pass that took `time`, but at most two and a half times the expected one.
  [[nodiscard]] Cost measured(std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (!plain_.known() || time.count() <= 0) return cost(rows);
    return static_cast<Cost>(std::min(plain_.cost_of(nanoseconds(time)), std::uint64_t{cost(rows)} * 5 / 2));
  }
  /// Whether a try is due that is expected to lose so much. A 256th of a plain pass is saved up with every pass.
  [[nodiscard]] bool may_explore(std::int64_t loss) const noexcept { return budget_.may_explore(loss, plain_); }

  /// Passes whose time was learned from. Costs that were read from the curve hold until this changes.
  [[nodiscard]] std::uint32_t passes() const noexcept { return budget_.passes(); }

 private:
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t optimistic_slope = to_cost(0.015);  // once there are times: unknown lengths get tried
  static constexpr std::uint64_t prior_rows = 4;                     // that one of these counts for

  static std::uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 39;  // nine minutes
    return static_cast<std::uint64_t>(std::min<std::int64_t>(time.count(), most));
  }

  void learn_plain(std::uint64_t time) noexcept {
    const std::uint64_t before = plain_.value;
    plain_.seen = passes();
    plain_.learn(time, usual_);
    // As long as the plain time is still being found, the ratios to it move with it.
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
    std::size_t last = 0;  // the known row before
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

  /// The slope of the cost after a known row: that of the upper half of those up to it, and four rows of the prior.
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
  std::size_t widest_ = 1;   // the most rows that are known
};

}  // namespace reprise
