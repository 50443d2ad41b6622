// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The worth of a drafted token in a batch, in classes; the ratio of adjacent classes is 2^(1/32). The classes
/// are fine enough to order tokens, and few enough to count tokens in a histogram instead of sorting them.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise::inline v0::detail {

/// Tokens are sorted into classes by worth, the most valuable first. Class c is worth 2^(-c / 32). Class 0 is reserved
/// for tokens of sampled drafts, whatever their worth. A token worth less than 2^-11 is ignored.
inline constexpr std::int32_t worth_halvings = 11;
inline constexpr std::size_t worth_classes = std::size_t{worth_halvings} * coarse_steps;
/// The worth of each class, in UnitScale.
inline constexpr std::array<std::uint32_t, worth_classes> worth_of_class = falling_powers<worth_classes>();

/// Returns the class of a token with path probability `path` (in ProbabilityScale). `sum` (in UnitScale) is the sum of
/// the path probabilities before it in its sequence. The worth is ln(1 + sum + path) - ln(1 + sum), which is about path
/// / (1 + sum + path / 2). `least` is a lower bound on the divisor. Returns worth_classes if the token is ignored.
inline std::size_t worth_class(std::uint32_t path, std::uint64_t sum, std::uint64_t least) noexcept {
  if (path == 0) return worth_classes;
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t tokens = std::max(cost_one + sum + rescaled<ProbabilityScale, UnitScale>(path / 2), least);
  const std::int32_t below = (ProbabilityScale::bits - UnitScale::bits) * coarse_steps +
                             coarse_log2(static_cast<std::uint32_t>(std::min(tokens, most))) - coarse_log2(path);
  return static_cast<std::size_t>(std::clamp<std::int32_t>(below, 1, worth_classes));
}

/// Returns the first class that is worth less than `value` (in UnitScale), up to rounding. Two classes later, the worth
/// is certainly lower.
inline std::size_t class_below(std::int64_t value) noexcept {
  if (value >= cost_one) return 1;
  if (value <= Fixed<worth_halvings>::floor(cost_one)) return worth_classes;
  const std::int32_t class_of_value = UnitScale::bits * coarse_steps - coarse_log2(static_cast<std::uint32_t>(value));
  return static_cast<std::size_t>(std::clamp<std::int32_t>(class_of_value + 1, 1, worth_classes));
}

}  // namespace reprise::detail
