// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/contract.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The number of scores that are compared with a bound at once. A shorter block has more overhead for each score, a
/// longer one more scores that are compared again one by one.
inline constexpr std::size_t score_block = 64;

/// Returns whether any score of a block is above `bound`; NaN is not. Compilers vectorise this loop without special
/// flags: the length is constant and the reduction is one of integers.
[[nodiscard]] inline bool any_above(std::span<const float, score_block> scores, float bound) noexcept {
  std::uint32_t any = 0;
  for (const float score : scores) any |= score > bound ? 1U : 0U;
  return any != 0;
}

/// Calls `visit(i)` for each score from index `begin` on that is above the bound, in ascending order. Each call returns
/// the new bound, which may not be lower than the old one. Cost: one vectorised scan, and one more comparison for each
/// score of a block that has a score above the bound.
template <class Visit>
void visit_scores_above(std::span<const float> scores, std::size_t begin, float bound, Visit visit) {
  const auto visit_one_by_one = [&](std::size_t end) {
    for (; begin < end; ++begin)
      if (scores[begin] > bound) bound = visit(begin);
  };
  while (scores.size() - begin >= score_block) {
    if (any_above(scores.subspan(begin).first<score_block>(), bound))
      visit_one_by_one(begin + score_block);
    else
      begin += score_block;
  }
  visit_one_by_one(scores.size());
}

}}}  // namespace reprise::detail
