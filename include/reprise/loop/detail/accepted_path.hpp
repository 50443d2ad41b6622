// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A path of a pass that the engine has walked itself.

#include <cstddef>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/pass.hpp"

namespace reprise::inline v0::detail {

/// True if `accepted` is a path of the pass. The path must begin at the anchor's row. Each further row must follow the
/// previous row and hold the token that was picked after the previous row.
///
/// The path may pass through an auxiliary row, because the engine does not know which rows are auxiliary. In that case,
/// walk() ends before that row, or takes a sibling row with the same token.
[[nodiscard]] inline bool is_path(const Pass& pass, const Accepted& accepted) noexcept {
  if (accepted.rows.empty() || accepted.rows.size() != accepted.tokens.size()) return false;
  if (accepted.rows[0] != pass.pending - 1) return false;
  for (std::size_t i = 1; i < accepted.rows.size(); ++i) {
    const std::size_t row = accepted.rows[i];
    if (row < pass.pending || row >= pass.batch.size() || pass.batch[row] != accepted.tokens[i - 1]) return false;
    // Drafted rows are counted from the first one after the anchor.
    const auto before = static_cast<NodeIndex>(accepted.rows[i - 1]) - static_cast<NodeIndex>(pass.pending);
    if (pass.parents[row - pass.pending] != before) return false;
  }
  return true;
}

/// The picks along such a path, in reading order. Each access returns the next pick; the index is ignored.
struct PathPicks {
  TokenSpan tokens;
  std::size_t read = 0;
  Token operator[](std::size_t) noexcept { return tokens[read++]; }
};

}  // namespace reprise::detail
