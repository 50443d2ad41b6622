// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "reprise/core/token.hpp"
#include "reprise/engine/detail/scores_above.hpp"

namespace reprise { inline namespace v0 {

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

}}  // namespace reprise

namespace reprise { inline namespace v0 {

/// Writes the tokens with the highest scores to `out`, the highest score first, and returns the written part of `out`.
/// The lowest id wins a tie. NaN is left out, infinities are not. So the result is shorter than `out` only if there
/// are fewer numbers than `out.size()`, and its first token is always argmax(scores). Does not allocate or throw.
/// Cost: one vectorised scan, and up to `out.size()` comparisons for each score that is among the best so far. Meant
/// for up to 64 tokens: in a row of `n` scores in random order, about `k * (1 + ln(n / k))` scores are among the best
/// so far. Scores in ascending order are the worst case, because each one is.
[[nodiscard]] inline TokenSpan top_k(std::span<const float> scores, std::span<Token> out) noexcept {
  const auto score_of = [&](Token token) { return scores[static_cast<std::size_t>(token)]; };
  // Moves the token at position `at` of `out` before all tokens with lower scores.
  const auto insert = [&](std::size_t at, std::size_t token) {
    for (; at > 0 && scores[token] > score_of(out[at - 1]); --at) out[at] = out[at - 1];
    out[at] = static_cast<Token>(token);
  };
  std::size_t next = 0;
  std::size_t found = 0;
  for (; next < scores.size() && found < out.size(); ++next)
    if (scores[next] >= scores[next]) insert(found++, next);
  if (found == 0) return {};
  // From here on, a score counts only if it is above the lowest of the best.
  detail::visit_scores_above(scores, next, score_of(out[found - 1]), [&](std::size_t token) {
    insert(found - 1, token);
    return score_of(out[found - 1]);
  });
  return out.first(found);
}

}}  // namespace reprise
