// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/cost_policy.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/core/capabilities.hpp"

namespace reprise::inline v0::detail {

/// The costs of a pass like `plain` with 0, 1, 2, ... drafted rows, and figures derived from these costs. CostControl
/// compares lengths at these costs, and checks the chosen length at the exact context. Costs come from a policy of
/// cost_policy.hpp. All calls for one table must pass policies of the same kind and the same curve.
struct CostTable {
  /// Returns true if the table has the costs of passes like `shape`.
  template <class Policy>
  [[nodiscard]] bool holds(const Policy& policy, const PassShape& shape) const noexcept {
    const PassShape key = key_of(policy, shape);
    return plain.sequences == key.sequences && plain.rows == key.rows && plain.context == key.context &&
           revision == policy.revision();
  }
  /// Reads the costs of passes like `shape` with up to `max_nodes` drafted rows (at most LearnedCost::most_nodes).
  template <class Policy>
  void read(const Policy& policy, const PassShape& shape, std::size_t max_nodes) noexcept {
    plain = key_of(policy, shape);
    revision = policy.revision();
    size = max_nodes + 1;
    const std::span<Cost> read = std::span(costs).first(size);
    policy.costs(plain, read);
    max_throughput = highest_throughput(read);
    least_step = size > 1 ? most_step : 0;
    for (std::size_t i = 1; i < size; ++i) least_step = std::min(least_step, read[i] - std::min(read[i], read[i - 1]));
  }

  /// Returns the cost of a pass like `shape` with `drafted` more rows, at exactly `context` tokens. Requires that the
  /// table holds the costs of passes like `shape`.
  template <class Policy>
  [[nodiscard]] Cost exact(const Policy& policy, const PassShape& shape, std::size_t drafted,
                           std::size_t context) const noexcept {
    if (shape.rows + drafted == shape.sequences) return cost_one;
    if (!policy.depends_on_context() && drafted < size) return costs[drafted];
    return policy.cost({shape.sequences, shape.rows + drafted, context});
  }
  /// Returns the extra cost of the pass after one like `shape`, if it runs the pending rows of `shape` and its
  /// `committed` new tokens. Requires the same as exact().
  template <class Policy>
  [[nodiscard]] std::int64_t exact_replay(const Policy& policy, const PassShape& shape,
                                          std::size_t committed) const noexcept {
    const Cost next = exact(policy, shape, committed, shape.context + committed);
    return std::int64_t{std::max(next, cost_one)} - cost_one;
  }

  PassShape plain;                                      ///< the pass without a draft; its context is rounded
  std::uint32_t revision = 0;                           ///< version of the policy's costs
  Rate max_throughput = rate_one;                       ///< see highest_throughput()
  Cost least_step = 0;                                  ///< smallest cost of one more drafted row
  std::size_t size = 0;                                 ///< number of elements of `costs` that are filled
  std::array<Cost, LearnedCost::most_nodes + 1> costs;  // NOLINT(*-member-init): zeroing would take time

 private:
  static constexpr Cost most_step = cost_one * 256;

  /// Returns the shape for which costs are read. Its context is rounded down to a multiple of 64, or 0 if costs do not
  /// depend on the context.
  template <class Policy>
  static PassShape key_of(const Policy& policy, const PassShape& shape) noexcept {
    return {shape.sequences, shape.rows, policy.depends_on_context() ? shape.context / 64 * 64 : 0};
  }
};

}  // namespace reprise::detail
