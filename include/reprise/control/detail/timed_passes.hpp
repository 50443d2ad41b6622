// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/fixed_point.hpp"

/// \file The parts of LearnedCurve: the time of a plain pass, the cost ratio of a row count, and the exploration
/// budget.
namespace reprise::inline v0::detail {

/// Nanoseconds in steps of 2^-8.
using TimeScale = Fixed<8>;

/// The usual relative deviation of a time from its expected value. Errors are clamped to three times this deviation, so
/// one pass in a hundred may take ten times as long without harm.
class UsualError {
 public:
  /// Returns (sample - value) / value in UnitScale, clamped to three usual deviations. Also updates the usual
  /// deviation.
  std::int64_t bounded(std::uint64_t sample, std::uint64_t value) noexcept {
    constexpr std::uint64_t most_times = 64;  // limit of sample / value; keeps the division within 64 bits
    sample = std::min(sample, value * most_times);
    const std::int64_t error = sample >= value ? relative(sample - value, value) : -relative(value - sample, value);
    const std::int64_t bound = 3 * deviation_;
    const std::int64_t size = std::min(error < 0 ? -error : error, deviation_ * 4);
    deviation_ = std::max(least, deviation_ + (size - deviation_) / memory);
    return std::clamp(error, -bound, bound);
  }

 private:
  static constexpr std::int64_t least = 64;   // 0.1%: times are never exact
  static constexpr std::int64_t memory = 32;  // number of errors in the mean

  static std::int64_t relative(std::uint64_t part, std::uint64_t whole) noexcept {
    while (part >= std::uint64_t{1} << 47) part /= 2, whole /= 2;
    return static_cast<std::int64_t>(UnitScale::divide(part, std::max<std::uint64_t>(whole, 1)));
  }

  std::int64_t deviation_ = UnitScale::one / 4;  // mean absolute error
};

/// A value learned from samples. The first three samples seed it; each later sample moves it by a share of its relative
/// error.
struct LearnedValue {
  static constexpr std::uint32_t seeds = 3;    // samples that seed the value
  static constexpr std::uint32_t memory = 64;  // maximum number of samples averaged

  std::uint64_t value = 0;
  std::array<std::uint64_t, 2> early{};
  std::uint32_t count = 0;
  std::uint32_t seen = 0;  // pass number of the last sample
  bool trusted = false;    // sampled three times, or a sample was close to the expected or the first one

  [[nodiscard]] bool seeding() const noexcept { return count < seeds; }

  /// Adds one of the first three samples. The value becomes the smaller of two, then the median of three, because
  /// passes are often accidentally slow but hardly ever fast. If the first sample is within a factor of 4/3 of
  /// `expected`, the mean of both replaces it.
  void seed(std::uint64_t sample, std::uint64_t expected) noexcept {
    trusted = trusted || count + 1 >= seeds || alike(sample, count == 0 ? expected : value);
    if (count == 0 && 3 * std::max(sample, expected) <= 4 * std::min(sample, expected))
      sample = (sample + expected) / 2;
    if (count < early.size()) early[count] = sample;
    const auto [low, high] = std::minmax(early[0], early[1]);
    value = count == 0 ? sample : count == 1 ? low : std::clamp(sample, low, high);
    ++count;
  }
  /// Moves the value by the relative error `error` (in UnitScale) divided by `weight`. The value stays above 0.
  void correct(std::int64_t error, std::uint32_t weight) noexcept {
    const auto size = static_cast<std::uint64_t>(error < 0 ? -error : error) / weight;
    const std::uint64_t change = UnitScale::floor(value) * size + UnitScale::multiply(UnitScale::fraction(value), size);
    value = error < 0 ? value - std::min(change, value - 1) : value + change;
  }
  void count_sample() noexcept { count = std::min(count + 1, memory); }

 private:
  /// Returns true if the numbers differ by at most a factor of 2.5. Steps and noise cause smaller differences;
  /// accidental delays cause larger ones.
  static bool alike(std::uint64_t a, std::uint64_t b) noexcept { return 2 * a <= 5 * b && 2 * b <= 5 * a; }
};

/// The time of a plain pass, which drifts as the context grows.
struct PlainTime : LearnedValue {
  /// The number of samples after which the time counts as settled. Later samples move it by 1/24 of their error and do
  /// not change the ratios.
  static constexpr std::uint32_t settled = 24;

  [[nodiscard]] bool known() const noexcept { return count > 0; }

  void learn(std::uint64_t nanoseconds, UsualError& usual) noexcept {
    const std::uint64_t time = TimeScale::from(nanoseconds);
    if (seeding()) return seed(time, 0);
    count_sample();
    correct(usual.bounded(time, value), std::min(count, settled));
  }
  /// Returns the cost of a pass that took `nanoseconds`, in UnitScale. Requires known() and nanoseconds <= 2^39.
  [[nodiscard]] std::uint64_t cost_of(std::uint64_t nanoseconds) const noexcept {
    return UnitScale::divide(TimeScale::from(nanoseconds), value);
  }
  /// Returns true if a longer pass took less than half of the plain time while the plain time has few samples. In that
  /// case, the plain pass was accidentally slow.
  [[nodiscard]] bool refuted_by(std::uint64_t nanoseconds) const noexcept {
    return seeding() && 2 * TimeScale::from(nanoseconds) < value;
  }
};

/// The cost of one row count: the time of a pass with that many rows, divided by the time of a plain pass, in
/// UnitScale.
struct RowRatio : LearnedValue {
  static constexpr std::uint64_t least = cost_one / 64;
  static constexpr std::uint64_t most = std::uint64_t{cost_one} * 1024;
  static constexpr std::uint32_t stale_after = 512;  // passes; engines warm up and contexts grow

