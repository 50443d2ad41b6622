// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/cost_prior.hpp"
#include "reprise/control/detail/row_fit.hpp"
#include "reprise/control/detail/timed_passes.hpp"

namespace reprise::inline v0 {

/// The cost curve of one engine, learned from the times of its passes. CostControl learns it from passes of one
/// sequence; BatchPlanner keeps one curve for each range of batch sizes.
///
/// Learning: the curve tracks the time of a plain pass, and the cost of each row count as a ratio to that time. While
/// the first plain times are averaged, the ratios are adjusted to each new average.
///
///  * The first time of a row count is trusted if it is close to the expected time. Otherwise the second time is
///    trusted if it is close to the first. Otherwise the median of three times is trusted.
///  * Each later time moves the ratio by its relative error, divided by the number of samples (at most 64). The error
///    is clamped to three usual errors. One pass in a hundred may therefore take ten times as long without harm.
///  * Three large errors in a row on the same side are a change, and the value starts again from their median. If only
///    passes with a draft show the change, a plain pass is requested first: the machine may have become slower.
///  * Two slopes describe the context: the rise of the plain time for each token, and the rise of the cost for each row
///    and token. A slope counts only as far as it stands out from the noise.
///
/// Assuming: with a CostPrior, RowFit smooths the differences of the ratios from the assumed costs, not from a plain
/// pass. An assumed row count without a trusted time costs its assumed cost plus the difference on the line. So times
/// of some row counts correct the assumed costs of all of them.
///
/// Reading: RowFit smooths the ratios. Noise alone gives a straight line, and an engine with steps keeps its steps,
/// upwards and downwards.
///
/// After a known row count, the curve continues with its mean slope over the upper half of the rows up to that count.
/// The mean includes four rows of a slope that is given: CostCurve::default_per_row before the first time if nothing is
/// assumed, and 0.015 otherwise. The step to the second row is no part of the slope. Between two known row counts, the
/// curve stays at or below the straight line. The estimate is low on purpose, so that lengths that were never sent are
/// tried.
///
/// Trials: a ratio can be outdated, or too high because of one slow pass. So every 128 passes without a time, half of
/// its cost above 1 is no longer believed, and optimistic_costs() returns the lowest plausible costs. may_try() returns
/// true if a row count of uncertain cost may be timed, and may_check() if an old cost may be tested. Tries and checks
/// each lose at most 1/128 of a plain pass for each pass in the long run, and 1/1024 while they confirm the costs. A
/// time far below an old cost refutes it, unless the next plain pass is as fast: then the machine has become faster.
///
/// The curve uses integers only, takes 4.3 KB and never allocates. learn() takes about ten operations, or a hundred
/// times as many if it refits the curve. At first every learned time leads to a refit; later, each change and every
/// sixteenth time do.
/// Threads: one at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = 64;

  static_assert(most_rows == CostPrior::most_rows);

  LearnedCurve() noexcept : LearnedCurve(CostPrior()) {}
  /// Starts from assumed costs; see CostPrior.
  explicit LearnedCurve(const CostPrior& prior) noexcept {
    base_.fill(cost_one);
    for (std::size_t rows = CostPrior::least_rows; rows <= most_rows; ++rows) {
      if (!prior.assumes(rows)) continue;
      base_[rows - 1] = prior.cost(rows);
      assumed_ |= std::uint64_t{1} << (rows - 1);
    }
    refit(0);
    if (assumed_ == 0) return;
    base_ = fitted_;  // also for the row counts without an assumed cost
    refit(0);
  }

  /// Learns from a pass of `rows` rows at `context` committed tokens. Without a time above 0, it only records that the
  /// time is missing. It learns no cost from 0 rows or from more than most_rows. `plain`: the pass carried no draft.
  /// From such a pass it learns the plain time: the measured time divided by the cost of the rows, because several rows
  /// can be pending.
  void learn(std::size_t rows, bool plain, std::optional<std::chrono::nanoseconds> measured,
             std::size_t context = 0) noexcept {
    const bool timed = measured && measured->count() > 0;
    budget_.begin_pass(plain, timed);
    if (!timed || rows == 0 || rows > most_rows) return;
    const std::uint64_t took = detail::limited_time(*measured);
    const std::int64_t at = detail::limited_context(context);
    budget_.count_pass();
    if (plain) {
      learn_plain(std::max<std::uint64_t>(1, detail::UnitScale::divide(took, cost(rows, context))), at);
    } else if (plain_.known()) {
      if (plain_.refuted_by(took)) return forget();
      learn_row(rows, took, at);
    }
    constexpr std::uint32_t first = 512;
    if (passes() < first || passes() % 16 == 0 || changed_) refit(at);
  }

