// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/batch/detail/offered_nodes.hpp"
#include "reprise/batch/detail/worth.hpp"
#include "reprise/core/capabilities.hpp"

namespace reprise::inline v0::detail {

/// Plans passes whose sequences may have different numbers of rows. The nodes with the highest worth are drafted.
class RaggedPlanner {
 public:
  /// Returns the number of drafted rows with the highest gain. Nodes of sampled drafts (class 0) come first, and their
  /// worth is not compared: only the loss budget and the row limit bound them.
  [[nodiscard]] static RowChoice choose(const OfferedNodes& offered, const PlanTerms& terms) noexcept {
    const std::size_t most = std::min(offered.worthwhile(), terms.row_limit);
    const std::size_t sampled = offered.in_class(0);
    std::size_t k = 0;
    while (k < std::min(sampled, most) && terms.allowed(k + 1)) ++k;
    RowChoice best{.rows = k, .gain = -terms.price_of(k), .guarded = k < std::min(sampled, most)};
    std::int64_t gain = 0;
    for (std::size_t c = 1; c < worth_classes && k < most && best.rows >= sampled; ++c) {
      for (std::size_t left = std::min<std::size_t>(offered.in_class(c), most - k); left > 0; --left) {
        gain += worth_of_class[c];
        ++k;
        best.offer(terms, k, gain - terms.price_of(k));
      }
    }
    return best;
  }

  /// Distributes the drafted rows, first to the nodes with the highest worth. Writes the number of drafted nodes of
  /// each sequence to `nodes`, and returns their sum. Within the last class, sequence number `turn` (modulo the number
  /// of sequences) gets rows first, then the sequences after it, in cyclic order.
  static std::size_t share_out(const OfferedNodes& offered, const RowChoice& choice, std::size_t turn,
                               std::span<std::uint32_t> nodes) noexcept {
    std::size_t rows = choice.rows;
    std::size_t last = 0;  // the first class that does not fit in full
    while (last < worth_classes && offered.in_class(last) <= rows) rows -= offered.in_class(last++);
    const auto take = [&](std::size_t i, std::size_t bound, std::size_t most) {
      const std::uint16_t* const classes = offered.classes_of(i);
      std::uint32_t& n = nodes[i];
      const std::uint32_t before = n;
      while (n < offered.nodes_of(i) && n - before < most && classes[n] < bound) ++n;
      return n - before;
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i] = 0;
      take(i, last, unlimited);
    }
    for (std::size_t i = 0; i < nodes.size() && rows > 0; ++i) rows -= take((turn + i) % nodes.size(), last + 1, rows);
    return choice.rows;
  }
};

}  // namespace reprise::detail
