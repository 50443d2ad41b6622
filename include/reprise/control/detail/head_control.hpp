// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/timed_passes.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/detail/head_forecast.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The times of a head's drafts, for each range of lengths: 1, 2, 3 to 4, 5 to 8, and so on. A time that is a surprise
/// is not believed at once (RecentSamples). 2,048 passes without a draft halve what is believed, so a head that seemed
/// slow is timed again; that time then counts in full.
class HeadTimes {
 public:
  void learn(std::size_t tokens, std::int64_t nanoseconds) noexcept {
    const std::int64_t time = std::clamp<std::int64_t>(nanoseconds, 1, most_time);
    RecentSamples<std::int64_t>& times = times_[range_of(tokens)];
    if (times.count >= 3) usual_.learn(time, times.value);
    times.add(time, times.count > 0 ? times.value : time, usual_, 0);
    idle_ = 0;
  }
  void idle() noexcept { idle_ = std::min(idle_ + 1, std::uint32_t{1} << 20); }
  /// Returns nanoseconds, or 0 if nothing is known. Lengths that were not timed are taken in proportion to the nearest
  /// range that was, but no shorter draft takes longer.
  [[nodiscard]] std::int64_t forecast(std::size_t tokens) const noexcept {
    const std::size_t range = range_of(tokens);
    for (std::size_t apart = 0; apart < ranges; ++apart) {
      if (apart <= range && times_[range - apart].count > 0) return faded(times_[range - apart].value << apart);
      if (range + apart < ranges && times_[range + apart].count > 0) return faded(times_[range + apart].value);
    }
    return 0;
  }

 private:
  static constexpr std::size_t ranges = 6;
  static constexpr std::int64_t most_time = std::int64_t{1} << 39;  // nine minutes
  static std::size_t range_of(std::size_t tokens) noexcept {
    return std::min(static_cast<std::size_t>(std::bit_width(std::max<std::size_t>(tokens, 1) - 1)), ranges - 1);
  }
  [[nodiscard]] std::int64_t faded(std::int64_t time) const noexcept { return time >> std::min(idle_ / 2048, 40U); }

  std::array<RecentSamples<std::int64_t>, ranges> times_{};
  UsualError usual_;
  std::uint32_t idle_ = 0;  // passes since the last draft
};

/// A cost that is granted to a draft of the head. A copy is a fork, which has no such draft.
struct Granted {
  Granted() noexcept = default;
  Granted(const Granted&) noexcept {}
  Granted(Granted&& other) noexcept : cost(std::exchange(other.cost, 0)) {}
  Granted& operator=(const Granted&) noexcept {
    cost = 0;
    return *this;
  }
  Granted& operator=(Granted&& other) noexcept {
    cost = std::exchange(other.cost, 0);
    return *this;
  }
  ~Granted() = default;

  std::int64_t cost = 0;
};

/// Decides in each pass whether a draft head or draft model runs beside the lookup, and how far, and sends the part of
/// both drafts that is worth its cost: a CostControl that knows the head's cost too.
///
/// The head runs if the tokens that it adds (HeadForecast::gain) are worth its time, at the recent tokens per plain
/// pass, and if the loss budget covers its time and its rows. Its draft ends before the first token that is not worth
/// its row.
///
/// The head's cost is told, or learned from the times that the caller reports; before the first time, it counts as 5%
/// of a plain pass. With told costs of passes, its cost must be told too. The loss budget is charged for a head before
/// it runs, so its bound holds for passes and head together: a head that has become bad loses at most 10 plain passes
/// in any 1,000 at told costs. What the head takes beyond its told cost is not counted.
///
/// Threads: as CostControl.
class HeadControl : public CostControl {
 public:
  /// `head`: the cost of a draft of the head; nullopt: learned.
  explicit HeadControl(CostOptions options = {}, std::optional<HeadCost> head = {}) noexcept
      : CostControl(std::move(options)), told_(head) {}

