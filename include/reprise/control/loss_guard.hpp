// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/fixed_point.hpp"

namespace reprise::inline v0 {

/// Keeps drafting from losing, whatever the strategy does. In any run of at most 1,000 consecutive passes of a
/// sequence, the loss against plain decoding is at most 10 plain passes. Earlier gains do not count.
///
/// The loss of a pass is c(sent) - c(plain) - (committed - 1): the extra cost, minus one plain pass for each token
/// after the first. A leaky bucket limits it: debt = max(0, debt + loss - leak). A draft may be sent only if the debt
/// stays within the burst of 6 even when every drafted token is rejected. Proof of the bound:
///
///  1  The debt never exceeds the burst: a pass without a draft loses nothing, and one with a draft passed the check.
///  2  loss <= debt after - debt before + leak, because max(0, ...) only adds.
///  3  Summed over n passes: loss <= debt at the end - debt at the beginning + n x leak <= burst + n x leak.
///  4  6 + 1,000 x 261 / 65,536 = 9.983. Each pass reads two costs that are rounded to 2^-17: another 0.016 at most.
///  5  The window can begin anywhere, and the debt there is at least 0, so earlier gains do not help.
///
/// Costs are those that control reads from its curve; they do not include the time of the drafter. A pass that costs
/// over 6 plain passes more than the plain one is never sent. An engine that cuts a draft where the curve is *higher*
/// can exceed the bound. Source: the leaky bucket of packet networks (Turner 1986).
class LossGuard {
 public:
  static constexpr std::size_t window = 1000;
  static constexpr std::int64_t most_lost = 10 * std::int64_t{cost_one};
  static constexpr std::int64_t burst = 6 * std::int64_t{cost_one};
  static constexpr std::int64_t leak = 261;

  constexpr LossGuard() noexcept = default;
  /// `allowance`: the loss allowed at first; values above `burst` have no effect. A smaller one grows to `burst` with
  /// the first gains.
  explicit constexpr LossGuard(Cost allowance) noexcept : debt_(burst - std::min<std::int64_t>(allowance, burst)) {}

  /// The highest cost that a pass may have above the plain one, rollback included. Never below 0: a plain pass is
  /// always allowed.
  [[nodiscard]] std::int64_t allowance() const noexcept { return std::max<std::int64_t>(0, burst - debt_); }
  /// The recent losses that have not leaked away, in UnitScale.
  [[nodiscard]] std::int64_t debt() const noexcept { return debt_; }
  /// Returns true if drafting seems to lose: more than half of the burst is used up.
  [[nodiscard]] bool strained() const noexcept { return debt_ > burst / 2; }

  /// Adds the loss of a pass; call it once for each pass. `committed` of 0 counts as 1: a stop rule consumed the token,
  /// and plain decoding would have lost it too.
  void add(Cost sent, Cost plain, std::size_t committed) noexcept {
    debt_ = std::max<std::int64_t>(0, debt_ + sent - plain - saved(committed) - leak);
  }
  /// The plain passes that the tokens of a pass have saved, in UnitScale.
  [[nodiscard]] static std::int64_t saved(std::size_t committed) noexcept {
    constexpr std::size_t many = 1 << 20;
    return static_cast<std::int64_t>(std::clamp<std::size_t>(committed, 1, many) - 1) * cost_one;
  }

 private:
  std::int64_t debt_ = 0;
};

}  // namespace reprise
