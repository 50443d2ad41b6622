// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Conversions of a draft tree to the forms that engines need: depths, leaves, and links to first children and
/// next siblings. For masks, see attention_mask.hpp. The functions have no state, write to the caller's memory and
/// also accept chains.
///
/// `parents` holds the parents of the drafted rows: Pass::parents, or the argument of TreeVerifier::verify_tree(). Each
/// parent is anchor_parent or an earlier row, as the loop guarantees and is_tree() checks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/draft.hpp"

namespace reprise::inline v0 {

/// Returns true if the parent of every row is the anchor or an earlier row. Use it for parents that do not come from
/// the loop.
[[nodiscard]] inline bool is_tree(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] < anchor_parent || parents[row] >= static_cast<NodeIndex>(row)) return false;
  return true;
}

/// Returns true if the first row's parent is the anchor and every other row's parent is the row before it. In that case
/// a causal mask, or a kernel without a mask, is correct. Engines with Capabilities::max_leaves > 1 receive chains too,
/// and can use a faster path for them.
[[nodiscard]] inline bool is_chain(std::span<const NodeIndex> parents) noexcept {
  for (std::size_t row = 0; row < parents.size(); ++row)
    if (parents[row] != static_cast<NodeIndex>(row) - 1) return false;
  return true;
}

/// Writes to depths[j] the number of drafted tokens on the path from the anchor to drafted row j; 1: directly after the
/// anchor. The row's position is the anchor's position plus this depth, so siblings share a position. Requires
/// depths.size() >= parents.size(). Cost: linear.
template <class Integer>
void tree_depths(std::span<const NodeIndex> parents, std::span<Integer> depths) noexcept {
  REPRISE_EXPECTS(depths.size() >= parents.size());
  for (std::size_t row = 0; row < parents.size(); ++row)
    depths[row] =
        static_cast<Integer>(parents[row] == anchor_parent ? 1 : depths[static_cast<std::size_t>(parents[row])] + 1);
}

/// Writes to leaves_of[j] a bit mask of the leaves at or below drafted row j: bit l represents leaf l. Use it if the
/// engine gives each path a sequence id and a row belongs to every sequence whose path contains it. Returns the number
/// of leaves, or 0 if there are no rows. Leaves are numbered from the last row backwards. Bits repeat after 64 leaves,
/// so set Capabilities::max_leaves to at most 64. Requires leaves_of.size() >= parents.size(). Cost: linear.
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

/// Writes the tree as links that a kernel on the device can follow. Node 0 is the anchor, and node 1 + j is drafted row
/// j. Sets first_child[i] and next_sibling[i] to node numbers, or to -1 if there is no such node. Siblings are in draft
/// order, the likeliest first. Each span must have at least parents.size() + 1 entries. Cost: linear.
template <class Integer>
void tree_links(std::span<const NodeIndex> parents, std::span<Integer> first_child,
                std::span<Integer> next_sibling) noexcept {
  const std::size_t n = parents.size() + 1;
  REPRISE_EXPECTS(first_child.size() >= n && next_sibling.size() >= n);
  std::fill_n(first_child.begin(), n, static_cast<Integer>(-1));
  std::fill_n(next_sibling.begin(), n, static_cast<Integer>(-1));
  // Runs from the last node to the first, so that each child is linked before its later siblings.
  for (std::size_t node = n - 1; node > 0; --node) {
    const auto parent = static_cast<std::size_t>(parents[node - 1]) + 1;  // the anchor wraps to 0
    next_sibling[node] = first_child[parent];
    first_child[parent] = static_cast<Integer>(node);
  }
}

}  // namespace reprise
