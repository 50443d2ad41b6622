// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/fixed_point.hpp"

/// \file The parts of LearnedCurve: the usual error of a pass time, the effect of the context, the time of a plain
/// pass, the cost of a row count, and the exploration budget.
namespace reprise::inline v0::detail {

/// Nanoseconds in steps of 2^-8.
using TimeScale = Fixed<8>;

/// Returns a time above 0 in nanoseconds, at most nine minutes.
inline std::uint64_t limited_time(std::chrono::nanoseconds time) noexcept {
  return static_cast<std::uint64_t>(std::min<std::int64_t>(time.count(), std::int64_t{1} << 39));
}
/// Returns a context length, at most 2^32 tokens.
inline std::int64_t limited_context(std::size_t context) noexcept {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(context, std::uint64_t{1} << 32));
}

/// The usual relative deviation of a time from its expected value. Errors are clamped to three times this deviation, so
/// one pass in a hundred may take ten times as long without harm.
class UsualError {
 public:
  /// Returns (sample - value) / value in UnitScale. A sample above 64 times the value counts as 64 times the value.
  [[nodiscard]] static std::int64_t of(std::uint64_t sample, std::uint64_t value) noexcept {
    constexpr std::uint64_t most_times = 64;  // limit of sample / value; keeps the division within 64 bits
    sample = std::min(sample, value * most_times);
    return sample >= value ? relative(sample - value, value) : -relative(value - sample, value);
  }
  /// Returns `error`, clamped to three usual deviations. Also updates the usual deviation.
  std::int64_t bounded(std::int64_t error) noexcept {
    const std::int64_t bound = 3 * deviation_;
    const std::int64_t size = std::min(error < 0 ? -error : error, deviation_ * 4);
    deviation_ = std::clamp(deviation_ + (size - deviation_) / memory, least, most);
    return std::clamp(error, -bound, bound);
  }
  /// Returns the mean absolute error, in UnitScale.
  [[nodiscard]] std::int64_t deviation() const noexcept { return deviation_; }

 private:
  static constexpr std::int64_t least = 64;  // 0.1%: times are never exact
  static constexpr std::int64_t most = UnitScale::one;
  static constexpr std::int64_t memory = 32;  // number of errors in the mean

  static std::int64_t relative(std::uint64_t part, std::uint64_t whole) noexcept {
    while (part >= std::uint64_t{1} << 47) part /= 2, whole /= 2;
    return static_cast<std::int64_t>(UnitScale::divide(part, std::max<std::uint64_t>(whole, 1)));
  }

  std::int64_t deviation_ = UnitScale::one / 8;  // mean absolute error
};

/// The relative rise of a time for each token of context, learned from errors: recursive least squares with one
/// coefficient. Attention makes every row more expensive as the context grows.
class ContextSlope {
 public:
  /// Returns the rise over `distance` tokens, in UnitScale.
  [[nodiscard]] std::int64_t rise(std::int64_t distance) const noexcept {
    return rescaled<Scale, UnitScale>(believed_ * distance);
  }
  /// Returns false if the rise is 0 over every distance.
  [[nodiscard]] bool rises() const noexcept { return believed_ != 0; }
  /// Learns from a time that differs from its expected value by `error`, `distance` tokens away from the context where
  /// that value was learned. `usual`: the usual error.
  void learn(std::int64_t distance, std::int64_t error, std::int64_t usual) noexcept {
    // The expected value follows from the believed part of the slope; the fit needs the error of the whole slope.
    error -= rescaled<Scale, UnitScale>((slope_ - believed_) * distance);
    error = std::clamp(error, -UnitScale::one, UnitScale::one);
    weight_ += distance * distance - weight_ / memory;
    slope_ = std::clamp(slope_ + rescaled<UnitScale, Scale>(distance * error) / weight_, -steepest, steepest);
    const std::int64_t size = slope_ < 0 ? -slope_ : slope_;
    const std::int64_t root = std::int64_t{1} << (std::bit_width(static_cast<std::uint64_t>(weight_)) / 2);
    const std::int64_t effect =
        std::min<std::int64_t>(rescaled<Scale, Fixed<28>>(size) * root >> 12, std::int64_t{1} << 24);
    const std::int64_t noise = std::min<std::int64_t>(4 * usual, std::int64_t{1} << 24);
    believed_ = effect <= noise ? 0 : slope_ / 256 * (256 - noise * noise * 256 / (effect * effect));
  }
  /// Returns a distance, limited to a size at which no product overflows.
  [[nodiscard]] static std::int64_t limited(std::int64_t distance) noexcept {
    return std::clamp(distance, -farthest, farthest);
  }

