// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// Returns the token with the highest score. The lowest id wins a tie, so every batch shape breaks ties in the same
/// way. NaN loses to every number. Returns 0 if there are no scores or all are NaN. Cost: one scan.
[[nodiscard]] inline Token argmax(std::span<const float> scores) noexcept {
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i)
    // The second condition holds if the best score so far is NaN and the new score is not.
    if (scores[i] > scores[best] || (!(scores[best] >= scores[best]) && scores[i] >= scores[i])) best = i;
  return static_cast<Token>(best);
}

}  // namespace reprise
