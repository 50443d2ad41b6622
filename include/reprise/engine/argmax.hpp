// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"
#include "reprise/engine/detail/scores_above.hpp"

namespace reprise::inline v0 {

/// Returns the token with the highest score. The lowest id wins a tie, so every batch shape breaks ties in the same
/// way. NaN loses to every number. Returns 0 if there are no scores or all are NaN. Cost: one vectorised scan.
[[nodiscard]] inline Token argmax(std::span<const float> scores) noexcept {
  std::size_t best = 0;
  while (best < scores.size() && !(scores[best] >= scores[best])) ++best;  // NaN is not at least itself
  if (best == scores.size()) return 0;
  detail::visit_scores_above(scores, best + 1, scores[best], [&](std::size_t token) {
    best = token;
    return scores[token];
  });
  return static_cast<Token>(best);
}

}  // namespace reprise::inline v0
