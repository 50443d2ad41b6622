// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/timed_passes.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The cost curve of one engine, learned from the times of its passes. CostControl learns it from passes of one
/// sequence; BatchPlanner keeps one curve for each range of batch sizes. docs/decisions/0011 explains the design.
///
///  * Samples: the plain pass keeps its last times, and each row count its last costs: times in units of the plain
///    time. So no old sample outlives the new ones, and a single sample is not believed if it is a surprise.
///  * Contexts: a pass takes longer in a longer context. ContextLine brings each time to the mean context first.
///  * Bounds: a cost of n rows lies between 1 and 1.5 n. A pass that costs more than n never pays.
///  * Assumed costs: RowFit smooths the costs, or their differences from the costs of a CostPrior. It moves no cost
///    further than the error of its samples. An assumed row count without samples costs its assumed cost plus the
///    difference on the line. After a change of the plain time or of a cost, the curve becomes its own prior: a few
///    samples then correct all costs.
///  * Row counts without samples: between two known row counts, the curve is a straight line. After the last one, it
///    continues with the mean slope over the upper half of the rows and four rows of a low slope, so that lengths that
///    were never sent are tried.
///  * Trials: a cost without a sample in the last 128 passes is uncertain. Each 128 passes then halve the part above 1
///    that is believed, and optimistic_costs() returns the lowest plausible costs. Each sample that confirms an old
///    cost doubles that number of passes, up to 2,048, so that all row counts are tried in turn. The wait after a trial
///    is in proportion to its loss, at most 384 passes.
///
/// The curve uses integers only, takes 4.3 KB and never allocates. learn() refits the curve after each of the first 512
/// times, after each change, and after every sixteenth time. Threads: one at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = CostPrior::most_rows;
  LearnedCurve() noexcept : LearnedCurve(CostPrior()) {}
  /// Starts from assumed costs; see CostPrior.
  explicit LearnedCurve(const CostPrior& prior) noexcept {
    base_.fill(cost_one);
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!prior.assumes(i + 1)) continue;
      base_[i] = bounded(prior.cost(i + 1), i);
      assumed_ |= std::uint64_t{1} << i;
    }
    refit();
    if (assumed_ == 0) return;
    base_ = fitted_;  // also for the row counts without an assumed cost
    refit();
  }

  /// Learns from a pass of `rows` rows. Without a time above 0, it only records that the time is missing. It learns no
  /// cost from 0 rows. From more rows than most_rows, it learns that of most_rows, in proportion. `plain`: the pass
  /// carried no draft. From such a pass it learns the plain time: the measured time divided by the cost of the rows,
  /// because several rows can be pending. `context`: the tokens that the pass attends to, summed over its sequences;
  /// always 0 if they are unknown.
  void learn(std::size_t rows, bool plain, std::optional<Duration> measured, std::size_t context = 0) noexcept {
    timed_ = measured && measured->count() > 0;
    if (plain) {
      untimed_plain_ = timed_ ? 0 : std::min(untimed_plain_ + (passes_ != last_plain_ ? 1U : 0U), 8U);
      last_plain_ = passes_;
    }
    if (!timed_ || rows == 0) return;
    ++passes_;
    const std::int64_t time = limited_time(*measured);
    if (plain || rows == 1) {
      learn_plain(std::max<std::int64_t>(1, detail::UnitScale::divide(time, std::int64_t{cost(rows)})), context);
    } else if (plain_.count > 0) {
      learn_row(rows, measured_cost(time, context));
    }
    constexpr std::uint32_t first = 512;
    if (passes_ < first || passes_ % 16 == 0) refit();
  }

  /// Returns the time of a plain pass in nanoseconds, or 0 if none was measured.
  [[nodiscard]] std::int64_t plain_time() const noexcept { return plain_.count > 0 ? plain_.value : 0; }
  /// Returns the expected cost of a pass with `rows` rows.
  [[nodiscard]] Cost cost(std::size_t rows) const noexcept {
    if (rows <= 1) return cost_one;
    const std::size_t i = std::min(rows, most_rows) - 1;
    const std::uint64_t beyond = std::min<std::size_t>(rows - 1 - i, 1 << 10) * slope_;
    return bounded(static_cast<std::int64_t>(fitted_[i] + beyond), rows - 1);
  }
  /// Sets out[k] to the expected cost of a pass with `rows` + k rows.
  void costs(std::size_t rows, std::span<Cost> out) const noexcept {
    std::size_t k = 0;
    if (rows >= 1 && rows <= most_rows) {
      k = std::min(out.size(), most_rows + 1 - rows);
      std::copy_n(fitted_.begin() + static_cast<std::ptrdiff_t>(rows - 1), k, out.begin());
    }
    for (; k < out.size(); ++k) out[k] = cost(rows + k);
  }

  /// Returns true if the next pass should be plain, so that a plain pass is timed. `loss`: the value of the draft that
  /// would be skipped, in plain passes: probes wait for a draft of little value. Each timed pass saves 1/256 of a plain
  /// pass for the next probe, or more while few plain times are known. The result is true once 256 timed passes (16 if
  /// `closely` is true) have followed the last timed plain pass. A missing plain time delays the next probe by 32 timed
  /// passes. Each further one after a timed pass delays it by twice as many, up to 4,096.
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely) const noexcept {
    if (passes_ == 0) return false;
    if (untimed_plain_ > 0 && passes_ - last_plain_ < std::uint64_t{16} << untimed_plain_) return false;
    const auto since = static_cast<std::int64_t>(passes_ - plain_.seen);
    const std::int64_t share = cost_one / (plain_.count > 0 ? 8 * std::int64_t{std::min(1 + plain_.count, 32U)} : 2);
    return since >= (closely ? 16 : 256) || loss <= since * share;
  }
  /// Returns the maximum number of rows of the next pass, because a pass far beyond all timed row counts may be
  /// expensive. The limit grows as passes are timed, and exceeds most_rows after at most 2,080 timed passes. It is
  /// most_rows + 1 if the last pass was not timed, and never below CostPrior::widest().
  [[nodiscard]] std::size_t explored_rows() const noexcept {
    if (!timed_) return most_rows + 1;
    return std::max<std::size_t>({3, plain_.count < 2 ? 0 : 2 * widest_,
                                  static_cast<std::size_t>(std::min<std::uint64_t>(passes_ / 32, most_rows + 1)),
                                  static_cast<std::size_t>(std::bit_width(assumed_))});
  }

  /// Returns true if the cost of a row count is uncertain: neither trusted nor assumed, or not timed for 128 to 2,048
  /// timed passes. Returns false for fewer than 2 rows and more than most_rows.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    return rows >= 2 && rows <= most_rows && half_lives(rows - 1) > 0;
  }
  /// Returns true if a trial should have `rows` rows, beyond all known costs, instead of a shorter telling length. Such
  /// a trial is believed to lose at most four plain passes.
  [[nodiscard]] bool prefers(std::size_t rows) const noexcept { return rows > widest_ && cost(rows) <= most_tried; }
  /// Returns true if the cost of a row count rests on two samples, or on one that is not far above the expected cost.
  /// One row is always trusted; more than most_rows rows never are.
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
  /// Sets out[k] to the lowest plausible cost of `plain` + k rows. It is cost(), unless the row count is uncertain.
  /// Each half-life then halves the part of the cost above 1. If the cost is neither trusted nor assumed, hardly any of
  /// that part is left. The result is below 4/5 of the cost of a certain, smaller row count in `out` only if cost() is.
  void optimistic_costs(std::size_t plain, std::span<Cost> out) const noexcept {
    Cost floor = cost_one;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Cost expected = out[k] = cost(plain + k);
      if (uncertain(plain + k))
        out[k] = std::min(expected, std::max(floor, plausible(plain + k, expected)));
      else
        floor = std::max(floor, expected - expected / 5);
    }
  }
  /// Returns the lowest plausible cost of a row count whose expected cost is `cost`, regardless of other row counts.
  [[nodiscard]] Cost plausible(std::size_t rows, Cost cost) const noexcept {
    if (!uncertain(rows)) return cost;
    return cost_one + ((std::max(cost, cost_one) - cost_one) >> half_lives(rows - 1));
  }
  /// Returns true if a trial is due: a pass whose row count has an uncertain() cost. At most each eighth pass is one.
  [[nodiscard]] bool may_try() const noexcept {
    return timed_ && passes_ % 8 == 0 && plain_.count > 0 && passes_ >= next_trial_;
  }
  /// Returns true if the cost of a row count is trusted or assumed.
  [[nodiscard]] bool known(std::size_t rows) const noexcept { return trusted(rows) || assumes(rows); }
  /// Returns true if a trial can show that `cost`, the expected cost of a row count, is far too high. The row count is
  /// known, or it lies between known ones and is believed to lose at most four plain passes.
  [[nodiscard]] bool telling(std::size_t rows, Cost cost) const noexcept {
    return uncertain(rows) && (known(rows) || (rows < widest_ && cost <= most_tried)) &&
           plausible(rows, cost) < cost - cost / 4;
  }
  /// Records that a pass of `rows` rows, which took `time`, was a trial. Without a time, the expected one counts.
  /// `instead`: the cost of the pass that would have run otherwise. The next trial waits 192 passes, or 384 after a
  /// time that confirmed the expected cost, times the loss in plain passes, at most 1. After a time far below the
  /// expected one, there is no wait. One above twice the expected one confirms nothing. Call it before learn().
  void tried(std::size_t rows, std::int64_t instead, std::optional<Duration> time, std::size_t context = 0) noexcept {
    const std::int64_t expected = cost(rows);
    const std::int64_t took =
        time && time->count() > 0 && plain_.count > 0 ? measured_cost(limited_time(*time), context) : expected;
    const bool lower = took < expected - expected / 4;
    const bool confirmed = !lower && took <= 2 * expected;
    if (!confirmed) wait_ = shortest_wait;
    const std::int64_t loss = lower ? 0 : std::clamp<std::int64_t>(took - instead, 0, cost_one);
    next_trial_ = passes_ + static_cast<std::uint64_t>(detail::UnitScale::floor(loss * wait_));
    if (confirmed) wait_ = std::min(2 * wait_, longest_wait);
  }

  /// Return the largest known() row count, or 1, and the number of timed passes.
  [[nodiscard]] std::size_t widest() const noexcept { return widest_; }
  [[nodiscard]] std::uint64_t passes() const noexcept { return passes_; }
  /// Returns the number of refits. Costs read from the curve stay valid until this number changes.
  [[nodiscard]] std::uint32_t revision() const noexcept { return revision_; }

  /// Returns the known costs as a prior for the next curve of the same engine.
  [[nodiscard]] CostPrior prior() const noexcept {
    CostPrior learned;
    for (std::size_t i = 1; i < most_rows; ++i)
      if (known(i + 1)) learned.assume(i + 1, fitted_[i]);
    return learned;
  }

 private:
  using Row = detail::RecentSamples<std::uint32_t>;
  static constexpr std::uint32_t half_life = 128;      // passes that halve the believed part of a high cost
  static constexpr std::uint32_t shortest_wait = 192;  // passes after a trial that loses a plain pass or more
  static constexpr std::uint32_t longest_wait = 384;   // the same after another confirmation
  static constexpr Cost most_tried = 5 * cost_one;     // highest cost of a trial of an unknown row count
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t optimistic_slope = to_cost(0.015);  // after the first time; unknown lengths are tried
  static constexpr std::uint64_t prior_rows = 4;                     // number of rows that the given slope counts as

  /// Returns a time above 0 in nanoseconds, at most nine minutes.
  static std::int64_t limited_time(Duration time) noexcept {
    return std::min<std::int64_t>(time.count(), std::int64_t{1} << 39);
  }
  /// Returns the highest plausible cost of i + 1 rows. A pass that costs more than its rows never pays.
  static std::int64_t most_cost(std::size_t i) noexcept {
    return std::int64_t{cost_one + cost_one / 2} * static_cast<std::int64_t>(std::min<std::size_t>(i, 1023) + 1);
  }
  static Cost bounded(std::int64_t cost, std::size_t i) noexcept {
    return static_cast<Cost>(std::clamp<std::int64_t>(cost, cost_one, most_cost(i)));
  }

  /// Returns the cost of a pass that took `nanoseconds` at `context`. Requires a plain time.
  [[nodiscard]] std::int64_t measured_cost(std::int64_t nanoseconds, std::size_t context) const noexcept {
    return detail::UnitScale::divide(line_.at_mean(nanoseconds, context), plain_.value);
  }

  void learn_plain(std::int64_t time, std::size_t context) noexcept {
    const std::int64_t sample = line_.at_mean(time, context);
    line_.learn(time, context);
    if (plain_.count >= 3) usual_.learn(sample, plain_.value);
    if (!plain_.add(sample, sample, usual_, passes_)) return;
    line_ = {};
    become_prior(0);  // the machine is slower or faster, and costs stay
  }
  /// `took`: the measured cost.
  void learn_row(std::size_t rows, std::int64_t took) noexcept {
    if (rows > most_rows) {
      // Otherwise these costs would be believed to be low forever.
      took = cost_one + (took - cost_one) * std::int64_t{most_rows - 1} / static_cast<std::int64_t>(rows - 1);
      rows = most_rows;
    }
    const std::size_t i = rows - 1;
    Row& row = rows_[i];
    const auto sample = static_cast<std::uint32_t>(std::clamp<std::int64_t>(took, cost_one / 2, most_cost(i)));
    // Beyond all known row counts, the expected cost is a guess: a time tells more, even a single one.
    const std::int64_t expected = rows > widest_ ? std::max<std::int64_t>(cost(rows), sample / 2) : cost(rows);
    if (row.count >= 3) usual_.learn(sample, std::max<std::int64_t>(row.value, cost_one / 2));
    const bool old = half_lives(i) > 0;
    if (old && row.trusted && usual_.side(expected, sample) < 0) {
      // An old cost far above a new time is doubted: its samples are forgotten. If it had several, it is now assumed.
      if (row.count > 1) base_ = fitted_, assumed_ |= std::uint64_t{1} << i;
      row.count = 0;
    }
    if (old) row.patience = usual_.side(expected, sample) == 0 ? std::min(row.patience + 1, Row::most_patience) : 0;
    const bool changed = row.add(sample, static_cast<std::uint32_t>(expected), usual_, passes_);
    const bool refuted = old && row.count == 2 && assumes(rows) && usual_.side(expected, row.value) != 0;
    if (changed || refuted) become_prior(i, row.value, expected);
  }
  /// Makes the fitted costs the assumed costs, and forgets all samples except those of i + 1 rows and the plain ones:
  /// the machine or the cost of i + 1 rows has changed. If that cost fell from `before` to `now`, the parts of the
  /// other costs above 1 shrink by the same factor, because they were learned under the same conditions.
  void become_prior(std::size_t i, std::int64_t now = cost_one, std::int64_t before = cost_one) noexcept {
    refit();
    base_ = fitted_;
    const std::int64_t part = std::max<std::int64_t>(now, cost_one) - cost_one;
    const std::int64_t whole = before - cost_one;
    for (std::size_t j = 1; j < most_rows; ++j) {
      if (j == i) continue;
      if (whole > 0 && part < whole)
        base_[j] = static_cast<Cost>(cost_one + (std::int64_t{base_[j]} - cost_one) * part / whole);
      if (known(j + 1)) assumed_ |= std::uint64_t{1} << j;
      const std::uint64_t seen = rows_[j].seen;
      rows_[j] = {};
      rows_[j].seen = seen;
    }
    rows_[i].patience = 0;
    wait_ = shortest_wait;
    refit();
  }
  [[nodiscard]] bool assumes(std::size_t rows) const noexcept {
    return rows >= 1 && rows <= most_rows && (assumed_ >> (rows - 1) & 1) != 0;
  }
  /// Returns how often the part of the cost of i + 1 rows above 1 has been halved: 16 times if it is unknown.
  [[nodiscard]] std::uint32_t half_lives(std::size_t i) const noexcept {
    constexpr std::uint64_t most = 16;
    if (!known(i + 1)) return most;
    return static_cast<std::uint32_t>(std::min((passes_ - rows_[i].seen) / (half_life << rows_[i].patience), most));
  }
  void refit() noexcept {
    ++revision_;
    std::array<detail::MeasuredRow, most_rows> measured;  // NOLINT(*-member-init): filled up to `size`
    std::size_t size = 0;
    for (std::size_t i = 1; i < most_rows; ++i) {
      const Row& row = rows_[i];
      if (!row.trusted) continue;
      measured[size++] = {static_cast<std::int64_t>(i), bounded(row.value, i), row.count, base_[i]};
    }
    // Without assumed costs, the curve rises from a plain pass. Assumed costs can be too high.
    const bool assumed = assumed_ != 0;
    const detail::RowFit fit({measured.data(), size}, usual_.deviation() * usual_.deviation() * 3 / 2, plain_.count,
                             assumed ? 0 : static_cast<std::int64_t>(unknown_slope()),
                             assumed ? -std::int64_t{CostPrior::most_cost} : 0);
    fitted_[0] = cost_one;
    std::size_t last = 0;  // the last known row before i
    const detail::MeasuredRow* row = measured.data();
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!known(i + 1)) continue;
      std::int64_t cost = fit.line(static_cast<std::int64_t>(i), base_[i]);
      if (rows_[i].trusted) {
        const std::int64_t error = detail::UnitScale::multiply(row->cost, margin(i + 1));
        cost = std::clamp(fit.cost(*row), row->cost - error, row->cost + error);
        ++row;
      }
      fitted_[i] = bounded(cost, i);
      const std::int64_t slope = (std::int64_t{fitted_[i]} - fitted_[last]) / static_cast<std::int64_t>(i - last);
      extend(last, i, slope);
      last = i;
    }
    widest_ = last + 1;
    // The slope over the upper half of the known rows, averaged with four rows of unknown_slope(). The step to the
    // second row does not count: many engines change to another kernel there.
    const std::size_t half = std::min(last, std::max<std::size_t>(1, last / 2));
    slope_ = (fitted_[last] - std::min(fitted_[last], fitted_[half]) + prior_rows * unknown_slope()) /
             (last - half + prior_rows);
    extend(last, most_rows, static_cast<std::int64_t>(slope_));
  }
  /// Sets the costs between the row counts `last` and `end` to a line from `last`.
  void extend(std::size_t last, std::size_t end, std::int64_t slope) noexcept {
    for (std::size_t i = last + 1; i < end; ++i)
      fitted_[i] = bounded(fitted_[last] + static_cast<std::int64_t>(i - last) * slope, i);
  }
  /// Returns the slope of rows without times. It is lower once a pass was timed or costs are assumed, so that unknown
  /// lengths are tried.
  [[nodiscard]] std::uint64_t unknown_slope() const noexcept {
    return passes_ == 0 && assumed_ == 0 ? default_slope : optimistic_slope;
  }

  std::uint64_t assumed_ = 0;           // bit i: a cost is assumed for i + 1 rows
  std::array<Cost, most_rows> base_{};  // assumed costs, or the cost of a plain pass
  std::array<Row, most_rows> rows_{};   // costs
  detail::RecentSamples<std::int64_t> plain_;
  detail::UsualError usual_;
  detail::ContextLine line_;
  std::array<Cost, most_rows> fitted_{};
  std::uint64_t slope_ = 0;     // cost per row after the last known row
  std::size_t widest_ = 1;      // the largest known row count
  std::uint32_t revision_ = 0;  // number of refits
  std::uint64_t passes_ = 0;
  std::uint64_t next_trial_ = 0;  // pass number
  std::uint32_t wait_ = shortest_wait;
  bool timed_ = true;                // the last pass was timed
  std::uint32_t untimed_plain_ = 0;  // untimed plain passes that followed timed ones, at most 8
  std::uint64_t last_plain_ = 0;     // passes() at the last plain pass
};

}}}  // namespace reprise::detail