  [[nodiscard]] bool stale(std::uint32_t pass) const noexcept { return pass - seen >= stale_after; }

  /// Learns from pass number `pass`, which took `nanoseconds`. `expected`: the cost of the pass according to the curve.
  void learn(std::uint64_t nanoseconds, std::uint64_t expected, std::uint32_t pass, PlainTime& plain,
             UsualError& usual) noexcept {
    constexpr std::uint32_t well_known = 16;    // samples after which a ratio may correct the plain time
    constexpr std::uint32_t long_unseen = 128;  // minimum number of passes since the last plain one
    const std::uint64_t sample = std::clamp(plain.cost_of(nanoseconds), least, most);
    if (stale(pass)) count = std::min(count, 2 * seeds);
    seen = pass;
    if (seeding()) return seed(sample, expected);
    count_sample();
    const std::int64_t error = usual.bounded(sample, value);
    correct(error, count);
    // An error can come from the ratio or from the plain time. It corrects the plain time only if no plain pass was
    // timed recently. If ratio and plain time always corrected each other, both would drift.
    if (count >= well_known && pass - plain.seen >= long_unseen) plain.correct(error, well_known);
    value = std::clamp(value, least, most);
  }
  /// Adjusts the ratio to a plain time that changes from `before` to `after`.
  void rescale(std::uint64_t before, std::uint64_t after) noexcept {
    if (count == 0) return;
    value = std::clamp(rescaled(value, before, after), least, most);
    for (std::uint64_t& sample : early) sample = rescaled(sample, before, after);
  }

 private:
  /// Returns a x b / c, with a limited to `most`.
  static std::uint64_t rescaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    while (b >= std::uint64_t{1} << 36) b /= 2, c /= 2;
    return std::min(a, most) * b / std::max<std::uint64_t>(c, 1);
  }
};

/// The budget for exploring and probing. Each pass saves 1/256 of a plain pass for exploring. It saves the same amount
/// for probing, or more while few plain times are known. A try or a probe waits until enough is saved, but no probe
/// waits for more than 256 timed passes.
class ExplorationBudget {
 public:
  /// Records whether the time of a pass was measured.
  void begin_pass(bool plain, bool timed) noexcept {
    timed_ = timed;
    if (plain) plain_timed_ = timed;
  }
  void count_pass() noexcept { ++passes_; }
  /// Records that an uncertain row count was sent.
  void spend() noexcept { explored_ = passes_; }

  /// See LearnedCurve::passes().
  [[nodiscard]] std::uint32_t passes() const noexcept { return passes_; }

  /// See LearnedCurve::should_probe_plain().
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely, const PlainTime& plain) const noexcept {
    constexpr std::int64_t longest_wait = 256;
    constexpr std::int64_t longest_close_wait = 16;
    if (passes_ == 0 || !plain_timed_) return false;  // never probes an engine that does not time plain passes
    const std::int64_t since = passes_ - plain.seen;
    if (since >= (closely ? longest_close_wait : longest_wait)) return true;
    // Each pass saves half a plain pass until the first plain time is known. After that, the share falls from 1/16 to
    // 1/256.
    const std::int64_t share = cost_one / (plain.known() ? 8 * std::int64_t{std::min(1 + plain.count, 32U)} : 2);
    return loss <= since * share;
  }
  /// See LearnedCurve::may_explore().
  [[nodiscard]] bool may_explore(std::int64_t loss, const PlainTime& plain) const noexcept {
    constexpr std::uint32_t every = 32;  // passes between two checks, because a check takes time
    constexpr std::int64_t saved = cost_one / 256;
    return timed_ && passes_ % every == 0 && plain.known() && loss <= std::int64_t{passes_ - explored_} * saved;
  }
  /// See LearnedCurve::explored_rows(). `widest`: the largest known row count; `unlimited_rows`: the result if the last
  /// pass was not timed.
  [[nodiscard]] std::size_t rows(const PlainTime& plain, std::size_t widest,
                                 std::size_t unlimited_rows) const noexcept {
    if (!timed_) return unlimited_rows;
    return std::max<std::size_t>({3, plain.count < 2 ? 0 : 2 * widest, passes_ / 8});
  }

 private:
  std::uint32_t passes_ = 0;
  std::uint32_t explored_ = 0;  // value of passes_ when an uncertain row count was last sent
  bool timed_ = true;           // the last pass was timed
  bool plain_timed_ = true;     // the last plain pass was timed
};

}  // namespace reprise::detail
