// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/control/cost_curve.hpp"
#include "reprise/evidence/isotonic.hpp"

namespace reprise {

/// The cost curve of one engine, learned from the times of its passes (one sequence each).
///
/// Two things are tracked: the time of a plain pass, which drifts as the context grows, and for each number of rows
/// the ratio to it, corrected while the first plain times are being averaged. The first time of a row count is believed
/// if it is about what was expected, else the second if it is like the first, else the median of three. Later ones move
/// the ratio by their relative error over the number of times seen (at most 64 are remembered), held within three times
/// the usual deviation: one pass in a hundred may take ten times as long without harm. In long stretches without a
/// plain pass, the plain time is corrected by what well known ratios deviate.
///
/// Reading: ratios are made to rise with the rows (pool adjacent violators, weighted by the times seen), which takes
/// out most of the noise and keeps steps sharp; curves that fall somewhere are learned as flat there. Behind a known
/// row count, the slope of the upper half of those up to it goes on, counted together with four rows of the prior
/// (CostCurve::default_per_row before there are times, 0.015 then), but not above the line to the next known one. That
/// is rather low, so that lengths which were never sent get tried.
///
/// What was learned can be outdated, or one slow pass can have given a row count a bad name: hopeful() says what such a
/// row count might cost at best, and may_try() whether a try is due. Tries are expected to cost at most a 256th of all
/// passes.
///
/// Integers only; 3 kB; nothing allocates. learn(): some ten operations, and a hundred times that when the curve is
/// read anew (every time at first, every eighth time later). Threads: one at a time.
class LearnedCurve {
 public:
  static constexpr std::size_t most_rows = 64;

  LearnedCurve() noexcept { refit(); }

  /// A pass took `time`, if that was measured. `plain`: it carried no draft; a ratio of its rows that is not 1 is then
  /// believed, and the plain time learned from it.
  void learn(std::size_t rows, bool plain, std::optional<std::chrono::nanoseconds> measured) noexcept {
    timed_ = measured && measured->count() > 0;
    if (plain) plain_timed_ = timed_;
    if (!timed_ || rows == 0 || rows > most_rows) return;
    const auto took = static_cast<std::uint64_t>(std::min<std::int64_t>(measured->count(), most_time));
    ++passes_;
    if (plain) {
      learn_plain(std::max<std::uint64_t>(1, (took << 16) / cost(rows)));
    } else if (plain_.count > 0) {
      if (plain_.count < enough && (took << 9) < plain_.value) return forget();  // that plain pass was an accident
      if (uncertain(rows)) tried_ = passes_;
      learn_rows(rows_[rows - 1], took, cost(rows));
    }
    if (passes_ < 512 || passes_ % 8 == 0) refit();
  }

  /// What `rows` rows in one pass are expected to cost.
  [[nodiscard]] Cost cost(std::size_t rows) const noexcept {
    if (rows == 0) return cost_one;
    if (rows <= most_rows) return fitted_[rows - 1];
    const std::uint64_t beyond = std::min<std::uint64_t>(rows - most_rows, 1 << 16);
    return static_cast<Cost>(std::min<std::uint64_t>(fitted_[most_rows - 1] + beyond * slope_, largest));
  }

  /// Should the next pass be plain, to see what that takes? `loss`: what is expected to be lost by it, in plain passes.
  /// Where a draft is worth little the time of a plain pass is nearly free, so that is waited for: a 256th of a plain
  /// pass is saved up with every pass, more of it while few times are known. `closely`: one in 16 is wanted anyway.
  [[nodiscard]] bool wants_plain(std::int64_t loss, bool closely) const noexcept {
    if (passes_ == 0 || !plain_timed_) return false;  // an engine that does not time plain passes is not asked for them
    const std::int64_t since = passes_ - plain_.seen;
    if (since >= (closely ? 16 : 256)) return true;
    const std::int64_t share = cost_one / (plain_.count == 0 ? 2 : 8 * std::int64_t{std::min(1 + plain_.count, 32U)});
    return loss <= since * share;
  }
  /// The most rows that the next pass should have: what lies far beyond all that was timed may be dear. After a few
  /// hundred passes there is no limit, nor for an engine that measures nothing.
  [[nodiscard]] std::size_t reach() const noexcept {
    if (!timed_) return most_rows + 1;
    return std::max<std::size_t>({3, plain_.count < 2 ? 0 : 2 * widest_, passes_ / 8});
  }

