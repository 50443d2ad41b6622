// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/timed_passes.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/detail/head_forecast.hpp"
#include "reprise/core/limits.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A run of a head for the sequences of a pass.
struct HeadRun {
  std::size_t tokens = 0;     ///< of its longest draft
  std::size_t sequences = 1;  ///< that it drafts for
  std::size_t all = 0;        ///< tokens of all drafts; 0: there is one draft
  std::size_t late = 0;       ///< tokens that were committed in passes without it, of these sequences
};

/// The times of a head's drafts, for each range of lengths: 1, 2, 3 to 4, 5 to 8, and so on. A time that is a surprise
/// is not believed at once (RecentSamples), and the first of a range not if it contradicts what was expected. 2,048
/// passes without a draft of a range halve what is believed of it, so a head that seemed slow is timed again; that time
/// then counts in full.
class HeadTimes {
 public:
  /// `expected`: the time that is believed before the first one; 0: none.
  void learn(std::size_t tokens, std::int64_t nanoseconds, std::int64_t expected) noexcept {
    const std::int64_t time = std::clamp<std::int64_t>(nanoseconds, 1, most_time);
    const std::size_t range = range_of(tokens);
    RecentSamples<std::int64_t>& times = times_[range];
    if (times.count >= 3) usual_.learn(time, times.value);
    times.add(time, times.count > 0 ? times.value : expected > 0 ? expected : time, usual_, 0);
    idle_[range] = 0;
  }
  /// Counts a pass, after what was learned from it.
  void idle() noexcept {
    for (std::uint32_t& passes : idle_) passes = std::min(passes + 1, std::uint32_t{1} << 20);
  }
  /// Returns nanoseconds, or 0 if nothing is known. Lengths that were not timed are taken in proportion to the nearest
  /// range that was, but no shorter draft takes longer.
  [[nodiscard]] std::int64_t forecast(std::size_t tokens) const noexcept {
    return nearest(range_of(tokens), [this](std::size_t range) { return times_[range].count > 0 ? faded(range) : 0; });
  }

  static constexpr std::size_t ranges = 6;
  static std::size_t range_of(std::size_t count) noexcept {
    return std::min(static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(count, 1) - 1)), ranges - 1);
  }
  /// Returns the time of `range`, or one derived from the nearest range that has one, or 0. `at(range)`: the time of a
  /// range; 0: none. More of something is taken to take longer in proportion, and less of it as long.
  template <class At>
  static std::int64_t nearest(std::size_t range, At&& at) noexcept {
    for (std::size_t apart = 0; apart < ranges; ++apart) {
      if (apart <= range)
        if (const std::int64_t below = at(range - apart); below > 0) return below << apart;
      if (range + apart < ranges)
        if (const std::int64_t above = at(range + apart); above > 0) return above;
    }
    return 0;
  }

 private:
  static constexpr std::int64_t most_time = std::int64_t{1} << 39;  // nine minutes
  [[nodiscard]] std::int64_t faded(std::size_t range) const noexcept {
    return std::max(times_[range].value >> std::min(idle_[range] / 2048, 40U), std::int64_t{1});
  }

  std::array<RecentSamples<std::int64_t>, ranges> times_{};
  UsualError usual_;
  std::array<std::uint32_t, ranges> idle_{};  // passes since the last draft
};

/// The cost of a run of a head, in plain passes: told, or learned from times. Before the first time, each token of the
/// longest draft counts as 5% of a plain pass, so the first drafts are short. Times are kept for each range of tokens
/// and of sequences. So a head that takes as long for many sequences as for one is told apart from one that does not.
class HeadCosts {
 public:
  explicit HeadCosts(std::optional<HeadCost> told = {}) noexcept : told_(told) {}

  /// `plain`: the learned time of a plain pass, in nanoseconds; 0: unknown.
  [[nodiscard]] std::int64_t cost(const HeadRun& run, std::int64_t plain) const noexcept {
    if (told_) {
      const auto times = [](std::size_t count, Cost cost) {
        return static_cast<std::int64_t>(std::min(count, most_counted)) * std::int64_t{cost};
      };
      return std::min(std::int64_t{told_->draft} + times(run.tokens, told_->token) +
                          times(run.all == 0 ? run.tokens : run.all, told_->row) + times(run.late, told_->late),
                      most_cost);
    }
    const std::int64_t time = this->time(run);
    return time > 0 && plain > 0 ? in_plain_passes(time, plain) : first_cost(run);
  }
  /// Learns how long a run took, and returns its cost. A time can be wrong by any factor: without told costs, no run
  /// costs more than the burst of the loss budget.
  std::int64_t ran(const HeadRun& run, std::optional<Duration> time, std::int64_t plain) noexcept {
    if (told_) return cost(run, plain);
    const bool timed = time && time->count() > 0;
    if (timed) {
      const std::int64_t known = this->time(run);
      const std::int64_t expected =
          known > 0 ? known : UnitScale::multiply(first_cost(run), std::min(plain, most_time));
      times_[HeadTimes::range_of(run.sequences)].learn(run.tokens, time->count(), expected);
    }
    return std::min<std::int64_t>(timed && plain > 0 ? in_plain_passes(time->count(), plain) : cost(run, plain),
                                  LossBudget::burst);
  }
  /// Counts a pass, after what was learned from it.
  void idle() noexcept {
    for (HeadTimes& times : times_) times.idle();
  }

 private:
  static constexpr std::int64_t most_cost = 1024 * std::int64_t{cost_one};
  static constexpr std::size_t most_counted = 1 << 12;
  static constexpr std::int64_t most_time = std::int64_t{1} << 46;  // nearly a day

  /// Returns the cost that is assumed of a run before its first time.
  static std::int64_t first_cost(const HeadRun& run) noexcept {
    return static_cast<std::int64_t>(std::min<std::size_t>(std::max<std::size_t>(run.tokens, 1), 20)) * to_cost(0.05);
  }
  /// Returns how long a run takes, in nanoseconds; 0: unknown.
  [[nodiscard]] std::int64_t time(const HeadRun& run) const noexcept {
    return HeadTimes::nearest(HeadTimes::range_of(run.sequences),
                              [&](std::size_t range) { return times_[range].forecast(run.tokens); });
  }
  static std::int64_t in_plain_passes(std::int64_t time, std::int64_t plain) noexcept {
    return std::min(UnitScale::divide(std::min(time, most_time), plain), most_cost);
  }

  std::optional<HeadCost> told_;
  std::array<HeadTimes, HeadTimes::ranges> times_{};
};

/// A draft that a head could make.
struct HeadDraft {
  std::size_t tokens = 0;  ///< 0: none is worth anything
  std::int64_t gain = 0;   ///< accepted tokens that it adds to those of the lookup, in UnitScale
};

/// Returns the draft of a head that is worth most, without the cost that every draft has. `price`: the tokens that a
/// plain pass is worth, in UnitScale. `more(tokens)`: the cost of that many tokens.
template <class More>
[[nodiscard]] HeadDraft best_head_draft(const HeadForecast& forecast, std::int64_t price, std::size_t most,
                                        More&& more) noexcept {
  HeadDraft best;
  std::int64_t value = 0;
  forecast.for_each_length(most, [&](std::size_t tokens, std::int64_t promise) {
    const std::int64_t worth = promise - UnitScale::multiply(price, more(tokens));
    if (worth > value) value = worth, best = {tokens, promise};
  });
  const std::int64_t promised = std::exchange(best.gain, forecast.gain);
  if (forecast.promised > 0 && promised > forecast.promised) best.gain = best.gain * promised / forecast.promised;
  return best;
}

}}}  // namespace reprise::detail
