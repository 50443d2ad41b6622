// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reprise/control/cost_curve.hpp"

namespace reprise::inline v0 {

/// The costs of passes of 2 to 64 rows that are assumed before such passes have been timed. Each row count has an
/// assumed cost or none. A default-constructed prior assumes nothing.
///
/// LearnedCurve starts from a prior, and measured times correct the assumed costs. If CostControl gets neither a curve
/// nor times, it always drafts by the prior, so a wrong prior stays wrong. docs/choosing.md states the loss.
///
/// A plain value of 252 bytes. Cost: a few nanoseconds for each row count. Threads: many may call const functions.
class CostPrior {
 public:
  static constexpr std::size_t least_rows = 2;
  static constexpr std::size_t most_rows = 64;
  static constexpr Cost least_cost = cost_one / 64;
  static constexpr Cost most_cost = cost_one * 1024;

  constexpr CostPrior() noexcept = default;

  /// Returns the costs of a GPU that runs one sequence, with captured graphs or few launches. Reading the weights takes
  /// most of a pass. Each of the first 32 drafted rows costs 1% of a plain pass, and each further row costs 2%. Source:
  /// docs/choosing.md, which states 0.005 to 0.02 for a row. No GPU was measured.
  [[nodiscard]] static constexpr CostPrior gpu_batch_1() noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows) {
      const std::size_t drafted = rows - 1;
      prior.assume(rows, cost_one + share(drafted, 1) + share(drafted - std::min<std::size_t>(drafted, 32), 1));
    }
    return prior;
  }
  /// Returns the costs of a CPU with quantised weights. The first drafted row costs 65% of a plain pass, because the
  /// engine changes to another kernel; each further row costs 35%. Source: llama.cpp with a model of 135 million
  /// parameters on an AMD EPYC (docs/performance/costs-and-curves.md). In the curves of bench/profiles/README.md,
  /// the first drafted row costs 0.7 to 0.8, and later rows cost 0.4 to 0.7 on average. Curves that are not bundled go
  /// down to 0.57 and 0.27.
  [[nodiscard]] static constexpr CostPrior cpu_quantised() noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows)
      prior.assume(rows, cost_one + share(1, 65) + share(rows - least_rows, 35));
    return prior;
  }
  /// Returns the costs that a curve gives for passes of one sequence at `context` tokens, limited as by assume(). The
  /// curve can be one that was measured on another machine.
  [[nodiscard]] static CostPrior of(const CostCurve& curve, std::size_t context = 0) noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows) prior.assume(rows, curve.cost({1, rows, context}));
    return prior;
  }

  /// Assumes `cost` for passes of `rows` rows. The cost is limited to least_cost ... most_cost. The call has no effect
  /// for fewer than least_rows or more than most_rows rows.
  constexpr void assume(std::size_t rows, Cost cost) noexcept {
    if (rows >= least_rows && rows <= most_rows) costs_[rows - least_rows] = std::clamp(cost, least_cost, most_cost);
  }
  /// Returns true if a cost is assumed for this row count.
  [[nodiscard]] constexpr bool assumes(std::size_t rows) const noexcept { return cost(rows) != 0; }
  /// Returns the assumed cost, or 0 if none is assumed.
  [[nodiscard]] constexpr Cost cost(std::size_t rows) const noexcept {
    return rows >= least_rows && rows <= most_rows ? costs_[rows - least_rows] : 0;
  }
  /// Returns the number of row counts with an assumed cost.
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(std::count_if(costs_.begin(), costs_.end(), [](Cost cost) { return cost != 0; }));
  }
  /// Returns true if no row count has an assumed cost.
  [[nodiscard]] constexpr bool empty() const noexcept { return widest() == 1; }
  /// Returns the largest row count with an assumed cost, or 1 if there is none.
  [[nodiscard]] constexpr std::size_t widest() const noexcept {
    std::size_t rows = most_rows;
    while (rows > 1 && !assumes(rows)) --rows;
    return rows;
  }

  friend constexpr bool operator==(const CostPrior&, const CostPrior&) noexcept = default;

 private:
  /// Returns `percent` percent of a plain pass for each of `rows` rows.
  static constexpr Cost share(std::size_t rows, std::uint64_t percent) noexcept {
    return static_cast<Cost>(rows * percent * cost_one / 100);
  }

  std::array<Cost, most_rows - least_rows + 1> costs_{};  // 0: nothing is assumed
};
static_assert(std::is_trivially_copyable_v<CostPrior> && sizeof(CostPrior) <= 300);

}  // namespace reprise
