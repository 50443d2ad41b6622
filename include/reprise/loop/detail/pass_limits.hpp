// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The limits of the next pass of a sequence. The answers of control are clamped to the clauses of its contract
/// (core/control.hpp), because control is never trusted, like strategies.

#include <algorithm>
#include <cstddef>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/loop/detail/sequence.hpp"

namespace reprise::inline v0::detail {

/// True if pad rows may fill a pass up to an allowed width.
[[nodiscard]] inline bool pads(const Capabilities& can) noexcept {
  return can.pad_token && !can.allowed_widths.empty();
}
/// True if the next pass must run the accepted tokens again after a rejection.
[[nodiscard]] inline bool replays(const Capabilities& can) noexcept { return can.rollback == Rollback::snapshot; }

/// Returns the maximum number of paths of a draft. It is above 1 only if the caller's limits, the engine and `shape`
/// all allow a tree. `shape` is the argument of Session::propose().
[[nodiscard]] inline std::size_t max_leaves(const Limits& limits, const Capabilities& can, DraftShape shape) noexcept {
  if (shape == DraftShape::chain || limits.draft.shape == DraftShape::chain) return 1;
  return std::max<std::size_t>(1, std::min(limits.draft.max_leaves, can.max_leaves));
}

/// Returns the limits that control gets for a pass with at most `rows` drafted rows.
[[nodiscard]] inline PassLimits pass_limits(const Sequence& sequence, std::size_t rows) noexcept {
  const Capabilities& can = sequence.capabilities();
  const PassShape plain{1, sequence.pending().size(), sequence.context().size()};
  return {plain, rows, can.allowed_widths.values(), pads(can), replays(can)};
}

/// Returns the maximum number of rows of a pass, pending rows included.
[[nodiscard]] inline std::size_t most_rows(const Limits& limits, const Capabilities& can) noexcept {
  return std::min(limits.max_rows, can.max_rows);
}

/// Enforces K2: returns `budget`, narrowed to `asked`.
inline DraftBudget clamp_to_contract(DraftBudget budget, const DraftBudget& asked) noexcept {
  budget.max_nodes = std::min(budget.max_nodes, asked.max_nodes);
  budget.max_depth = std::min(budget.max_depth, asked.max_depth);
  budget.max_leaves = std::clamp<std::size_t>(budget.max_leaves, 1, std::max<std::size_t>(asked.max_leaves, 1));
  if (asked.shape == DraftShape::chain) budget.shape = DraftShape::chain;
  budget.min_path_probability = std::max(budget.min_path_probability, asked.min_path_probability);
  return budget;
}

/// Enforces K3: limits `choice` to the sendable nodes, to room.nodes and to an allowed width. A width that is not
/// allowed is lowered to the largest allowed width below it. If there is no such width, nothing is drafted.
inline DraftChoice clamp_to_contract(DraftChoice choice, std::size_t sendable, const PassLimits& room) noexcept {
  choice.nodes = std::min({choice.nodes, sendable, room.nodes});
  choice.padding = room.padded ? std::min(choice.padding, room.nodes - choice.nodes) : 0;
  const std::size_t rows = widest(room, choice.nodes + choice.padding);
  if (rows < choice.nodes) {
    choice.nodes = rows;
    choice.cut = Cut::width;
  }
  choice.padding = rows - choice.nodes;
  if (static_cast<std::size_t>(choice.cut) >= cut_count) choice.cut = Cut::none;
  return choice;
}

}  // namespace reprise::detail