 private:
  using Scale = Fixed<36>;
  static constexpr std::int64_t farthest = std::int64_t{1} << 20;  // tokens
  static constexpr std::int64_t steepest = Scale::one / 512;       // twice the time after 512 tokens
  static constexpr std::int64_t memory = 1024;                     // number of errors in the fit
  static constexpr std::int64_t prior = std::int64_t{1} << 20;     // weight of slope 0: one error at 1,024 tokens

  std::int64_t slope_ = 0;
  std::int64_t believed_ = 0;
  std::int64_t weight_ = prior;
};

/// A value learned from samples at growing contexts. The first three samples seed it; each later sample moves it by a
/// share of its relative error. Three errors in a row on the same side, each above three times the usual error, are a
/// change. The value then starts again from the median of these three samples.
struct LearnedValue {
  static constexpr std::uint32_t seeds = 3;    // samples that seed the value
  static constexpr std::uint32_t memory = 64;  // maximum number of samples averaged
  static constexpr int surprises = 3;          // errors in a row that are a change

  std::uint64_t value = 0;
  std::int64_t context = 0;               // mean context of the samples
  std::array<std::uint64_t, 2> recent{};  // the last two samples
  std::uint32_t count = 0;
  std::uint32_t seen = 0;   // pass number of the last sample
  std::uint32_t since = 0;  // pass number of the first error of the streak
  int streak = 0;           // number of large errors in a row; negative: below the value
  bool trusted = false;     // sampled three times, or the first sample was as expected, or the second like it

  [[nodiscard]] bool seeding() const noexcept { return count < seeds; }

  /// Adds one of the first three samples. If the first sample is close to `expected`, the mean of both replaces it. The
  /// value becomes the mean of two samples if they are close to each other, and the smaller one otherwise, because
  /// passes are often accidentally slow but hardly ever fast. Then it becomes the median of three.
  void seed(std::uint64_t sample, std::uint64_t expected, std::int64_t at) noexcept {
    trusted = trusted || count + 1 >= seeds || alike(sample, count == 0 ? expected : value);
    if (count == 0 && close(sample, expected)) sample = (sample + expected) / 2;
    const std::uint64_t of_two = close(sample, recent[1]) ? (sample + recent[1]) / 2 : std::min(sample, recent[1]);
    value = count == 0 ? sample : count == 1 ? of_two : median(sample);
    remember(sample);
    ++count;
    context += (at - context) / static_cast<std::int64_t>(count);
  }
  /// Counts errors in a row on the same side. Returns true if they are a change.
  bool surprised(std::int64_t error, std::int64_t usual, std::uint32_t pass) noexcept {
    const int side = error > 3 * usual ? 1 : error < -3 * usual ? -1 : 0;
    if (side == 0 || (streak > 0) != (side > 0) || streak == 0) since = pass;
    streak = side == 0 ? 0 : (streak > 0) == (side > 0) ? streak + side : side;
    return streak >= surprises || -streak >= surprises;
  }
  /// Starts again from the median of the last three samples.
  void restart(std::uint64_t sample, std::int64_t at) noexcept {
    value = median(sample);
    context = at;
    count = seeds;
    streak = 0;
  }
  /// Moves the value by the relative error `error` (in UnitScale) divided by `weight`. The value stays above 0.
  void correct(std::int64_t error, std::uint32_t weight, std::int64_t at) noexcept {
    const auto size = static_cast<std::uint64_t>(error < 0 ? -error : error) / weight;
    const std::uint64_t change = UnitScale::floor(value) * size + UnitScale::multiply(UnitScale::fraction(value), size);
    value = error < 0 ? value - std::min(change, value - 1) : value + change;
    context += (at - context) / static_cast<std::int64_t>(weight);
  }
  void remember(std::uint64_t sample) noexcept { recent = {recent[1], sample}; }

