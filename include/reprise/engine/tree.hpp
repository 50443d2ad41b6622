// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Conversions of a draft tree to the forms that engines need: depths, leaves, and links to first children and
/// next siblings. For masks, see attention_mask.hpp. The functions have no state, write to the caller's memory and
/// also accept chains.
///
/// `parents` holds the parents of the drafted rows: Pass::parents, or the argument of TreeVerifier::verify_tree(). Each
/// parent is anchor_parent or an earlier row, as the loop guarantees and is_tree() checks.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/draft.hpp"

namespace reprise { inline namespace v0 {

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

// --- Attention masks ---
//
// Masks are in the form that kernels expect. A mask has one row for each row of the pass. It has one
// column for each cached row, followed by one for each row of the pass. `parents` holds the parents of the drafted
// rows: Pass::parents, or the argument of TreeVerifier::verify_tree(). They must form a tree: see is_tree().
//
// Row i sees all `cached` rows and itself. A pending row also sees the pending rows before it; a drafted row sees all
// pending rows and its ancestors. With 2 rows cached, 1 pending row and the parents {-1, -1, 0}:
//
//     1 1 | 1 0 0 0     The anchor.
//     1 1 | 1 1 0 0     Two children of the anchor: they do not see each other.
//     1 1 | 1 0 1 0
//     1 1 | 1 1 0 1     A child of the first of these two.
//
// For a chain, this is the causal mask. If `cached` is 0, the mask covers only the rows of the pass, for kernels that
// always see the whole cache. If `pending` is 0 too, the mask covers only the drafted rows.
//
// Source of the masks: Miao et al. 2023 ("SpecInfer", topology-aware causal mask), Cai et al. 2024 ("Medusa").

/// The values that represent "sees" and "does not see" in a mask. The defaults are 0 and -infinity for floating-point
/// types, for adding to scores, and 1 and 0 for other types. For IEEE half-precision floats, pass their bits:
/// {0x0000, 0xfc00} of type std::uint16_t.
template <class Cell>
struct MaskCells {
  Cell seen = static_cast<Cell>(std::floating_point<Cell> ? 0 : 1);
  Cell hidden = std::floating_point<Cell> ? -std::numeric_limits<Cell>::infinity() : Cell{};
};

namespace detail {

/// The rows of the pass that row i sees besides itself: the rows that its parent sees, or the first `causal` rows.
struct SeenRows {
  std::size_t causal = 0;  // the number of visible rows, from the first row of the pass
  bool has_parent = false;
  std::size_t parent = 0;  // the row of the pass whose mask is copied

  static SeenRows of(std::span<const NodeIndex> parents, std::size_t pending, std::size_t i) noexcept {
    if (i < pending || parents[i - pending] == anchor_parent) return {std::min(i, pending)};
    return {0, true, pending + static_cast<std::size_t>(parents[i - pending])};
  }
};

}  // namespace detail

/// Writes cell (i, j) of the mask to mask[i * stride + j]. The pass has rows = pending + parents.size() rows. Columns
/// from cached + rows to the end of the stride are hidden, for kernels that need a multiple of 64 columns. Requires
/// stride >= cached + rows and mask.size() >= rows * stride. Cost: one write per cell; no allocation.
template <class Cell>
void attention_mask(std::span<const NodeIndex> parents, std::size_t pending, std::size_t cached, std::size_t stride,
                    std::span<Cell> mask, const MaskCells<Cell>& cells = {}) noexcept {
  const std::size_t rows = pending + parents.size();
  REPRISE_EXPECTS(stride >= cached + rows && mask.size() >= rows * stride);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<Cell> row = mask.subspan(i * stride, stride);
    const detail::SeenRows seen = detail::SeenRows::of(parents, pending, i);
    if (seen.has_parent) {
      const auto parent = mask.subspan(seen.parent * stride, stride);
      std::copy(parent.begin(), parent.end(), row.begin());
    } else {
      std::fill(row.begin(), row.end(), cells.hidden);
      std::fill_n(row.begin(), cached + seen.causal, cells.seen);
    }
    row[cached + i] = cells.seen;
  }
}

/// Returns the number of 64-bit words that hold `columns` bits: the smallest stride that attention_mask_bits() accepts.
[[nodiscard]] constexpr std::size_t mask_words(std::size_t columns) noexcept { return (columns + 63) / 64; }

/// Like attention_mask(), but writes one bit per cell: 1 means "sees", 0 "does not see". Cell (i, j) is bit j % 64 of
/// mask[i * stride + j / 64], counted from the lowest bit. `stride` is in words. Bits from cached + rows on are 0.
/// Requires 64 * stride >= cached + rows and mask.size() >= rows * stride.
inline void attention_mask_bits(std::span<const NodeIndex> parents, std::size_t pending, std::size_t cached,
                                std::size_t stride, std::span<std::uint64_t> mask) noexcept {
  const std::size_t rows = pending + parents.size();
  REPRISE_EXPECTS(64 * stride >= cached + rows && mask.size() >= rows * stride);
  for (std::size_t i = 0; i < rows; ++i) {
    const std::span<std::uint64_t> row = mask.subspan(i * stride, stride);
    const detail::SeenRows seen = detail::SeenRows::of(parents, pending, i);
    if (seen.has_parent) {
      const auto parent = mask.subspan(seen.parent * stride, stride);
      std::copy(parent.begin(), parent.end(), row.begin());
    } else {
      const std::size_t ones = cached + seen.causal;
      std::fill(row.begin(), row.end(), std::uint64_t{0});
      std::fill_n(row.begin(), ones / 64, ~std::uint64_t{0});
      if (ones % 64 != 0) row[ones / 64] = (std::uint64_t{1} << (ones % 64)) - 1;
    }
    row[(cached + i) / 64] |= std::uint64_t{1} << ((cached + i) % 64);
  }
}

}}  // namespace reprise