  /// Not known well: never seen, nor believed yet, or not seen for 512 passes.
  [[nodiscard]] bool uncertain(std::size_t rows) const noexcept {
    if (rows < 2 || rows > most_rows) return false;
    const Row& row = rows_[rows - 1];
    return !row.sound || passes_ - row.seen >= stale;
  }
  /// What such a row count costs at best: not believed, as much as the nearest certain one below; long ago, half of
  /// what it cost above a plain pass.
  [[nodiscard]] Cost hopeful(std::size_t rows) const noexcept {
    if (!uncertain(rows)) return cost(rows);
    if (rows_[rows - 1].sound) return cost_one + (cost(rows) - cost_one) / 2;
    std::size_t below = rows - 1;
    while (below > 1 && uncertain(below)) --below;
    return cost(below);
  }
  /// What a pass has cost that took `time`, as measured, but within two and a half times what was expected.
  [[nodiscard]] Cost measured(std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (plain_.count == 0 || time.count() <= 0) return cost(rows);
    const auto took = static_cast<std::uint64_t>(std::min<std::int64_t>(time.count(), most_time));
    return static_cast<Cost>(std::min((took << 24) / plain_.value, std::uint64_t{cost(rows)} * 5 / 2));
  }
  /// Is a try that is expected to lose so much allowed now? A 256th of a plain pass is saved up with every pass.
  [[nodiscard]] bool may_try(std::int64_t loss) const noexcept {
    return timed_ && passes_ % 32 == 0 && plain_.count > 0 && loss <= std::int64_t{passes_ - tried_} * (cost_one / 256);
  }

  /// Passes whose time was learned from. What was read from the curve holds until this changes.
  [[nodiscard]] std::uint32_t passes() const noexcept { return passes_; }

 private:
  static constexpr std::int64_t most_time = std::int64_t{1} << 39;  // nine minutes
  static constexpr std::uint32_t enough = 3;
  static constexpr std::uint32_t memory = 64;
  static constexpr std::uint32_t stale = 512;
  static constexpr std::uint64_t least = cost_one / 64;
  static constexpr std::uint64_t largest = std::uint64_t{cost_one} << 10;
  static constexpr std::uint64_t default_slope = to_cost(CostCurve::default_per_row);
  static constexpr std::uint64_t hoped_slope = to_cost(0.015);  // once there are times: what was never sent gets tried
  static constexpr std::uint64_t prior_rows = 4;

  /// The plain time in nanoseconds x 2^8, or a ratio.
  struct Row {
    std::uint64_t value = 0;
    std::array<std::uint64_t, 2> early{};
    std::uint32_t count = 0;
    std::uint32_t seen = 0;  // passes_ at the last time
    bool sound = false;      // it can be believed: seen often enough, or as was to be expected

    /// The first few values: the smaller, then the median, because a pass is slow by accident, hardly ever fast.
    void begin_with(std::uint64_t sample, std::uint64_t expected) noexcept {
      sound = sound || count + 1 >= enough || alike(sample, count == 0 ? expected : value);
      if (count == 0 && 3 * std::max(sample, expected) <= 4 * std::min(sample, expected))
        sample = (sample + expected) / 2;
      if (count < early.size()) early[count] = sample;
      const auto [low, high] = std::minmax(early[0], early[1]);
      value = count == 0 ? sample : count == 1 ? low : std::clamp(sample, low, high);
      ++count;
    }
    /// Within a factor of two and a half: more than steps and noise do, less than an accident.
    static bool alike(std::uint64_t a, std::uint64_t b) noexcept { return 2 * a <= 5 * b && 2 * b <= 5 * a; }
  };

