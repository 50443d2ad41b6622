// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

namespace reprise::testing {

/// The rows of a ScriptedVerifier's pass at the end of its cache: their parents and the tokens that they see. Row 0 is
/// the anchor, and row 1 is the first drafted row.
struct ScriptedRows {
  std::size_t base = 0;            ///< rows of the cache before the pass
  std::size_t pending = 0;         ///< rows before the draft, including the anchor's
  std::vector<NodeIndex> parents;  ///< parents of the drafted rows; see TreeVerifier

  void set_chain(std::size_t drafted) {
    parents.resize(drafted);
    for (std::size_t row = 0; row < drafted; ++row) parents[row] = static_cast<NodeIndex>(row) - 1;
  }
  /// Sets the parents. Returns false and sets nothing if they do not form a tree.
  bool set_tree(std::span<const NodeIndex> tree, std::size_t drafted) {
    bool sound = tree.size() == drafted;
    for (std::size_t row = 0; sound && row < drafted; ++row)
      sound = tree[row] >= anchor_parent && tree[row] < static_cast<NodeIndex>(row);
    if (sound) parents.assign(tree.begin(), tree.end());
    return sound;
  }
  [[nodiscard]] std::size_t parent(std::size_t row) const { return pick_after(parents[row - 1]); }
  [[nodiscard]] std::size_t depth(std::size_t row) const {
    std::size_t depth = 0;
    for (; row > 0; row = parent(row)) ++depth;
    return depth;
  }
  [[nodiscard]] std::size_t deepest() const {
    std::size_t deepest = 0;
    for (std::size_t row = 1; row <= parents.size(); ++row) deepest = std::max(deepest, depth(row));
    return deepest;
  }
  [[nodiscard]] std::size_t leaves() const {
    std::size_t leaves = 0;
    for (std::size_t row = 0; row < parents.size(); ++row)
      leaves += std::find(parents.begin(), parents.end(), static_cast<NodeIndex>(row)) == parents.end() ? 1 : 0;
    return leaves;
  }
  [[nodiscard]] Token token(TokenSpan cache, std::size_t row) const { return cache[base + pending + row - 1]; }
  /// Returns the last tokens that a row sees, including its own. They cover the path to the row, and at least `most`
  /// tokens if the cache has them.
  [[nodiscard]] std::vector<Token> seen_by(TokenSpan cache, std::size_t row, std::size_t most) const {
    std::vector<Token> seen;
    for (; row > 0; row = parent(row)) seen.push_back(token(cache, row));
    for (std::size_t at = base + pending; at > 0 && seen.size() < most; --at) seen.push_back(cache[at - 1]);
    std::reverse(seen.begin(), seen.end());
    return seen;
  }
  /// Returns the first child of `row` that holds `next`; 0 if there is none.
  [[nodiscard]] std::size_t child_of(TokenSpan cache, std::size_t row, Token next) const {
    for (std::size_t child = row + 1; child <= parents.size(); ++child)
      if (parent(child) == row && token(cache, child) == next) return child;
    return 0;
  }
};

}  // namespace reprise::testing
