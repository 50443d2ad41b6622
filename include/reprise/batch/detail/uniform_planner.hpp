// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/batch/detail/offered_nodes.hpp"
#include "reprise/core/capabilities.hpp"

namespace reprise::inline v0::detail {

/// Plans passes whose sequences all have the same number of rows; shorter ones are padded.
class UniformPlanner {
 public:
  /// `widths`: the allowed numbers of rows per sequence; empty: any number. The list must outlive the planner.
  explicit UniformPlanner(const AllowedWidths& widths) noexcept : widths_(widths) {}

  /// Returns the width with the highest gain. If any draft is sampled, stops at the first width above the pending rows
  /// that is not an improvement.
  [[nodiscard]] RowChoice choose(const OfferedNodes& offered, const PlanTerms& terms) const noexcept {
    std::size_t pending = 1;  // largest number of pending rows of a sequence
    for (std::size_t i = 0; i < offered.sequences(); ++i) pending = std::max(pending, offered.pending_of(i));
    RowChoice best;
    std::int64_t gain = 0;
    std::size_t counted = 1;  // rows of each sequence that `gain` includes
    for (std::size_t width = next_width(pending); width <= OfferedNodes::most_row_width && offered.sequences() != 0;
         width = next_width(width + 1)) {
      const std::size_t k = width * offered.sequences() + terms.other_rows - terms.plain_rows;
      if (k > terms.row_limit) break;
      if (offered.any_sampled()) {  // uses only the worth of the first row of the step
        gain += offered.in_row(counted) * static_cast<std::int64_t>(width - counted);
        counted = width;
      }
      for (; counted < width; ++counted) gain += offered.in_row(counted);
      const bool better = best.offer(terms, k, gain - terms.price_of(k));
      if (better) best.row_width = width;
      if (offered.any_sampled() && !better && width > pending) break;
    }
    return best;
  }

  /// Writes to `nodes` how many nodes of each sequence fit into the width. Returns the number of drafted nodes.
  static std::size_t share_out(const OfferedNodes& offered, const RowChoice& choice, std::size_t,
                               std::span<std::uint32_t> nodes) noexcept {
    std::size_t drafted = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::size_t free = choice.row_width - std::min(choice.row_width, offered.pending_of(i));
      nodes[i] = static_cast<std::uint32_t>(std::min(free, offered.nodes_of(i)));
      drafted += nodes[i];
    }
    return drafted;
  }

 private:
  /// Returns the smallest allowed width that is at least `row_width`, or unlimited if there is none.
  [[nodiscard]] std::size_t next_width(std::size_t row_width) const noexcept {
    const auto widths = widths_.values();
    if (widths.empty()) return row_width;
    const auto at = std::lower_bound(widths.begin(), widths.end(), row_width);
    return at == widths.end() ? unlimited : *at;
  }

  const AllowedWidths& widths_;
};

}  // namespace reprise::detail
