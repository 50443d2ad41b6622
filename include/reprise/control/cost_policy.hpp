// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/draft_length.hpp"
#include "reprise/control/learned_curve.hpp"
#include "reprise/control/loss_guard.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"

/// \file Where the costs of passes come from: two policies with one interface, shared by CostControl (one sequence) and
/// BatchPlanner (many). Both are views: the curve has to outlive them, and nothing is kept from call to call.
namespace reprise::inline v0 {

/// The rule for the kind of the draft.
inline LengthChoice length_of(DraftKind kind, const LengthInput& input) noexcept {
  return kind == DraftKind::sampled ? stopping_length(input) : draft_length(input);
}

/// Costs of a curve that was given: they are certain, so nothing is explored.
class ToldCost {
 public:
  explicit ToldCost(const CostCurve& curve) noexcept : curve_(curve) {}

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept { return curve_.cost(shape); }
  /// out[k] becomes the cost of `plain` with k rows more.
  void costs(const PassShape& plain, std::span<Cost> out) const noexcept { curve_.costs(plain, out); }
  /// Costs that were read hold as long as this is the same.
  [[nodiscard]] static constexpr std::uint32_t revision() noexcept { return 0; }
  [[nodiscard]] bool depends_on_context() const noexcept { return curve_.depends_on_context(); }

  /// The cost of a pass with a draft as the loss guard takes it.
  [[nodiscard]] static constexpr std::int64_t charged(std::int64_t cost) noexcept { return cost; }
  /// The most drafted rows that may be sent at all.
  [[nodiscard]] static constexpr std::size_t explored_rows(const PassLimits&) noexcept { return unlimited; }
  [[nodiscard]] static constexpr bool should_probe_plain(std::int64_t, const LossGuard&) noexcept { return false; }
  /// `usual`, or a choice that is made to learn from it.
  [[nodiscard]] static constexpr LengthChoice explore(DraftKind, const LengthInput&,
                                                      const LengthChoice& usual) noexcept {
    return usual;
  }

 private:
  const CostCurve& curve_;
};

/// Costs learned from pass times: they can be wrong, so passes are charged more, and now and then one is made to learn.
class LearnedCost {
 public:
  /// The most rows of which an exploring choice is made.
  static constexpr std::size_t most_nodes = 64;

  /// `unit`: rows that one row of the curve stands for, in a batch.
  explicit LearnedCost(const LearnedCurve& curve, std::size_t unit = 1) noexcept : curve_(curve), unit_(unit) {}

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept { return curve_.cost(shape.rows); }
  /// out[k] becomes the cost of `plain` with k rows more. A unit above 1: of one plain row of the curve, and straight
  /// between its rows.
  void costs(const PassShape& plain, std::span<Cost> out) const noexcept {
    if (unit_ == 1) {
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = curve_.cost(plain.rows + k);
      return;
    }
    const auto unit = static_cast<std::int64_t>(unit_);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::int64_t low = curve_.cost(plain.rows + k / unit_);
      const std::int64_t high = curve_.cost(plain.rows + k / unit_ + 1);
      out[k] = static_cast<Cost>(low + (high - low) * static_cast<std::int64_t>(k % unit_) / unit);
    }
  }
  [[nodiscard]] std::uint32_t revision() const noexcept { return curve_.passes(); }
  [[nodiscard]] static constexpr bool depends_on_context() noexcept { return false; }

  /// A 32nd more, for the error of learned costs.
  [[nodiscard]] static constexpr std::int64_t charged(std::int64_t cost) noexcept { return cost + cost / 32; }
  /// The same for a pass of `rows` rows that took `time`: of a row count that is not known well the mean of the learned
  /// and of the measured cost.
  [[nodiscard]] std::int64_t charged(Cost cost, std::size_t rows, std::chrono::nanoseconds time) const noexcept {
    return charged(curve_.uncertain(rows) ? std::max(cost, cost / 2 + curve_.measured(rows, time) / 2) : cost);
  }

  /// Drafted rows up to the limit of LearnedCurve::explored_rows(); where widths are given, up to the next one.
  [[nodiscard]] std::size_t explored_rows(const PassLimits& room) const noexcept {
    std::size_t rows = curve_.explored_rows();
    const auto width = std::lower_bound(room.widths.begin(), room.widths.end(), std::max(rows, room.plain.rows + 1));
    if (width != room.widths.end()) rows = *width;
    return rows - std::min(rows, room.plain.rows);
  }
  /// The same without widths, for a batch.
  [[nodiscard]] std::size_t explored_rows() const noexcept { return (curve_.explored_rows() - 1) * unit_; }

  /// `gain`: of the draft that would be left out, in plain passes. Where drafting seems to lose, knowing the time of a
  /// plain pass matters more than one draft.
  [[nodiscard]] bool should_probe_plain(std::int64_t gain, const LossGuard& guard) const noexcept {
    return curve_.should_probe_plain(gain, guard.strained());
  }

  /// A length of uncertain cost, if it would be the better one at its optimistic cost and a try is due; else `usual`.
  [[nodiscard]] LengthChoice explore(DraftKind kind, const LengthInput& input,
                                     const LengthChoice& usual) const noexcept {
    if (!curve_.may_explore(0)) return usual;
    std::array<Cost, most_nodes + 1> optimistic;  // NOLINT(*-member-init): filled as far as it is read
    for (std::size_t i = 0; i < input.costs.size(); ++i) optimistic[i] = curve_.optimistic_cost(input.plain_rows + i);
    LengthInput other_input = input;
    other_input.costs = std::span(optimistic).first(input.costs.size());
    if (kind == DraftKind::sampled) {
      // Neither the drawn tokens nor their number may decide whether this is a try: the most that it can cost does.
      const std::int64_t most = std::int64_t{input.costs.back()} - input.costs[0];
      const bool affordable = curve_.may_explore(most) && most + input.rollback <= input.allowance;
      return affordable ? stopping_length(other_input) : usual;
    }
    const LengthChoice other = draft_length(other_input);
    const std::size_t rows = other.nodes + other.padding;
    if (rows == 0 || !curve_.uncertain(input.plain_rows + rows)) return usual;
    const std::int64_t loss = std::int64_t{input.costs[rows]} - input.costs[usual.nodes + usual.padding];
    // The price of a rejection is read from the optimistic costs, as the length was.
    const std::int64_t more =
        std::int64_t{input.costs[rows]} - input.costs[0] + detail::highest_rejection_cost(other_input, rows);
    return curve_.may_explore(loss) && more <= input.allowance ? other : usual;
  }

 private:
  const LearnedCurve& curve_;
  std::size_t unit_;
};

}  // namespace reprise
