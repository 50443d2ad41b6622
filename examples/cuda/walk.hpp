// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rule of V13 as a function for host and device. It needs no CUDA, so any compiler can test it.

#include <cstdint>

#ifdef __CUDACC__
#define REPRISE_EXAMPLE_ON_BOTH __host__ __device__
#else
#define REPRISE_EXAMPLE_ON_BOTH
#endif

namespace cuda_example {

/// One step of the path: the token picked after row `row` of the batch.
struct Step {
  std::int32_t row;
  std::int32_t token;
};

/// Follows the draft while it agrees with the picks. Writes the accepted tokens and the pick that ends the path to
/// `steps`, which has room for drafted + 1 steps. Returns the number of steps written, at least 1.
///
/// `draft` and `parents` have `drafted` elements. A parent is an earlier drafted row, or -1 for the anchor. picks[0] is
/// the pick after the anchor, picks[1 + j] the pick after drafted row j. `anchor_row` is the anchor's row in the batch.
/// Cost: one sweep over the draft, because a child comes after its parent, and the first of equal children is taken.
REPRISE_EXAMPLE_ON_BOTH inline std::int32_t walk(const std::int32_t* draft, const std::int32_t* parents,
                                                 std::int32_t drafted, std::int32_t anchor_row,
                                                 const std::int32_t* picks, Step* steps) {
  std::int32_t last = -1;
  std::int32_t count = 0;
  steps[count++] = {anchor_row, picks[0]};
  for (std::int32_t row = 0; row < drafted; ++row) {
    if (parents[row] != last || draft[row] != picks[last + 1]) continue;
    last = row;
    steps[count++] = {anchor_row + 1 + row, picks[row + 1]};
  }
  return count;
}

/// Returns true if a token with `score` wins against the best token so far; best < 0: there is none. The lowest token
/// wins a tie, and NaN never wins, as in reprise::argmax().
REPRISE_EXAMPLE_ON_BOTH inline bool wins(float score, std::int32_t token, float best_score, std::int32_t best) {
  if (token < 0 || !(score >= score)) return false;
  return best < 0 || score > best_score || (score == best_score && token < best);
}

}  // namespace cuda_example
