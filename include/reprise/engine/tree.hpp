// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The forms in which engines need a draft tree: positions, leaves, first child and next sibling. Masks are in
/// attention_mask.hpp. The functions are pure, write to memory of the caller and accept chains.
///
/// `parents` are those of the drafted rows: Pass::parents, or the argument of TreeVerifier::verify_tree(). Each is
/// anchor_parent or an earlier row, as the loop guarantees and is_tree() checks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/draft.hpp"

namespace reprise::inline v0 {

/// True if every row follows the anchor or an earlier row. For parents that do not come from the loop.
[[nodiscard]] inline bool is_tree(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] < anchor_parent || parents[row] >= static_cast<NodeIndex>(row)) return false;
  return true;
}

/// True if every row follows the row before it, so that a causal mask, or a kernel without a mask, is correct. Engines
/// with Capabilities::max_leaves > 1 get chains too, and can use a faster path for them.
[[nodiscard]] inline bool is_chain(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] != static_cast<NodeIndex>(row) - 1) return false;
  return true;
}

/// Writes to depths[j] the number of tokens on the path to drafted row j: 1 directly after the anchor. The row's
/// position is that of the anchor plus its depth, so siblings share one. Cost: linear.
template <class Integer>
void tree_depths(std::span<const NodeIndex> parents, std::span<Integer> depths) noexcept {
  REPRISE_EXPECTS(depths.size() >= parents.size());
  for (std::size_t row = 0; row < parents.size(); ++row)
    depths[row] =
        static_cast<Integer>(parents[row] == anchor_parent ? 1 : depths[static_cast<std::size_t>(parents[row])] + 1);
}

/// Writes to leaves_of[j] a bit mask of the leaves at or below drafted row j: bit l represents leaf l. For engines that
/// give each path a sequence id, so that a row belongs to every sequence whose path contains it. Returns the number of
/// leaves, or 0 if there are no rows. Leaves are numbered from the last row backwards. Bits repeat after 64 leaves, so
/// set Capabilities::max_leaves to at most 64. Cost: linear.
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

/// Writes the form that kernels walk on the device: node 0 is the anchor, node 1 + j is drafted row j. first_child[i]
/// and next_sibling[i] are such node numbers, or -1 if there is none. Siblings come in draft order, the likeliest
/// first. Each span holds parents.size() + 1 entries. Cost: linear.
template <class Integer>
void tree_links(std::span<const NodeIndex> parents, std::span<Integer> first_child,
                std::span<Integer> next_sibling) noexcept {
  const std::size_t n = parents.size() + 1;
  REPRISE_EXPECTS(first_child.size() >= n && next_sibling.size() >= n);
  std::fill_n(first_child.begin(), n, static_cast<Integer>(-1));
  std::fill_n(next_sibling.begin(), n, static_cast<Integer>(-1));
  // From the last node on, so that each child goes before its later siblings.
  for (std::size_t node = n - 1; node > 0; --node) {
    const auto parent = static_cast<std::size_t>(parents[node - 1]) + 1;  // the anchor wraps to 0
    next_sibling[node] = first_child[parent];
    first_child[parent] = static_cast<Integer>(node);
  }
}

}  // namespace reprise