  void begin() noexcept {
    give_back();
    CostControl::begin();
  }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) noexcept {
    room_ = std::min(room.nodes, room.depth);
    return CostControl::choose(draft, sendable, room);
  }
  /// Returns how long a chain can be in the pass that was planned last.
  [[nodiscard]] std::size_t room() const noexcept { return room_; }

  /// Returns how many tokens the head should draft, at most `most`; 0: it should not run. Charges the loss budget. A
  /// head that is asked for must run and be reported by head_ran(), or the charge is taken back with the next pass.
  /// `plain`: the shape of the pass without a draft.
  [[nodiscard]] std::size_t ask_head(const HeadForecast& forecast, const PassShape& plain,
                                     std::size_t most = HeadForecast::most_tokens) noexcept {
    give_back();
    const std::size_t tokens = best_length(forecast, plain, std::min(most, HeadForecast::most_tokens));
    if (tokens == 0) return 0;
    const std::int64_t cost = head_cost(tokens);
    if (cost + rows_cost(plain, tokens) > loss_budget().allowance()) return 0;
    if (forecast.gain <= UnitScale::multiply(price(), cost)) return 0;
    if (!spend(static_cast<Cost>(cost))) return 0;
    granted_.cost = cost;
    return tokens;
  }
  /// Reports that the head has drafted, before the pass is planned. `time`: how long it took; unused if its cost is
  /// told.
  void head_ran(std::size_t tokens, std::optional<Duration> time = {}) noexcept {
    ran_ = true;
    const bool timed = !told_ && time && time->count() > 0;
    if (timed) times_.learn(tokens, time->count());
    const std::int64_t plain = learned().plain_time();
    std::int64_t cost = head_cost(tokens);
    if (timed && plain > 0) cost = in_plain_passes(time->count(), plain);
    // A time can be wrong by any factor: no draft is charged more than the burst of the loss budget.
    if (!told_) cost = std::min<std::int64_t>(cost, LossBudget::burst);
    correct(std::exchange(granted_.cost, 0) - cost);
    spent(static_cast<Cost>(cost));
  }
  /// Returns the cost of a draft, in plain passes.
  [[nodiscard]] std::int64_t head_cost(std::size_t tokens) const noexcept {
    const auto count = static_cast<std::int64_t>(std::min<std::size_t>(tokens, most_draft_nodes));
    if (told_) return std::min(std::int64_t{told_->draft} + count * told_->token, most_cost);
    const std::int64_t time = times_.forecast(tokens);
    const std::int64_t plain = learned().plain_time();
    return time > 0 && plain > 0 ? in_plain_passes(time, plain) : std::int64_t{to_cost(0.05)};
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    give_back();
    CostControl::learn(outcome, report);
    if (!std::exchange(ran_, false)) times_.idle();
  }

 private:
  static constexpr std::int64_t most_cost = 1024 * std::int64_t{cost_one};

  static std::int64_t in_plain_passes(std::int64_t time, std::int64_t plain) noexcept {
    constexpr std::int64_t most = std::int64_t{1} << 46;
    return std::min(UnitScale::divide(std::min(time, most), plain), most_cost);
  }
  /// Takes back the charge for a head that has not run.
  void give_back() noexcept {
    if (granted_.cost != 0) correct(std::exchange(granted_.cost, 0));
  }
  /// Returns the value of a plain pass, in tokens.
  [[nodiscard]] std::int64_t price() const noexcept { return std::min(throughput(), most_rate); }
  /// Returns the cost of `tokens` more rows.
  [[nodiscard]] std::int64_t rows_cost(const PassShape& plain, std::size_t tokens) const noexcept {
    return std::int64_t{cost({plain.sequences, plain.rows + tokens, plain.context})} - cost(plain);
  }
  /// Returns the length that is worth most, without the cost that every draft has.
  [[nodiscard]] std::size_t best_length(const HeadForecast& forecast, const PassShape& plain,
                                        std::size_t most) const noexcept {
    const std::int64_t first = head_cost(1);
    std::int64_t path = UnitScale::one;
    std::int64_t sum = 0;
    std::size_t best = 0;
    std::int64_t value = 0;
    for (std::size_t tokens = 1; tokens <= most; ++tokens) {
      path = ProbabilityScale::multiply(path, std::int64_t{forecast.rates[tokens - 1].raw()});
      sum += path;
      const std::int64_t more = rows_cost(plain, tokens) + std::max<std::int64_t>(head_cost(tokens) - first, 0);
      const std::int64_t worth = sum - UnitScale::multiply(price(), more);
      if (worth > value) value = worth, best = tokens;
    }
    return best;
  }

  std::optional<HeadCost> told_;
  HeadTimes times_;
  Granted granted_;
  std::size_t room_ = 0;
  bool ran_ = false;  // since the last pass
};
static_assert(DraftControl<HeadControl>);

}}}  // namespace reprise::detail
