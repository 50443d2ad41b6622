// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/fixed_log.hpp"
#include "reprise/core/fixed_point.hpp"
#include "reprise/evidence/detail/next_token_tables.hpp"

namespace reprise::inline v0 {

/// The evidence of next-token counts for one candidate, as one class for each order. Order 0 is the context of the last
/// two tokens, order 1 that of the last token.
struct NextTokenEvidence {
  static constexpr std::size_t orders = detail::next_token_orders;
  static constexpr std::uint8_t unknown = 0;  ///< the context has not been counted
  static constexpr std::uint8_t absent = 1;   ///< the context has been counted, but not with this token

  /// Returns the class of a token that was counted `count` times among `total` occurrences of its context. It combines
  /// the share of the token with the magnitude of the total. Requires 1 <= count <= total.
  [[nodiscard]] static constexpr std::uint8_t counted(std::uint32_t count, std::uint32_t total) noexcept {
    constexpr LogOdds step = 3 * detail::log_odds_one / 4;  // of the binary logarithm of the share
    const auto share =
        static_cast<std::size_t>((detail::log2_q8(std::uint64_t{total} + 1) - detail::log2_q8(count)) / step);
    const std::size_t size = total < 2 ? 0 : total < 5 ? 1 : total < 20 ? 2 : 3;
    return static_cast<std::uint8_t>(2 + 4 * std::min<std::size_t>(share, detail::next_token_shares - 1) + size);
  }
  /// True if one of the contexts has been counted.
  [[nodiscard]] constexpr bool known() const noexcept { return classes[0] != unknown || classes[1] != unknown; }
  /// True if the token has been counted after one of the contexts.
  [[nodiscard]] constexpr bool listed() const noexcept { return classes[0] > absent || classes[1] > absent; }

  std::array<std::uint8_t, orders> classes{};
};

/// The learned corrections of NextTokenEvidence, in BiasScale. The first index is the order, the second one the other
/// evidence for the token (TokenCalibrator), the third one the class.
using NextTokenBiases =
    std::array<std::array<std::array<std::int32_t, detail::next_token_classes>, detail::next_token_groups>,
               detail::next_token_orders>;

/// Returns the built-in effect of the evidence on log-odds of `known` from all other evidence. `group`: the kind of the
/// other evidence; see TokenCalibrator.
[[nodiscard]] constexpr LogOdds next_token_value(const NextTokenEvidence& evidence, std::size_t group,
                                                 LogOdds known) noexcept {
  LogOdds sum = LogOddsScale::multiply(
      LogOdds{detail::next_token_slopes[group][(evidence.classes[0] != 0 ? 2U : 0U) + (evidence.listed() ? 1U : 0U)]},
      std::min(known, detail::log_odds_one));
  for (std::size_t order = 0; order < NextTokenEvidence::orders; ++order)
    sum += detail::next_token_values[order][group][evidence.classes[order]];
  return sum;
}

}  // namespace reprise
