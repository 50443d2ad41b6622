// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/head_forecast.hpp"

namespace reprise { inline namespace v0 {

/// The cost of a draft of a head, in plain passes (to_cost()).
struct HeadCost {
  Cost draft = 0;  ///< of any draft
  Cost token = 0;  ///< of each token that it drafts
  Cost late = 0;   ///< of each committed token that it has not processed yet, before it drafts
};

}}  // namespace reprise

namespace reprise { inline namespace v0 { namespace detail {

/// The time of a head's draft, as a line over its tokens: means over about the last 32 drafts.
class HeadTimes {
 public:
  void learn(std::size_t tokens, std::int64_t nanoseconds) noexcept {
    std::int64_t time = std::clamp<std::int64_t>(nanoseconds, 1, most_time);
    if (count_ >= 3) time = std::min(time, 4 * std::max<std::int64_t>(forecast(tokens), 1));  // one slow draft is noise
    count_ = std::min(count_ + 1, std::int64_t{32});
    const std::int64_t from_mean = scaled(tokens) - tokens_;
    const std::int64_t longer = time - time_;
    tokens_ += from_mean / count_;
    time_ += longer / count_;
    square_ += (UnitScale::multiply(from_mean, from_mean) - square_) / count_;
    product_ += (UnitScale::multiply(from_mean, longer) - product_) / count_;
  }
  /// Lets a time that keeps the head from running fade, so that it is measured again.
  void fade() noexcept {
    time_ -= time_ / 1024;
    product_ -= product_ / 1024;
  }
  [[nodiscard]] bool known() const noexcept { return count_ > 0; }
  /// Returns nanoseconds.
  [[nodiscard]] std::int64_t forecast(std::size_t tokens) const noexcept {
    // Nanoseconds a token: the scale of the variance cancels that of the quotient.
    const std::int64_t slope = square_ > 0 ? std::max<std::int64_t>(UnitScale::divide(product_, square_), 0) : 0;
    return std::max<std::int64_t>(time_ + UnitScale::multiply(slope, scaled(tokens) - tokens_), 0);
  }

 private:
  static constexpr std::int64_t most_time = std::int64_t{1} << 33;  // 8.6 s
  static std::int64_t scaled(std::size_t tokens) noexcept {
    return UnitScale::from(static_cast<std::int64_t>(std::min<std::size_t>(tokens, 1 << 12)));
  }
  std::int64_t tokens_ = 0;   // mean, in UnitScale
  std::int64_t time_ = 0;     // mean
  std::int64_t square_ = 0;   // variance of tokens, in UnitScale
  std::int64_t product_ = 0;  // covariance of tokens and time, in tokens x nanoseconds
  std::int64_t count_ = 0;
};

}}}  // namespace reprise::detail

namespace reprise { inline namespace v0 {

/// Decides in each pass whether a draft head or draft model runs beside the lookup, and how far, and sends the part of
/// both drafts that is worth its cost: a CostControl that knows the head's cost too.
///
/// The head runs if the tokens that it adds (HeadForecast::gain) are worth its time, at the recent tokens per plain
/// pass, and if the loss budget covers that time. Its draft ends before the first token that is not worth its row.
///
/// The head's cost is told, or learned from the times that the caller reports; before the first time, it counts as 5%
/// of a plain pass. With told costs of passes, its cost must be told too. The bound of LossBudget holds for passes and
/// head together: a head that has become bad loses at most 10 plain passes in any 1,000 at told costs.
///
/// Threads: as CostControl.
class HeadControl : public CostControl {
 public:
  /// `head`: the cost of a draft of the head; nullopt: learned.
  explicit HeadControl(CostOptions options = {}, std::optional<HeadCost> head = {}) noexcept
      : CostControl(std::move(options)), told_(head) {}

  /// Returns how many tokens the head should draft, at most `most`; 0: it should not run. `plain`: the shape of the
  /// pass without a draft. `late`: committed tokens that the head has not processed.
  [[nodiscard]] std::size_t head_tokens(const HeadForecast& forecast, const PassShape& plain, std::size_t late = 0,
                                        std::size_t most = HeadForecast::most_tokens) const noexcept {
    const std::size_t tokens = best_length(forecast, plain, std::min(most, HeadForecast::most_tokens));
    if (tokens == 0) return 0;
    const std::int64_t cost = head_cost(tokens, late);
    if (forecast.gain <= detail::UnitScale::multiply(throughput(), cost)) return 0;
    return cost <= loss_budget().allowance() ? tokens : 0;
  }
  /// Reports that the head has drafted, before the pass is planned. `time`: how long it took; unused if its cost is
  /// told.
  void head_ran(std::size_t tokens, std::size_t late, std::optional<Duration> time = {}) noexcept {
    ran_ = true;
    const std::int64_t expected = head_cost(tokens, late);
    if (!told_ && time && time->count() > 0) times_.learn(tokens, time->count());
    // A learned cost that is a surprise is charged as one plain pass, because it can be wrong by any factor.
    const std::int64_t most = told_ ? most_cost : std::max<std::int64_t>(expected, cost_one);
    spend(static_cast<Cost>(std::min(head_cost(tokens, late), most)));
  }
  /// Returns the cost of a draft, in plain passes.
  [[nodiscard]] std::int64_t head_cost(std::size_t tokens, std::size_t late = 0) const noexcept {
    constexpr std::size_t many = 1 << 20;
    const auto count = static_cast<std::int64_t>(std::min(tokens, many));
    if (told_)
      return std::int64_t{told_->draft} + count * told_->token +
             static_cast<std::int64_t>(std::min(late, many)) * told_->late;
    const std::int64_t plain = learned().plain_time();
    if (!times_.known() || plain == 0) return to_cost(0.05);
    return std::min(detail::UnitScale::divide(times_.forecast(tokens), plain), most_cost);
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    CostControl::learn(outcome, report);
    if (!std::exchange(ran_, false)) times_.fade();
  }

 private:
  static constexpr std::int64_t most_cost = 1024 * std::int64_t{cost_one};

  /// Returns the length that is worth most, without the cost that every draft has.
  [[nodiscard]] std::size_t best_length(const HeadForecast& forecast, const PassShape& plain,
                                        std::size_t most) const noexcept {
    const std::int64_t first = cost(plain);
    const std::int64_t begin = head_cost(0);
    std::int64_t path = detail::UnitScale::one;
    std::int64_t sum = 0;
    std::size_t best = 0;
    std::int64_t value = 0;
    for (std::size_t tokens = 1; tokens <= most; ++tokens) {
      path = detail::ProbabilityScale::multiply(path, std::int64_t{forecast.rates[tokens - 1].raw()});
      sum += path;
      const std::int64_t rows = cost({plain.sequences, plain.rows + tokens, plain.context}) - first;
      const std::int64_t worth = sum - detail::UnitScale::multiply(throughput(), rows + head_cost(tokens) - begin);
      if (worth > value) value = worth, best = tokens;
    }
    return best;
  }

  std::optional<HeadCost> told_;
  detail::HeadTimes times_;
  bool ran_ = false;  // since the last pass
};
static_assert(DraftControl<HeadControl>);

}}  // namespace reprise
