// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The recent success rate of a repeated guess: a mean over about the last 128 cases. It starts at an initial estimate.
///
/// The rate stays between 1/256 and 255/256. So a guess that has failed for a long time is still tried where that is
/// cheap, and the rate never claims certainty. It is a plain value and computes with integers only. Cost: one division
/// per case.
class HitRate {
 public:
  /// `guess` is the initial rate and counts as 8 cases.
  constexpr explicit HitRate(Probability guess = Probability::ratio(1, 2)) noexcept : mean_(bounded(guess.raw())) {}

  [[nodiscard]] constexpr Probability probability() const noexcept { return Probability::from_raw(mean_); }
  constexpr void learn(bool hit) noexcept {
    cases_ = std::min<std::uint32_t>(cases_ + 1, 128);
    const std::int64_t error = std::int64_t{hit ? Probability::scale : 0} - mean_;
    mean_ = bounded(static_cast<std::uint32_t>(mean_ + error / cases_));
  }
  friend constexpr bool operator==(const HitRate&, const HitRate&) noexcept = default;

 private:
  static constexpr std::uint32_t least = Probability::scale / 256;
  static constexpr std::uint32_t bounded(std::uint32_t raw) noexcept {
    return std::clamp(raw, least, Probability::scale - least);
  }
  std::uint32_t mean_;
  std::uint32_t cases_ = 8;
};

}}}  // namespace reprise::detail
