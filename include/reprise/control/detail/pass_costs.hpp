// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/detail/learned_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"

/// \file The source of pass costs, shared by SequenceControl (one sequence) and BatchPlanner (many sequences).
namespace reprise { inline namespace v0 { namespace detail {

/// The costs of passes, from a given curve or learned from pass times. A view: its curve must outlive it, and it keeps
/// no state between calls. Given costs count as certain, so no choice explores. Learned costs can be wrong, so passes
/// with a draft are charged more, and some choices try lengths of uncertain cost.
class PassCosts {
 public:
  /// Reads costs from `told`, or from `learned` if there is no such curve.
  PassCosts(const std::optional<CostCurve>& told, const LearnedCurve& learned) noexcept
      : told_(told ? &*told : nullptr), learned_(learned) {}

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept {
    return told_ ? told_->cost(shape) : learned_.cost(shape.rows);
  }
  /// Sets out[k] to the cost of `plain` with k drafted rows.
  void costs(const PassShape& plain, std::span<Cost> out) const noexcept {
    told_ ? told_->costs(plain, out) : learned_.costs(plain.rows, out);
  }
  /// Returns the version of the costs. Costs read earlier stay valid until it changes.
  [[nodiscard]] std::uint32_t revision() const noexcept { return told_ ? 0 : learned_.revision(); }
  [[nodiscard]] bool depends_on_context() const noexcept { return told_ && told_->depends_on_context(); }

  /// Returns the cost that the loss budget is charged for a pass of `rows` rows in total, with a draft. A learned cost
  /// is charged with LearnedCurve::margin() if it is trusted, and otherwise with 1/32 of it.
  [[nodiscard]] std::int64_t charged(std::int64_t cost, std::size_t rows) const noexcept {
    if (told_) return cost;
    return learned_.trusted(rows) ? cost + UnitScale::multiply(cost, learned_.margin(rows)) : cost_in_doubt(cost);
  }
  /// Returns `cost` plus 1/32 of it, to cover the error of learned costs.
  [[nodiscard]] static constexpr std::int64_t cost_in_doubt(std::int64_t cost) noexcept { return cost + cost / 32; }

  /// Returns the maximum number of drafted rows that may be sent: unlimited at given costs. Otherwise the pass stays
  /// within LearnedCurve::explored_rows(), rounded down to a power of two: long drafts then time row counts that suit
  /// the kernels of most engines. The limit is at least 3, and never below a known row count. With widths, it is
  /// rounded up to the next width that allows a draft.
  [[nodiscard]] std::size_t explored_rows(const PassLimits& room) const noexcept {
    if (told_) return unlimited;
    auto rows = std::max<std::size_t>({3, std::bit_floor(learned_.explored_rows()), learned_.widest()});
    const auto width = std::lower_bound(room.widths.begin(), room.widths.end(), std::max(rows, room.plain.rows + 1));
    if (width != room.widths.end()) rows = *width;
    return rows - std::min(rows, room.plain.rows);
  }
  /// Returns true if the next pass should be plain, so that a plain pass is timed. `gain`: the value of the draft that
  /// would be skipped, in plain passes. While drafting seems to lose, the time of a plain pass matters more than one
  /// draft, so the result is true more often.
  [[nodiscard]] bool should_probe_plain(std::int64_t gain, const LossBudget& budget) const noexcept {
    return !told_ && learned_.should_probe_plain(gain, budget.strained());
  }