 private:
  [[nodiscard]] std::uint64_t median(std::uint64_t sample) const noexcept {
    const auto [low, high] = std::minmax(recent[0], recent[1]);
    return std::clamp(sample, low, high);
  }
  /// Returns true if the numbers differ by at most a factor of 4/3. Noise alone hardly ever causes larger differences.
  static bool close(std::uint64_t a, std::uint64_t b) noexcept { return 3 * std::max(a, b) <= 4 * std::min(a, b); }
  /// Returns true if the numbers differ by at most a factor of 2.5. Steps and noise cause smaller differences;
  /// accidental delays cause larger ones.
  static bool alike(std::uint64_t a, std::uint64_t b) noexcept { return 2 * a <= 5 * b && 2 * b <= 5 * a; }
};

/// The time of a plain pass, which rises with the context.
struct PlainTime : LearnedValue {
  /// The number of samples after which the time counts as settled. Later samples move it by at most 1/25 of their
  /// error and do not change the ratios.
  static constexpr std::uint32_t settled = 24;

  ContextSlope slope;

  [[nodiscard]] bool known() const noexcept { return count > 0; }
  /// Returns the time at a context, in TimeScale.
  [[nodiscard]] std::uint64_t at(std::int64_t ctx) const noexcept {
    const std::int64_t rise = slope.rise(ContextSlope::limited(ctx - context));
    const auto factor =
        static_cast<std::uint64_t>(std::clamp(UnitScale::one + rise, UnitScale::one / 4, 4 * UnitScale::one));
    return std::max<std::uint64_t>(
        1, UnitScale::floor(value) * factor + UnitScale::multiply(UnitScale::fraction(value), factor));
  }

  /// Learns from a plain pass. Returns true if the machine has changed its speed, so the time starts again.
  bool learn(std::uint64_t nanoseconds, std::int64_t ctx, std::uint32_t pass, UsualError& usual) noexcept {
    const std::uint64_t time = TimeScale::from(nanoseconds);
    seen = pass;
    if (seeding()) {
      seed(time, 0, ctx);
      return false;
    }
    const std::int64_t distance = ContextSlope::limited(ctx - context);
    const std::int64_t error = UsualError::of(time, at(ctx));
    const bool changed = surprised(error, usual.deviation(), pass);
    const std::int64_t bounded = usual.bounded(error);
    if (changed) {
      restart(time, ctx);
    } else {
      slope.learn(distance, bounded, usual.deviation());
      count = std::min(count + 1, memory);
      correct(bounded, count, ctx);
    }
    remember(time);
    return changed;
  }
  /// Returns the cost of a pass that took `nanoseconds`, in UnitScale. Requires known() and nanoseconds <= 2^39.
  [[nodiscard]] std::uint64_t cost_of(std::uint64_t nanoseconds, std::int64_t ctx) const noexcept {
    return UnitScale::divide(TimeScale::from(nanoseconds), at(ctx));
  }
  /// Returns true if a pass with more rows took less than half of the plain time, and the plain time has fewer than
  /// three samples. In that case, the plain pass was accidentally slow.
  [[nodiscard]] bool refuted_by(std::uint64_t nanoseconds) const noexcept {
    return seeding() && 2 * TimeScale::from(nanoseconds) < value;
  }
};