  void learn_plain(std::uint64_t time) noexcept {
    plain_.seen = passes_;
    rescale_plain([&] {
      if (plain_.count < enough) return plain_.begin_with(time << 8, 0);
      plain_.count = std::min(plain_.count + 1, memory);
      correct(plain_.value, bounded_error(time << 8, plain_.value), std::min<std::uint32_t>(plain_.count, 24));
    });
  }
  void forget() noexcept {
    plain_ = {};
    rows_.fill({});
    refit();
  }
  /// As long as the plain time is still being found, the ratios to it move with it.
  template <class Change>
  void rescale_plain(Change&& change) noexcept {
    const std::uint64_t before = plain_.value;
    change();
    if (before == 0 || plain_.count >= 24) return;
    for (Row& row : rows_) {
      if (row.count == 0) continue;
      row.value = std::clamp(rescaled(row.value, before, plain_.value), least, largest);
      for (std::uint64_t& early : row.early) early = rescaled(early, before, plain_.value);
    }
  }
  void learn_rows(Row& row, std::uint64_t time, std::uint64_t expected) noexcept {
    const std::uint64_t sample = std::clamp((time << 24) / plain_.value, least, largest);
    if (passes_ - row.seen >= stale) row.count = std::min<std::uint32_t>(row.count, 2 * enough);
    row.seen = passes_;
    if (row.count < enough) return row.begin_with(sample, expected);
    row.count = std::min(row.count + 1, memory);
    const std::int64_t error = bounded_error(sample, row.value);
    correct(row.value, error, row.count);
    // Who is wrong, the ratio or the plain time? Only where plain passes are never timed can it be the latter: else
    // both wander off together.
    if (row.count >= 16 && passes_ - plain_.seen >= 128) correct(plain_.value, error, 16);
    row.value = std::clamp(row.value, least, largest);
  }
  /// The relative error, 2^16 is one, within three usual deviations; and learns what is usual.
  std::int64_t bounded_error(std::uint64_t sample, std::uint64_t value) noexcept {
    constexpr std::uint64_t many = 64;  // times as much as expected; keeps the shift from overflowing
    sample = std::min(sample, value * many);
    const std::int64_t error = sample >= value ? scaled(sample - value, value) : -scaled(value - sample, value);
    const std::int64_t bound = 3 * deviation_;
    constexpr std::int64_t least_deviation = 64;
    const std::int64_t size = std::min(error < 0 ? -error : error, deviation_ * 4);
    deviation_ = std::max(least_deviation, deviation_ + (size - deviation_) / 32);
    return std::clamp(error, -bound, bound);
  }
  static std::int64_t scaled(std::uint64_t part, std::uint64_t whole) noexcept {
    while (part >= std::uint64_t{1} << 47) part >>= 1, whole >>= 1;
    return static_cast<std::int64_t>((part << 16) / std::max<std::uint64_t>(whole, 1));
  }
  static std::uint64_t rescaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    while (b >= std::uint64_t{1} << 36) b >>= 1, c >>= 1;
    return std::min<std::uint64_t>(a, largest) * b / std::max<std::uint64_t>(c, 1);
  }
  static void correct(std::uint64_t& value, std::int64_t error, std::uint32_t weight) noexcept {
    const auto size = static_cast<std::uint64_t>(error < 0 ? -error : error) / weight;
    const std::uint64_t change = (value >> 16) * size + ((value & 0xFFFF) * size >> 16);
    value = error < 0 ? value - std::min(change, value - 1) : value + change;
  }

  void refit() noexcept {
    detail::IsotonicPools<most_rows> pools;
    for (std::size_t i = 1; i < most_rows; ++i)
      if (rows_[i].sound) pools.add(rows_[i].value, std::min<std::uint32_t>(rows_[i].count, 64));
    fitted_[0] = cost_one;
    std::size_t last = 0;  // the known row before
    for (std::size_t i = 1; i < most_rows; ++i) {
      if (!rows_[i].sound) continue;
      fitted_[i] = static_cast<Cost>(std::max<std::uint64_t>(pools.next(), cost_one));
      const std::uint64_t rise = std::min<std::uint64_t>((fitted_[i] - fitted_[last]) / (i - last), slope_at(last));
      for (std::size_t j = last + 1; j < i; ++j) fitted_[j] = static_cast<Cost>(fitted_[last] + (j - last) * rise);
      last = i;
    }
    widest_ = last + 1;
    slope_ = slope_at(last);
    for (std::size_t i = last + 1; i < most_rows; ++i)
      fitted_[i] = static_cast<Cost>(std::min<std::uint64_t>(fitted_[last] + (i - last) * slope_, largest));
  }

  /// How the cost goes on behind a known row: as in the upper half of those up to it, and four rows of the prior.
  [[nodiscard]] std::uint64_t slope_at(std::size_t i) const noexcept {
    const std::size_t half = i / 2;
    return (fitted_[i] - fitted_[half] + prior_rows * (passes_ == 0 ? default_slope : hoped_slope)) /
           (i - half + prior_rows);
  }

  std::array<Row, most_rows> rows_{};
  Row plain_;  // nanoseconds x 2^8
  std::array<Cost, most_rows> fitted_{};
  std::uint64_t slope_ = 0;         // beyond the last known row
  std::int64_t deviation_ = 16384;  // mean size of the relative error, 2^16 is one
  std::uint32_t passes_ = 0;
  std::size_t widest_ = 1;   // the most rows that are known
  bool timed_ = true;        // the last pass was
  bool plain_timed_ = true;  // the last plain pass was
  std::uint32_t tried_ = 0;  // passes_ when an uncertain row count was sent last
};

}  // namespace reprise