  /// Returns true if a trial is due.
  [[nodiscard]] bool may_try() const noexcept { return !told_ && learned_.may_try(); }
  /// Returns a trial: a length to send in order to learn its cost. Returns nullopt if no trial is due. It is the
  /// shortest length, up to the best one at optimistic costs, whose cost may be far too high. If there is none, it is
  /// that best length, if its cost is uncertain. The loss budget does not limit trials: LearnedCurve::may_try() does.
  [[nodiscard]] std::optional<DraftChoice> trial(DraftKind kind, LengthInput input) const noexcept {
    if (!may_try()) return std::nullopt;
    const std::span<const Cost> expected = input.costs;
    std::array<Cost, most_draft_nodes + 1> optimistic;  // NOLINT(*-member-init): filled as far as it is read
    const std::span<Cost> plausible = std::span(optimistic).first(expected.size());
    learned_.optimistic_costs(input.plain_rows, plausible);
    input.costs = plausible;
    input.allowance = most_rate;
    // Neither the tokens of a sampled draft nor their number may decide what is tried.
    const bool sampled = kind == DraftKind::sampled;
    const DraftChoice best = sampled ? DraftChoice{.nodes = expected.size() - 1} : draft_length(input);
    const std::size_t most = best.nodes + best.padding;
    if (most == 0 || (!sampled && !learned_.uncertain(input.plain_rows + most))) return std::nullopt;
    std::size_t first = 0;
    for_each_row_count(input.widths, input.plain_rows, most, [&](std::size_t rows) {
      if (first == 0 && learned_.telling(input.plain_rows + rows, expected[rows])) first = rows;
    });
    if (sampled) {
      if (first > 0) input.costs = input.costs.first(first + 1);
      return stopping_length(input);
    }
    if (first == 0 || learned_.prefers(input.plain_rows + most)) return best;
    const std::size_t nodes = std::min(first, best.nodes);
    return DraftChoice{.nodes = nodes, .padding = first - nodes, .cut = best.cut};
  }

 private:
  const CostCurve* told_;
  const LearnedCurve& learned_;
};

/// The costs of a pass like `plain` with 0, 1, 2, ... drafted rows, and figures derived from these costs.
/// SequenceControl compares lengths at these costs, and checks the chosen length at the exact context. All calls for
/// one table must pass costs of the same curve.
struct CostTable {
  /// Returns true if the table has the costs of passes like `shape` with up to `max_nodes` drafted rows, and no more.
  [[nodiscard]] bool holds(const PassCosts& from, const PassShape& shape, std::size_t max_nodes) const noexcept {
    return plain == key_of(from, shape) && revision == from.revision() && size == max_nodes + 1;
  }
  /// Reads the costs of passes like `shape` with up to `max_nodes` drafted rows (at most most_draft_nodes).
  void read(const PassCosts& from, const PassShape& shape, std::size_t max_nodes) noexcept {
    plain = key_of(from, shape);
    revision = from.revision();
    size = max_nodes + 1;
    const std::span<Cost> read = std::span(costs).first(size);
    from.costs(plain, read);
    max_throughput = highest_throughput(read);
    least_step = size > 1 ? most_step : 0;
    for (std::size_t i = 1; i < size; ++i) least_step = std::min(least_step, read[i] - std::min(read[i], read[i - 1]));
  }

  /// Returns the cost of a pass like `shape` with `drafted` more rows, at exactly `context` tokens. Requires that the
  /// table holds the costs of passes like `shape`.
  [[nodiscard]] Cost exact(const PassCosts& from, const PassShape& shape, std::size_t drafted,
                           std::size_t context) const noexcept {
    if (shape.rows + drafted == shape.sequences) return cost_one;
    if (!from.depends_on_context() && drafted < size) return costs[drafted];
    return from.cost({shape.sequences, shape.rows + drafted, context});
  }
  /// Returns the extra cost of the pass after one like `shape`, if it runs the pending rows of `shape` and its
  /// `committed` new tokens. Requires the same as exact().
  [[nodiscard]] std::int64_t exact_replay(const PassCosts& from, const PassShape& shape,
                                          std::size_t committed) const noexcept {
    const Cost next = exact(from, shape, committed, shape.context + committed);
    return std::int64_t{std::max(next, cost_one)} - cost_one;
  }

  PassShape plain;                               ///< the pass without a draft; its context is rounded
  std::uint32_t revision = 0;                    ///< version of the costs
  Rate max_throughput = rate_one;                ///< see highest_throughput()
  Cost least_step = 0;                           ///< smallest cost of one more drafted row
  std::size_t size = 0;                          ///< number of elements of `costs` that are filled
  std::array<Cost, most_draft_nodes + 1> costs;  // NOLINT(*-member-init): zeroing would take time

 private:
  static constexpr Cost most_step = cost_one * 256;

  /// Returns the shape for which costs are read. Its context is rounded down to a multiple of 64, or 0 if costs do not
  /// depend on the context.
  static PassShape key_of(const PassCosts& from, const PassShape& shape) noexcept {
    return {shape.sequences, shape.rows, from.depends_on_context() ? shape.context / 64 * 64 : 0};
  }
};

}}}  // namespace reprise::detail