/// A pass that took far less than the old cost of its row count.
struct SuspectPass {
  std::size_t rows;
  std::uint64_t took;  // nanoseconds
  std::int64_t context;

  /// Returns its cost by the learned plain time or by one plain pass that took `latest`, whichever is higher.
  [[nodiscard]] std::uint64_t highest_cost(const PlainTime& plain, std::uint64_t latest) const noexcept {
    return std::max(plain.cost_of(took, context), UnitScale::divide(took, std::max<std::uint64_t>(latest, 1)));
  }
};

/// The cost of one row count: the time of a pass with that many rows, divided by the time of a plain pass, in
/// UnitScale.
struct RowRatio : LearnedValue {
  static constexpr std::uint64_t least = cost_one / 64;
  static constexpr std::uint64_t most = std::uint64_t{cost_one} * 1024;

  /// Returns the number of half-lives since the last sample: after each, half of a high cost is no longer believed.
  [[nodiscard]] std::uint32_t age(std::uint32_t pass) const noexcept { return (pass - seen) / half_life; }

  /// Learns from pass number `pass`. `sample`: its measured cost. `expected`: its cost according to the curve.
  /// `rise`: the learned rise of the cost from the mean context of this row count to the context of the pass. Returns
  /// true if the cost has changed, so the ratio starts again.
  bool learn(std::uint64_t sample, std::uint64_t expected, std::int64_t rise, std::int64_t ctx, std::uint32_t pass,
             const PlainTime& plain, UsualError& usual) noexcept {
    sample = std::clamp(sample, least, most);
    if (pass - seen >= stale_after) count = std::min(count, 2 * seeds);
    seen = pass;
    if (seeding()) {
      seed(sample, expected, ctx);
      return false;
    }
    const auto here =
        static_cast<std::uint64_t>(std::max<std::int64_t>(static_cast<std::int64_t>(value) + rise, cost_one / 2));
    const std::int64_t error = UsualError::of(sample, here);
    const bool surprise = surprised(error, usual.deviation(), pass);
    const bool changed = surprise && plain.streak == 0 && plain.seen >= since;
    const std::int64_t bounded = usual.bounded(error);
    if (changed) {
      restart(sample, ctx);
    } else {
      count = std::min(count + 1, memory);
      correct(bounded, count, ctx);
    }
    remember(sample);
    value = std::clamp(value, least, most);
    return changed;
  }
  /// Starts again from one sample, whose pass had number `pass`.
  void refute(std::uint64_t sample, std::int64_t ctx, std::uint32_t pass) noexcept {
    value = sample;
    recent = {sample, sample};
    context = ctx;
    count = 1;
    seen = pass;
    streak = 0;
  }
  /// Adjusts the ratio to a plain time that changes from `before` to `after`.
  void rescale(std::uint64_t before, std::uint64_t after) noexcept {
    if (count == 0) return;
    value = std::clamp(rescaled(value, before, after), least, most);
    for (std::uint64_t& sample : recent) sample = rescaled(sample, before, after);
  }

 private:
  static constexpr std::uint32_t half_life = 128;    // passes
  static constexpr std::uint32_t stale_after = 512;  // passes; engines warm up

  /// Returns a x b / c, with a limited to `most`.
  static std::uint64_t rescaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    while (b >= std::uint64_t{1} << 36) b /= 2, c /= 2;
    return std::min(a, most) * b / std::max<std::uint64_t>(c, 1);
  }
};

/// Decides when the next pass may be spent on learning the cost of a row count. The wait after such a pass is 128
/// passes for each plain pass that it lost. Each time such a pass confirms the expected cost, this number doubles, up
/// to 1,024. After a change it is 128 again.
class Search {
 public:
  [[nodiscard]] bool due(std::uint32_t pass) const noexcept { return pass >= next_; }
  /// Sets the wait after pass number `pass`, which lost `loss` plain passes (in UnitScale). `confirmed`: its cost was
  /// about as expected.
  void wait(std::uint32_t pass, std::int64_t loss, bool confirmed) noexcept {
    next_ = pass + static_cast<std::uint32_t>(UnitScale::floor(std::clamp<std::int64_t>(loss, 0, most) * wait_));
    if (confirmed) wait_ = std::min(2 * wait_, longest);
  }
  /// Searches soon again: a cost has changed.
  void restart(std::uint32_t pass) noexcept {
    if (wait_ > shortest) next_ = std::min(next_, pass + 2 * shortest);
    wait_ = shortest;
  }

