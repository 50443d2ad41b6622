// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The forms in which engines want a draft tree, made from the parents of its rows (Pass::parents, or what
/// TreeVerifier::verify_tree() is given): positions, leaves, first child and next sibling. Masks are in
/// attention_mask.hpp. Pure functions over memory of the caller's; a chain is a tree like any other. `parents` has to
/// be what the loop hands out: each is anchor_parent or an earlier row; is_tree() says whether that is so.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/draft.hpp"

namespace reprise::inline v0 {

/// Whether every row follows the anchor or an earlier row. For parents that come from anywhere else.
[[nodiscard]] inline bool is_tree(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] < anchor_parent || parents[row] >= static_cast<NodeIndex>(row)) return false;
  return true;
}

/// Whether every row follows the row before it: a draft that a causal mask, or a kernel without a mask, gets right. An
/// engine with Capabilities::max_leaves > 1 is sent chains too, and can take its faster road for them.
[[nodiscard]] inline bool is_chain(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] != static_cast<NodeIndex>(row) - 1) return false;
  return true;
}

/// depths[j]: tokens on the path to drafted row j, 1 right behind the anchor. Its position is that of the anchor plus
/// its depth: rows side by side share one. Cost: linear.
template <class Integer>
void tree_depths(std::span<const NodeIndex> parents, std::span<Integer> depths) noexcept {
  REPRISE_EXPECTS(depths.size() >= parents.size());
  for (std::size_t row = 0; row < parents.size(); ++row)
    depths[row] =
        static_cast<Integer>(parents[row] == anchor_parent ? 1 : depths[static_cast<std::size_t>(parents[row])] + 1);
}

/// leaves_of[j]: the leaves that drafted row j leads to, bit l for leaf l; for engines that tell paths apart by
/// sequence ids, where a row belongs to all sequences whose path it is on. Leaves are numbered from the last row on;
/// their number is returned, 0 without rows. Only the first 64 are told apart: Capabilities::max_leaves up to 64 keeps
/// to that. Cost: linear.
inline std::size_t tree_leaves(std::span<const NodeIndex> parents, std::span<std::uint64_t> leaves_of) noexcept {
  REPRISE_EXPECTS(leaves_of.size() >= parents.size());
  std::fill_n(leaves_of.begin(), parents.size(), std::uint64_t{0});
  std::size_t leaves = 0;
  for (std::size_t row = parents.size(); row-- > 0;) {
    if (leaves_of[row] == 0) leaves_of[row] = std::uint64_t{1} << (leaves++ % 64);
    if (parents[row] != anchor_parent) leaves_of[static_cast<std::size_t>(parents[row])] |= leaves_of[row];
  }
  return leaves;
}

/// The form that kernels walk on the device: nodes[0] is the anchor, nodes[1 + j] drafted row j. first_child[i] and
/// next_sibling[i] are nodes counted so, or -1 where there is none; siblings come in draft order, the likeliest first.
/// Each span holds parents.size() + 1 entries. Cost: linear.
template <class Integer>
void tree_links(std::span<const NodeIndex> parents, std::span<Integer> first_child,
                std::span<Integer> next_sibling) noexcept {
  const std::size_t n = parents.size() + 1;
  REPRISE_EXPECTS(first_child.size() >= n && next_sibling.size() >= n);
  std::fill_n(first_child.begin(), n, static_cast<Integer>(-1));
  std::fill_n(next_sibling.begin(), n, static_cast<Integer>(-1));
  // From the last: each child is put before those of its parent that come later.
  for (std::size_t node = n - 1; node > 0; --node) {
    const auto parent = static_cast<std::size_t>(parents[node - 1]) + 1;  // the anchor wraps to 0
    next_sibling[node] = first_child[parent];
    first_child[parent] = static_cast<Integer>(node);
  }
}

}  // namespace reprise
