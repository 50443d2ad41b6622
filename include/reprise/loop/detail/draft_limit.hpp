// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Clamps the answers of control to the clauses of its contract (core/control.hpp). Like strategies, control is
/// never trusted.

#include <algorithm>
#include <cstddef>

#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise::inline v0 {

/// The number of nodes of the round's draft that the pass may carry.
struct DraftLimit {
  std::size_t nodes = 0;         ///< upper bound on nodes of this draft
  std::size_t rows = unlimited;  ///< upper bound on drafted rows, pad rows included, for a draft of any size
  Cut cut = Cut::none;           ///< the rule that set `nodes`; none or shape: the whole draft fits
};

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

}  // namespace reprise
