// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/fixed_point.hpp"

namespace reprise::inline v0 {

/// Limits the loss from drafting, whatever the strategy does. In at most 1,000 consecutive passes of a sequence (or of
/// a batch), the loss against plain decoding is at most 10 plain passes. Gains before these passes do not count.
///
/// The loss of a pass is c(sent) - c(plain) - (committed - 1): the extra cost, minus one plain pass for each token
/// after the first. A leaky bucket limits the loss: debt = max(0, debt + loss - leak). A draft may be sent only if the
/// debt stays within the burst of 6 even if every drafted token is rejected. Proof of the bound:
///
///  1  Apart from surcharges on learned costs, which are not losses, the debt never exceeds the burst. A pass without a
///     draft loses nothing, and a pass with a draft has passed the check.
///  2  loss <= debt after - debt before + leak, because max(0, ...) can only raise the debt.
///  3  Summed over n passes: loss <= debt at the end - debt at the beginning + n x leak <= burst + n x leak.
///  4  6 + 1,000 x 261 / 65,536 = 9.983. Each pass reads two costs with a rounding error of at most 2^-17, which adds
///     at most 0.016.
///  5  The window can begin at any pass. The debt at its beginning is at least 0, so earlier gains do not help.
///
/// All costs are those that control reads from its curve; they do not include the time of the drafter. A pass that
/// costs over 6 plain passes more than the plain one is never sent. The loss can exceed the bound if the engine
/// shortens a draft to a row count whose cost is *higher*. Source: the leaky bucket of packet networks (Turner 1986).
class LossGuard {
 public:
  static constexpr std::size_t window = 1000;
  static constexpr std::int64_t most_lost = 10 * std::int64_t{cost_one};
  static constexpr std::int64_t burst = 6 * std::int64_t{cost_one};
  static constexpr std::int64_t leak = 261;

  constexpr LossGuard() noexcept = default;
  /// `allowance`: the loss allowed initially; values above `burst` have no effect. A smaller allowance grows to `burst`
  /// as drafts gain and as debt leaks away.
  explicit constexpr LossGuard(Cost allowance) noexcept : debt_(burst - std::min<std::int64_t>(allowance, burst)) {}

  /// Returns the maximum extra cost of a pass over the plain one, rollback included, in UnitScale. It is never below 0,
  /// because a plain pass is always allowed.
  [[nodiscard]] std::int64_t allowance() const noexcept { return std::max<std::int64_t>(0, burst - debt_); }
  /// Returns the losses that neither later gains nor the leak have offset, in UnitScale.
  [[nodiscard]] std::int64_t debt() const noexcept { return debt_; }
  /// Returns true if drafting seems to lose: more than half of the burst is used up. An initial allowance below half of
  /// the burst has the same effect.
  [[nodiscard]] bool strained() const noexcept { return debt_ > burst / 2; }

  /// Adds the loss of a pass. Call it once for each pass. If `committed` is 0, it counts as 1: a stop rule consumed the
  /// token, and plain decoding would have lost it too.
  void add(Cost sent, Cost plain, std::size_t committed) noexcept {
    debt_ = std::max<std::int64_t>(0, debt_ + sent - plain - saved(committed) - leak);
  }
  /// Returns the number of plain passes that a pass with `committed` tokens saves, in UnitScale.
  [[nodiscard]] static std::int64_t saved(std::size_t committed) noexcept {
    constexpr std::size_t many = 1 << 20;
    return static_cast<std::int64_t>(std::clamp<std::size_t>(committed, 1, many) - 1) * cost_one;
  }

 private:
  std::int64_t debt_ = 0;
};

}  // namespace reprise
