// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Attention masks as engines hand them to kernels: a row for each row of the pass, a column for each row of the
/// cache and then of the pass. `parents` are those of the drafted rows (Pass::parents, or the argument of
/// TreeVerifier::verify_tree()), and must form a tree: see is_tree().
///
/// Row i sees all `cached` rows and itself. A pending row also sees the pending rows before it; a drafted row sees all
/// pending rows and its ancestors. With 2 rows cached, 1 pending row and the parents {-1, -1, 0}:
///
///     1 1 | 1 0 0 0     the anchor
///     1 1 | 1 1 0 0     two children of the anchor do not see each other
///     1 1 | 1 0 1 0
///     1 1 | 1 1 0 1     a child of the first one
///
/// For a chain the mask is the causal one. With `cached` 0 it is the mask within the pass, for engines whose kernels
/// see the whole cache anyway; with `pending` 0, too, that of the drafted rows alone.
///
/// Source of the masks: Miao et al. 2023 ("SpecInfer", topology-aware causal mask), Cai et al. 2024 ("Medusa").

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/draft.hpp"

namespace reprise::inline v0 {

/// How a mask writes "sees" and "does not see". The default for floating point is added to scores: 0 and -infinity.
/// The default for other types is 1 and 0. For a 16-bit float, give its bits: {0x0000, 0xfc00} of type std::uint16_t.
template <class Cell>
struct MaskCells {
  Cell seen = static_cast<Cell>(std::floating_point<Cell> ? 0 : 1);
  Cell hidden = std::floating_point<Cell> ? -std::numeric_limits<Cell>::infinity() : Cell{};
};

namespace detail {

/// The rows of the pass that one of them sees besides itself: those that its parent sees, else the first `causal` rows.
struct SeenRows {
  std::size_t causal = 0;  // so many rows of the pass, from the first
  bool has_parent = false;
  std::size_t parent = 0;  // the row of the pass whose mask it repeats

  static SeenRows of(std::span<const NodeIndex> parents, std::size_t pending, std::size_t i) noexcept {
    if (i < pending || parents[i - pending] == anchor_parent) return {std::min(i, pending)};
    return {0, true, pending + static_cast<std::size_t>(parents[i - pending])};
  }
};

}  // namespace detail

/// Writes cell (i, j) of the mask to mask[i * stride + j], for the pending + parents.size() rows of the pass. Columns
/// from cached + rows to the end of the stride are hidden: kernels that want a multiple of 64 columns get one. Requires
/// stride >= cached + rows and mask.size() >= rows * stride. Cost: one write for each cell; allocates nothing.
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

/// 64-bit words for a row of so many columns: the least stride of attention_mask_bits().
[[nodiscard]] constexpr std::size_t mask_words(std::size_t columns) noexcept { return (columns + 63) / 64; }

/// The same mask in bits: cell (i, j) is bit j % 64 of mask[i * stride + j / 64], the lowest bit first; 1 is "sees".
/// `stride` counts words. Bits from cached + rows on are 0. Requires 64 * stride >= cached + rows and mask.size() >=
/// rows * stride.
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

}  // namespace reprise
