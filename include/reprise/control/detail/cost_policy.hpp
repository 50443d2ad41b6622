// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/learned_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"

/// \file The sources of pass costs: two policies with one interface, shared by CostControl (one sequence) and
/// BatchPlanner (many sequences). Both policies are views: the curve must outlive them, and they keep no state between
/// calls.
namespace reprise::inline v0::detail {

/// Returns how much of a draft to send, by the rule for its kind.
inline DraftChoice length_of(DraftKind kind, const LengthInput& input) noexcept {
  return kind == DraftKind::sampled ? stopping_length(input) : draft_length(input);
}

/// Returns true if the first of `nodes` is a child of the anchor, and each later one of the node before it.
inline bool forms_chain(DraftView draft, std::span<const NodeIndex> nodes) noexcept {
  NodeIndex last = anchor_parent;
  for (const NodeIndex node : nodes) {
    if (draft[static_cast<std::size_t>(node)].parent != last) return false;
    last = node;
  }
  return true;
}

/// Costs from a given curve. These costs count as certain, so no choice explores.
class ToldCost {
 public:
  explicit ToldCost(const CostCurve& curve) noexcept : curve_(curve) {}

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept { return curve_.cost(shape); }
  /// Sets out[k] to the cost of `plain` with k drafted rows.
  void costs(const PassShape& plain, std::span<Cost> out) const noexcept { curve_.costs(plain, out); }
  /// Returns the version of the costs. Costs read earlier stay valid until it changes.
  [[nodiscard]] static constexpr std::uint32_t revision() noexcept { return 0; }
  [[nodiscard]] bool depends_on_context() const noexcept { return curve_.depends_on_context(); }

  /// Returns the cost that the loss budget has to cover before a pass whose cost is `cost`.
  [[nodiscard]] static constexpr Cost reserved(const PassShape&, Cost cost) noexcept { return cost; }
  /// Returns the cost that the loss budget is charged for a pass with a draft.
  [[nodiscard]] static constexpr std::int64_t charged(std::int64_t cost) noexcept { return cost; }
  /// Returns the maximum number of drafted rows that may be sent.
  [[nodiscard]] static constexpr std::size_t explored_rows(const PassLimits&) noexcept { return unlimited; }
  [[nodiscard]] static constexpr bool should_probe_plain(std::int64_t, const LossBudget&) noexcept { return false; }
  /// Returns nullopt, because there is nothing to learn.
  [[nodiscard]] static constexpr std::optional<DraftChoice> trial(DraftKind, const LengthInput&) noexcept {
    return std::nullopt;
  }

 private:
  const CostCurve& curve_;
};

/// Costs learned from pass times. They can be wrong, so passes with a draft are charged more, and some choices try
/// lengths of uncertain cost.
class LearnedCost {
 public:
  /// The maximum number of drafted rows in an exploring choice.
  static constexpr std::size_t most_nodes = 64;

  /// `unit`: the number of drafted rows of a batch that one drafted row of the curve represents.
  explicit LearnedCost(const LearnedCurve& curve, std::size_t unit = 1) noexcept : curve_(curve), unit_(unit) {}

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept { return curve_.cost(shape.rows, shape.context); }
  /// Sets out[k] to the cost of `plain` with k drafted rows. With a unit above 1, `plain` must have one row, and costs
  /// are interpolated linearly between the row counts of the curve.
  void costs(const PassShape& plain, std::span<Cost> out) const noexcept {
    if (unit_ == 1) return curve_.costs(plain.rows, plain.context, out);
    const auto unit = static_cast<std::int64_t>(unit_);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::int64_t low = curve_.cost(plain.rows + k / unit_, plain.context);
      const std::int64_t high = curve_.cost(plain.rows + k / unit_ + 1, plain.context);
      out[k] = static_cast<Cost>(low + (high - low) * static_cast<std::int64_t>(k % unit_) / unit);
    }
  }
  [[nodiscard]] std::uint32_t revision() const noexcept { return curve_.revision(); }
  [[nodiscard]] static constexpr bool depends_on_context() noexcept { return true; }