  /// Returns the expected cost of a pass with `rows` rows at the context of the last pass.
  [[nodiscard]] Cost cost(std::size_t rows) const noexcept { return cost_at(rows, 0); }
  /// Returns the expected cost of a pass with `rows` rows at `context` committed tokens.
  [[nodiscard]] Cost cost(std::size_t rows, std::size_t context) const noexcept {
    return cost_at(rows, detail::limited_context(context) - fitted_context_);
  }
  /// Sets out[k] to the expected cost of a pass with `rows` + k rows at `context` committed tokens.
  void costs(std::size_t rows, std::size_t context, std::span<Cost> out) const noexcept {
    const std::int64_t distance = detail::limited_context(context) - fitted_context_;
    std::size_t k = 0;
    if (!slope_per_row_.rises() && rows >= 1 && rows <= most_rows) {
      k = std::min(out.size(), most_rows + 1 - rows);
      std::copy_n(fitted_.begin() + static_cast<std::ptrdiff_t>(rows - 1), k, out.begin());
    }
    for (; k < out.size(); ++k) out[k] = cost_at(rows + k, distance);
  }

  /// Returns true if the next pass should be plain, so that a plain pass is timed. `loss`: the cost of this probe, in
  /// plain passes. A probe is nearly free if the draft is worth little, so probes wait for such a draft. Each timed
  /// pass saves 1/256 of a plain pass for the next probe, or more while few plain times are known. The result is true
  /// once 256 timed passes (16 if `closely` is true) have followed the last timed plain pass. It is also true if times
  /// have changed and only a plain pass can tell whether the machine has become slower. It is false before the first
  /// timed pass, and after a plain pass that was not timed.
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely) const noexcept {
    return budget_.should_probe_plain(doubtful_ ? 0 : loss, closely, plain_);
  }
  /// Returns the maximum number of rows of the next pass, because a pass far beyond all timed row counts may be
  /// expensive. The limit grows as passes are timed, and exceeds most_rows after at most 2,080 timed passes. It is
  /// most_rows + 1 if the last pass was not timed, and never below CostPrior::widest().
  [[nodiscard]] std::size_t explored_rows() const noexcept {
    const auto assumed = static_cast<std::size_t>(std::bit_width(assumed_));
    return std::max(budget_.rows(plain_, widest_, most_rows + 1), assumed);
  }

  /// Returns true if the cost of a row count is uncertain: neither trusted nor assumed, or not timed for 128 timed
  /// passes. Returns false for fewer than 2 rows and for more than most_rows.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    if (rows < 2 || rows > most_rows) return false;
    const detail::RowRatio& row = rows_[rows - 1];
    return !known(rows - 1) || row.age(passes()) > 0;
  }
  /// Returns true if the learned cost of a row count is trusted. It is trusted after three times, or if the first time
  /// was close to the expected time, or the second time to the first. Assumed costs without times are not trusted. One
  /// row is always trusted; more than most_rows rows never are.
  [[nodiscard]] bool trusted(std::size_t rows) const noexcept {
    return rows >= 1 && rows <= most_rows && (rows == 1 || rows_[rows - 1].trusted);
  }
  /// Returns the relative error that the cost of a row count may have, in 1/65,536. It is the usual error of a time,
  /// divided by the square root of the number of times. For row counts without times, this number counts as 1.
  [[nodiscard]] std::int64_t margin(std::size_t rows) const noexcept {
    const std::uint32_t count = rows >= 2 && rows <= most_rows ? rows_[rows - 1].count : 1;
    std::int64_t root = 1;
    while ((root + 1) * (root + 1) <= count) ++root;
    return usual_.deviation() / root;
  }
  /// Sets out[k] to the lowest plausible cost of `plain` + k rows at `context`. It is cost(), unless the row count
  /// is uncertain. Each 128 passes since the last time then halve the part of the cost above 1. If the cost is
  /// neither trusted nor assumed, hardly any of that part is left. The result is below 4/5 of the cost of a certain,
  /// smaller row count in `out` only if cost() is.
  void optimistic_costs(std::size_t plain, std::size_t context, std::span<Cost> out) const noexcept {
    Cost floor = cost_one;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::size_t rows = plain + k;
      out[k] = cost(rows, context);
      if (!uncertain(rows)) {
        floor = std::max(floor, static_cast<Cost>(out[k] - out[k] / 5));
        continue;
      }
      out[k] = std::min(out[k], std::max(floor, plausible(rows, out[k])));
    }
  }
  /// Returns the lowest plausible cost of a row count whose expected cost is `cost`, regardless of other row counts.
  [[nodiscard]] Cost plausible(std::size_t rows, Cost cost) const noexcept {
    if (!uncertain(rows)) return cost;
    const detail::RowRatio& row = rows_[rows - 1];
    const std::uint32_t age = known(rows - 1) ? std::min(row.age(passes()), 16U) : 16U;
    return cost_one + ((std::max(cost, cost_one) - cost_one) >> age);
  }
  /// Returns the measured cost of a pass that took `time`, limited to 2.5 times the expected cost. Returns cost(rows)
  /// if `time` is not above 0 or no plain time is known.
  [[nodiscard]] Cost measured(std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (!plain_.known() || time.count() <= 0) return cost(rows);
    return static_cast<Cost>(
        std::min(plain_.cost_of(detail::limited_time(time), fitted_context_), std::uint64_t{cost(rows)} * 5 / 2));
  }
  /// Returns true if a try is due: a pass whose row count has an uncertain() cost.
  [[nodiscard]] bool may_try() const noexcept { return budget_.due(budget_.tries, plain_); }
  /// Returns true if a check is due: a pass whose row count is refutable().
  [[nodiscard]] bool may_check() const noexcept { return budget_.due(budget_.checks, plain_); }
  /// Returns true if one time can refute `cost`, the expected cost of a row count. The cost must be trusted or assumed,
  /// old, and far above the lowest plausible cost.
  [[nodiscard]] bool refutable(std::size_t rows, Cost cost) const noexcept {
    return rows >= 2 && rows <= most_rows && known(rows - 1) &&
           std::int64_t{cost} - plausible(rows, cost) >
               detail::UnitScale::multiply(std::int64_t{cost}, surprises * usual_.deviation());
  }
  /// Records that a pass of `rows` rows, which took `time`, was a try or a check. `instead`: the cost of the pass that
  /// would have run otherwise, in the unit of Cost. Call it before learn().
  void tried(std::size_t rows, std::int64_t instead, std::chrono::nanoseconds time) noexcept {
    const Cost expected = cost(rows);
    const Cost took = measured(rows, time);
    detail::Search& search = refutable(rows, expected) ? budget_.checks : budget_.tries;
    search.wait(passes(), took - instead, took >= expected - expected / 4);
  }

  /// Returns the number of timed passes of 1 to most_rows rows.
  [[nodiscard]] std::uint32_t passes() const noexcept { return budget_.passes(); }
  /// Returns the number of refits. Costs read from the curve stay valid until this number changes. Between refits, only
  /// the learned effect of the context moves.
  [[nodiscard]] std::uint32_t revision() const noexcept { return revision_; }

  /// Returns the costs at the context of the last fit, as a prior for the next curve of the same engine. The prior has
  /// the row counts whose cost is trusted or still assumed.
  [[nodiscard]] CostPrior prior() const noexcept {
    CostPrior learned;
    for (std::size_t i = 1; i < most_rows; ++i)
      if (known(i)) learned.assume(i + 1, fitted_[i]);
    return learned;
  }

 private:
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t optimistic_slope = to_cost(0.015);  // after the first time; unknown lengths are tried
  static constexpr std::int64_t surprises = 6;    // one pass faster by more usual errors than this refutes an old cost
  static constexpr std::uint64_t prior_rows = 4;  // number of rows that the given slope counts as

  [[nodiscard]] Cost cost_at(std::size_t rows, std::int64_t distance) const noexcept {
    if (rows <= 1) return cost_one;
    const std::size_t beyond = rows - std::min(rows, most_rows);
    const std::uint64_t here =
        fitted_[std::min(rows, most_rows) - 1] + std::min<std::uint64_t>(beyond, 1 << 16) * slope_;
    const std::int64_t cost = static_cast<std::int64_t>(here) + rise(rows, distance);
    return static_cast<Cost>(
        std::clamp<std::int64_t>(cost, cost_one, static_cast<std::int64_t>(detail::RowRatio::most)));
  }
  /// Returns the rise of the cost of `rows` rows over `distance` tokens of context.
  [[nodiscard]] std::int64_t rise(std::size_t rows, std::int64_t distance) const noexcept {
    return slope_per_row_.rise(row_tokens(rows, distance));
  }
  static std::int64_t row_tokens(std::size_t rows, std::int64_t distance) noexcept {
    return detail::ContextSlope::limited(detail::ContextSlope::limited(distance) *
                                         static_cast<std::int64_t>(std::min<std::size_t>(rows, 1 << 16) - 1));
  }

  void learn_plain(std::uint64_t time, std::int64_t at) noexcept {
    const std::uint64_t before = plain_.known() ? plain_.at(at) : 0;
    const bool changed = plain_.learn(time, at, passes(), usual_);
    doubtful_ = plain_.streak != 0;
    if (suspect_) confirm(time);
    if (changed) {
      note_change();
      // The machine is slower or faster. Ratios stay, but recent samples of rows were compared with the old time.
      for (detail::RowRatio& row : rows_) row.streak = 0;
      return;
    }
    // Until the plain time has settled, each timed plain pass rescales the ratios.
    averaging_ = averaging_ && plain_.count < detail::PlainTime::settled;
    if (before == 0 || !averaging_) return;
    for (detail::RowRatio& row : rows_) row.rescale(before, plain_.at(at));
  }
  void learn_row(std::size_t rows, std::uint64_t took, std::int64_t at) noexcept {
    detail::RowRatio& row = rows_[rows - 1];
    const std::uint64_t sample = plain_.cost_of(took, at);
    const Cost expected = cost_at(rows, at - fitted_context_);
    const std::int64_t distance = at - row.context;
    const std::int64_t rise = this->rise(rows, distance);
    if (!row.seeding()) {
      const std::int64_t here = std::max<std::int64_t>(static_cast<std::int64_t>(row.value) + rise, cost_one / 2);
      const std::int64_t error =
          detail::UsualError::of(std::min(sample, detail::RowRatio::most), static_cast<std::uint64_t>(here));
      const std::int64_t usual = usual_.deviation();
      if (row.age(passes()) > 0 && error < -surprises * usual) {
        suspect_ = detail::SuspectPass{rows, took, at};
        doubtful_ = true;
        return;
      }
      if (row.streak == 0)
        slope_per_row_.learn(detail::ContextSlope::limited(detail::UnitScale::divide(row_tokens(rows, distance), here)),
                             std::clamp(error, -3 * usual, 3 * usual), usual);
    }
    if (row.learn(sample, expected, rise, at, passes(), plain_, usual_)) note_change();
    doubtful_ = plain_.streak != 0 || (row.streak * row.streak > 1 && plain_.seen < row.since);
  }
  /// Returns true if the cost of i + 1 rows is assumed or trusted.
  [[nodiscard]] bool known(std::size_t i) const noexcept { return rows_[i].trusted || (assumed_ >> i & 1) != 0; }
  /// Decides about the suspect pass, after a plain pass that took `plain`. If the plain pass was as fast, the machine
  /// has become faster, and the old cost stays.
  void confirm(std::uint64_t plain) noexcept {
    const detail::SuspectPass pass = *std::exchange(suspect_, std::nullopt);
    const detail::RowRatio& row = rows_[pass.rows - 1];
    const std::uint64_t sample = pass.highest_cost(plain_, plain);
    const std::int64_t error = detail::UsualError::of(std::min(sample, detail::RowRatio::most), row.value);
    if (row.age(passes()) > 0 && error < -surprises * usual_.deviation()) refute(pass.rows, sample, pass.context);
  }
  /// Corrects an old cost that was far too high. The sample replaces it: a pass may be slow by accident, but hardly
  /// ever fast. The other old costs above 1 fall by the same factor, but not below 1, because they were learned under
  /// the same conditions.
  void refute(std::size_t rows, std::uint64_t sample, std::int64_t at) noexcept {
    const std::uint64_t before = rows_[rows - 1].value;
    const std::uint64_t after = std::clamp<std::uint64_t>(sample, std::min<std::uint64_t>(cost_one, before), before);
    for (detail::RowRatio& row : rows_)
      if (row.trusted && row.age(passes()) > 0 && row.value > cost_one)
        row.value = std::max<std::uint64_t>(cost_one, row.value * after / before);
    note_change();
    rows_[rows - 1].refute(std::max(sample, detail::RowRatio::least), at, passes());
    doubtful_ = plain_.streak != 0;
  }
  /// Records that a cost or the speed of the machine has changed: a refit follows now, and trials follow soon.
  void note_change() noexcept {
    budget_.restart();
    changed_ = true;
  }
  void forget() noexcept {
    plain_ = {};
    rows_.fill({});
    slope_per_row_ = {};
    averaging_ = true;
    refit(fitted_context_);
  }

  void refit(std::int64_t context) noexcept {
    ++revision_;
    changed_ = false;
    fitted_context_ = context;
    std::array<std::int64_t, most_rows> values;  // NOLINT(*-member-init): filled for trusted row counts
    detail::RowFit fit(usual_.deviation() * usual_.deviation() * 3 / 2, plain_.count);
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!rows_[i].trusted) continue;
      values[i] = value_of(i);
      fit.add(i, values[i], rows_[i].count, base_[i]);
    }
    if (assumed_ != 0)
      fit.fit(0, -std::int64_t{CostPrior::most_cost});  // the assumed costs can be too high
    else
      fit.fit(static_cast<std::int64_t>(unknown_slope()), 0);
    for (std::size_t i = 1; i < most_rows; ++i)
      if (rows_[i].trusted) fit.deviation(i, values[i], rows_[i].count, base_[i]);
    fit.finish();
    fitted_[0] = cost_one;
    std::size_t last = 0;  // the last known row before i
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!known(i)) continue;
      const std::int64_t cost =
          rows_[i].trusted ? fit.cost(i, values[i], rows_[i].count, base_[i]) : fit.line(i, base_[i]);
      fitted_[i] = static_cast<Cost>(
          std::clamp<std::int64_t>(cost, cost_one, static_cast<std::int64_t>(detail::RowRatio::most)));
      const std::int64_t rise =
          std::min<std::int64_t>((std::int64_t{fitted_[i]} - fitted_[last]) / static_cast<std::int64_t>(i - last),
                                 static_cast<std::int64_t>(slope_at(last)));
      for (std::size_t j = last + 1; j < i; ++j)
        fitted_[j] = static_cast<Cost>(
            std::max<std::int64_t>(cost_one, fitted_[last] + static_cast<std::int64_t>(j - last) * rise));
      last = i;
    }
    widest_ = last + 1;
    slope_ = slope_at(last);
    for (std::size_t i = last + 1; i < most_rows; ++i)
      fitted_[i] = static_cast<Cost>(std::min(fitted_[last] + (i - last) * slope_, detail::RowRatio::most));
  }
  /// Returns the learned cost of i + 1 rows at the context of the fit.
  [[nodiscard]] std::int64_t value_of(std::size_t i) const noexcept {
    const std::int64_t value =
        static_cast<std::int64_t>(rows_[i].value) + rise(i + 1, fitted_context_ - rows_[i].context);
    return std::clamp<std::int64_t>(value, static_cast<std::int64_t>(detail::RowRatio::least),
                                    static_cast<std::int64_t>(detail::RowRatio::most));
  }

  /// Returns the slope of the cost after a known row count. It is the slope over the upper half of the rows up to that
  /// count, averaged with four rows of unknown_slope(). The step to the second row does not count: many engines change
  /// to another kernel there.
  [[nodiscard]] std::uint64_t slope_at(std::size_t i) const noexcept {
    const std::size_t half = std::min(i, std::max<std::size_t>(1, i / 2));
    return (fitted_[i] - std::min(fitted_[i], fitted_[half]) + prior_rows * unknown_slope()) / (i - half + prior_rows);
  }
  /// Returns the slope of rows without times. It is lower once a pass was timed or costs are assumed, so that unknown
  /// lengths are tried.
  [[nodiscard]] std::uint64_t unknown_slope() const noexcept {
    return passes() == 0 && assumed_ == 0 ? default_slope : optimistic_slope;
  }

  std::uint64_t assumed_ = 0;           // bit i: a cost is assumed for i + 1 rows
  std::array<Cost, most_rows> base_{};  // assumed costs; without a prior, the cost of a plain pass
  std::array<detail::RowRatio, most_rows> rows_{};
  detail::PlainTime plain_;
  detail::ContextSlope slope_per_row_;  // cost per row and token of context
  detail::UsualError usual_;
  detail::ExplorationBudget budget_;
  std::array<Cost, most_rows> fitted_{};
  std::int64_t fitted_context_ = 0;
  std::uint64_t slope_ = 0;                     // cost per row after the last known row
  std::size_t widest_ = 1;                      // the largest known row count
  std::uint32_t revision_ = 0;                  // number of refits
  std::optional<detail::SuspectPass> suspect_;  // until the next plain pass
  bool changed_ = false;                        // a cost or the speed of the machine has changed since the last refit
  bool averaging_ = true;                       // the first plain times are averaged
  bool doubtful_ = false;  // times have changed; a plain pass is needed to find out whether rows or the machine
};

}  // namespace reprise
