// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/batch/detail/batch_cost.hpp"
#include "reprise/batch/detail/offered_nodes.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/limits.hpp"

/// \file The number of drafted rows of a pass, and the share of each sequence. The nodes with the highest worth are
/// drafted.
namespace reprise { inline namespace v0 { namespace detail {

/// The costs and limits used to plan a pass.
struct PlanTerms {
  const BatchCost& cost;
  std::int64_t allowance = 0;  ///< highest extra cost that the loss budget covers
  std::int64_t price = 0;      ///< weight of the logarithm of the pass time, in UnitScale
  std::size_t row_limit = 0;   ///< upper bound on drafted rows

  [[nodiscard]] bool allowed(std::size_t k) const noexcept { return cost.extra(k) <= allowance; }
  /// Returns the price of the time that k drafted rows add, in UnitScale.
  [[nodiscard]] std::int64_t price_of(std::size_t k) const noexcept { return UnitScale::multiply(price, cost.log(k)); }
};

/// The chosen number of drafted rows of a pass.
struct RowChoice {
  std::size_t rows = 0;
  std::int64_t gain = 0;
  bool guarded = false;  ///< true if the loss budget did not allow a better number of drafted rows

  /// Changes the choice to k drafted rows if their gain is higher and the loss budget allows them.
  void offer(const PlanTerms& terms, std::size_t k, std::int64_t other_gain) noexcept {
    if (other_gain <= gain) return;
    if (!terms.allowed(k)) {
      guarded = true;
      return;
    }
    rows = k;
    gain = other_gain;
  }
};

/// Returns the number of drafted rows with the highest gain. Nodes of sampled drafts (class 0) come first, and their
/// worth is not compared: only the loss budget and the row limit bound them.
inline RowChoice choose_rows(const OfferedNodes& offered, const PlanTerms& terms) noexcept {
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

/// Distributes `rows` drafted rows, first to the nodes with the highest worth. Writes the number of drafted nodes of
/// each sequence to `nodes`. Within the last class, sequence number `turn` (modulo the number of sequences) gets rows
/// first, then the sequences after it, in cyclic order.
inline void share_rows(const OfferedNodes& offered, std::size_t rows, std::size_t turn,
                       std::span<std::uint32_t> nodes) noexcept {
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
}

}}}  // namespace reprise::detail
