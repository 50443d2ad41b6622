// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/head_costs.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/detail/head_forecast.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Decides in each pass whether a draft head or draft model runs beside the lookup, and how far, and sends the part of
/// both drafts that is worth its cost: a CostControl that knows the head's cost too.
///
/// The head runs if the tokens that it adds (HeadForecast::gain) are worth its time, at the recent tokens per plain
/// pass, and if the loss budget covers its time and its rows. Its draft ends before the first token that is not worth
/// its row.
///
/// The head's cost is told, or learned from the times that the caller reports; before the first time, each
/// of its tokens counts as 5% of a plain pass. With told costs of passes, its cost must be told too. The loss budget
/// reserves the cost of a head before it runs, so its bound holds for passes and head together: a head that has become
/// bad loses at most 10 plain passes in any 1,000 at told costs. What the head takes beyond its told cost is not
/// counted.
///
/// Threads: as CostControl.
class HeadControl : public CostControl {
 public:
  /// `head`: the cost of a draft of the head; nullopt: learned.
  explicit HeadControl(CostOptions options = {}, std::optional<HeadCost> head = {}) noexcept
      : CostControl(std::move(options)), costs_(head) {}

  void begin() noexcept {
    spare();
    late_ = 0;
    CostControl::begin();
  }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) noexcept {
    room_ = std::min(room.nodes, room.depth);
    return CostControl::choose(draft, sendable, room);
  }
  /// Returns how long a chain can be in the pass that was planned last.
  [[nodiscard]] std::size_t room() const noexcept { return room_; }

  /// Returns how many tokens the head should draft, at most `most`; 0: it should not run. Reserves its
  /// cost in the loss budget: a head that runs is reported by head_ran(), or the next pass gives the cost back.
  /// `plain`: the shape of the pass without a draft.
  [[nodiscard]] std::size_t ask_head(const HeadForecast& forecast, const PassShape& plain,
                                     std::size_t most = HeadForecast::most_tokens) noexcept {
    spare();
    const std::int64_t first = head_cost(1);
    const HeadDraft draft = best_head_draft(forecast, price(), most, [&](std::size_t count) {
      return rows_cost(plain, count) + std::max<std::int64_t>(head_cost(count) - first, 0);
    });
    if (draft.tokens == 0) return 0;
    const std::int64_t cost = head_cost(draft.tokens);
    if (cost + rows_cost(plain, draft.tokens) > loss_budget().allowance()) return 0;
    if (draft.gain <= UnitScale::multiply(price(), cost)) return 0;
    return afford(static_cast<Cost>(cost)) ? draft.tokens : 0;
  }
  /// Reports that the head has drafted, before the pass is planned. `time`: how long it took; unused if its cost is
  /// told.
  void head_ran(std::size_t tokens, std::optional<Duration> time = {}) noexcept {
    ran_ = true;
    spend(static_cast<Cost>(costs_.ran(run(tokens), time, learned().plain_time())));
  }
  /// Returns the cost of a draft, in plain passes.
  [[nodiscard]] std::int64_t head_cost(std::size_t tokens) const noexcept {
    return costs_.cost(run(tokens), learned().plain_time());
  }

  void learn(const Outcome& outcome, const PassReport& report) noexcept {
    spare();
    CostControl::learn(outcome, report);
    late_ = std::exchange(ran_, false) ? 0 : late_ + report.committed;
    costs_.idle();
  }

 private:
  [[nodiscard]] HeadRun run(std::size_t tokens) const noexcept { return {.tokens = tokens, .late = late_}; }
  /// Returns the value of a plain pass, in tokens.
  [[nodiscard]] std::int64_t price() const noexcept { return std::min(throughput(), most_rate); }
  /// Returns the cost of `tokens` more rows.
  [[nodiscard]] std::int64_t rows_cost(const PassShape& plain, std::size_t tokens) const noexcept {
    return std::int64_t{cost({plain.sequences, plain.rows + tokens, plain.context})} - cost(plain);
  }
  HeadCosts costs_;
  std::size_t room_ = 0;
  std::size_t late_ = 0;  // tokens committed since the head has run
  bool ran_ = false;      // since the last pass
};
static_assert(DraftControl<HeadControl>);

}}}  // namespace reprise::detail
