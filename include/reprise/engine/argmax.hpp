// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// The token of the highest score; of equal ones the lowest id, so that every batch shape breaks ties alike. NaN loses
/// against everything. Token 0 where there are no scores, or none but NaN. Cost: one scan.
[[nodiscard]] inline Token argmax(std::span<const float> scores) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i)
    // The second part is true where the best so far is NaN, and the new one is not.
    if (scores[i] > scores[best] || (!(scores[best] >= scores[best]) && scores[i] >= scores[i])) best = i;
  return static_cast<Token>(best);
}

}  // namespace reprise