  /// Returns `cost` plus 1/32 of it, to cover the error of learned costs.
  [[nodiscard]] static constexpr std::int64_t charged(std::int64_t cost) noexcept { return cost + cost / 32; }
  /// Like charged(cost), for a pass of `rows` rows in total that took `time`. If the cost of the row count is trusted,
  /// adds the relative error LearnedCurve::margin() instead of 1/32. Otherwise adds 1/32; if LearnedCurve::measured()
  /// is higher than `cost`, the mean of both replaces `cost` first. If a trusted pass took less than half of the
  /// expected time, the measured cost replaces `cost`.
  [[nodiscard]] std::int64_t charged(Cost cost, std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    if (!curve_.trusted(rows)) return charged(std::max(cost, cost / 2 + curve_.measured(rows, time) / 2));
    if (const Cost measured = curve_.measured(rows, time); measured < cost / 2) cost = measured;
    return cost + UnitScale::multiply(std::int64_t{cost}, curve_.margin(rows));
  }
  /// Returns the cost that the loss budget has to cover before a pass like `shape`, whose expected cost is `cost`. If
  /// no budget can ever cover that cost, returns the lowest plausible cost: a cost that is believed far too high could
  /// otherwise never be tried.
  [[nodiscard]] Cost reserved(const PassShape& shape, Cost cost) const noexcept {
    return std::int64_t{cost} - cost_one <= LossBudget::burst ? cost : curve_.plausible(shape.rows, cost);
  }

  /// Returns the maximum number of drafted rows for which the pass stays within LearnedCurve::explored_rows(). With
  /// widths, that limit is rounded up to the next width that allows a draft, if there is one.
  [[nodiscard]] std::size_t explored_rows(const PassLimits& room) const noexcept {
    std::size_t rows = curve_.explored_rows();
    const auto width = std::lower_bound(room.widths.begin(), room.widths.end(), std::max(rows, room.plain.rows + 1));
    if (width != room.widths.end()) rows = *width;
    return rows - std::min(rows, room.plain.rows);
  }
  /// Returns the maximum number of drafted rows of a batch, regardless of widths.
  [[nodiscard]] std::size_t explored_rows() const noexcept { return (curve_.explored_rows() - 1) * unit_; }

  /// Returns true if the next pass should be plain, so that a plain pass is timed. `gain`: the value of the draft that
  /// would be skipped, in plain passes. While drafting seems to lose, the time of a plain pass matters more than one
  /// draft, so the result is true more often.
  [[nodiscard]] bool should_probe_plain(std::int64_t gain, const LossBudget& budget) const noexcept {
    return curve_.should_probe_plain(gain, budget.strained());
  }

  /// Returns a trial: a length to send in order to learn its cost. Returns nullopt if no trial is due. A try is the
  /// best length at optimistic costs, if its cost is uncertain. A check is the shortest length up to that one whose
  /// time can refute its cost; checks go first. The loss budget does not limit trials: Search does.
  [[nodiscard]] std::optional<DraftChoice> trial(DraftKind kind, LengthInput input) const noexcept {
    const bool may_check = curve_.may_check();
    if (!may_check && !curve_.may_try()) return std::nullopt;
    constexpr std::int64_t most_loss = 4 * std::int64_t{cost_one};
    std::size_t most = input.costs.size() - 1;
    while (most > 0 && input.costs[most] > input.costs[0] + most_loss) --most;
    const std::span<const Cost> expected = input.costs.first(most + 1);
    std::array<Cost, most_nodes + 1> optimistic;  // NOLINT(*-member-init): filled as far as it is read
    curve_.optimistic_costs(input.plain_rows, input.context, std::span(optimistic).first(most + 1));
    input.costs = std::span(optimistic).first(most + 1);
    input.allowance = most_rate;
    // Neither the tokens of a sampled draft nor their number may decide what is tried.
    const bool sampled = kind == DraftKind::sampled;
    DraftChoice best;
    if (!sampled) {
      best = draft_length(input);
      most = best.nodes + best.padding;
      if (most == 0 || !curve_.uncertain(input.plain_rows + most)) return std::nullopt;
    }
    const std::size_t first = may_check ? first_refutable(input, expected, most) : 0;
    if (first == 0 && !curve_.may_try()) return std::nullopt;
    if (sampled) {
      if (first > 0) input.costs = input.costs.first(first + 1);
      return stopping_length(input);
    }
    if (first == 0) {
      if (curve_.refutable(input.plain_rows + most, expected[most])) return std::nullopt;  // a check that is not due
      return best;
    }
    const std::size_t nodes = std::min(first, best.nodes);
    return DraftChoice{.nodes = nodes, .padding = first - nodes, .cut = best.cut};
  }

 private:
  /// Returns the smallest allowed number of drafted rows up to `most` whose cost can be refuted, or 0.
  [[nodiscard]] std::size_t first_refutable(const LengthInput& input, std::span<const Cost> expected,
                                            std::size_t most) const noexcept {
    std::size_t first = 0;
    for_each_row_count(input.widths, input.plain_rows, most, [&](std::size_t rows) {
      if (first == 0 && curve_.refutable(input.plain_rows + rows, expected[rows])) first = rows;
    });
    return first;
  }

  const LearnedCurve& curve_;
  std::size_t unit_;
};

}  // namespace reprise::detail