 private:
  static constexpr std::int64_t most = 8 * std::int64_t{cost_one};
  static constexpr std::uint32_t shortest = 128;  // passes for each plain pass lost
  static constexpr std::uint32_t longest = 1024;

  std::uint32_t next_ = 0;  // pass number
  std::uint32_t wait_ = shortest;
};

/// Limits the passes that are spent on learning costs. There are three kinds:
///
///  * Probes time a plain pass. Each pass saves 1/256 of a plain pass for probes, or more while few plain times are
///    known. No probe waits for more than 256 timed passes.
///  * Tries time a row count of uncertain cost.
///  * Checks time a row count whose old cost may be far too high.
class ExplorationBudget {
 public:
  Search tries;
  Search checks;

  /// Records whether the time of a pass was measured.
  void begin_pass(bool plain, bool timed) noexcept {
    timed_ = timed;
    if (!plain) return;
    untimed_plain_ = timed ? 0 : std::min(untimed_plain_ + 1, 8U);
    last_plain_ = passes_;
  }
  void count_pass() noexcept { ++passes_; }
  /// Searches soon again: a cost has changed.
  void restart() noexcept {
    tries.restart(passes_);
    checks.restart(passes_);
  }

  /// See LearnedCurve::passes().
  [[nodiscard]] std::uint32_t passes() const noexcept { return passes_; }

  /// See LearnedCurve::should_probe_plain().
  [[nodiscard]] bool should_probe_plain(std::int64_t loss, bool closely, const PlainTime& plain) const noexcept {
    constexpr std::int64_t longest_wait = 256;
    constexpr std::int64_t longest_close_wait = 16;
    if (passes_ == 0) return false;
    // An engine may not time some plain passes, or none. A missing time delays the next probe, and the second one in
    // a row twice as long.
    if (untimed_plain_ > 0 && passes_ - last_plain_ < std::uint32_t{16} << untimed_plain_) return false;
    const std::int64_t since = passes_ - plain.seen;
    if (since >= (closely ? longest_close_wait : longest_wait)) return true;
    // Each pass saves half a plain pass until the first plain time is known. After that, the share falls from 1/16 to
    // 1/256.
    const std::int64_t probe_share = cost_one / (plain.known() ? 8 * std::int64_t{std::min(1 + plain.count, 32U)} : 2);
    return loss <= since * probe_share;
  }
  /// Returns true if `search` is due. The search takes time, so the result is true in at most one of eight passes.
  [[nodiscard]] bool due(const Search& search, const PlainTime& plain) const noexcept {
    return timed_ && passes_ % 8 == 0 && plain.known() && search.due(passes_);
  }
  /// See LearnedCurve::explored_rows(). `widest`: the largest known row count; `unlimited_rows`: the result if the last
  /// pass was not timed.
  [[nodiscard]] std::size_t rows(const PlainTime& plain, std::size_t widest,
                                 std::size_t unlimited_rows) const noexcept {
    if (!timed_) return unlimited_rows;
    return std::max<std::size_t>({3, plain.count < 2 ? 0 : 2 * widest, passes_ / 32});
  }

 private:
  std::uint32_t passes_ = 0;
  bool timed_ = true;                // the last pass was timed
  std::uint32_t untimed_plain_ = 0;  // plain passes since the last timed one, at most 8
  std::uint32_t last_plain_ = 0;     // passes() at the last plain pass
};

}  // namespace reprise::detail
