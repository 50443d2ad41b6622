// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

/// \file The input and output types of BatchPlanner.
namespace reprise::inline v0 {

/// One sequence of the next pass.
struct BatchEntry {
  Offer offer;              ///< from Session::offer(); its draft may be empty
  std::size_t context = 0;  ///< number of committed tokens of the sequence
};

/// Settings of BatchPlanner. All have working defaults.
struct BatchOptions {
  /// The cost of a pass as a function of its total rows. Without a curve, costs are learned from the times passed to
  /// learn(); until the first measured time, the default curve applies. Use CostCurve::linear(0) if only a token budget
  /// should limit drafts.
  std::optional<CostCurve> curve = {};
  /// Token budget of a pass: all rows, including pending rows and the `other_rows` of BatchPlanner::plan().
  std::size_t max_rows = unlimited;
  /// Upper bound on the drafted rows of one sequence. A BatchPlanner takes larger values than its most_nodes, 256, for
  /// 256. BatchFollower::make() refuses values above the largest draft of its strategy. By default, the bound is that
  /// of the budget asked or of the slot, up to most_draft_nodes. If that is unlimited, it is 63: a pass of 64 rows.
  std::size_t max_nodes = unlimited;
  /// Upper bound on the drafted rows of a pass. A BatchPlanner takes larger values than 65,536 for 65,536.
  /// BatchFollower::make() refuses them.
  std::size_t max_drafted = 512;
  /// The row counts that the engine can run for a whole pass (captured graphs). The caller pads the rows of a plan up
  /// to the next allowed count.
  AllowedWidths widths = {};
  /// The loss budget of one engine and one tenant, shared by all planners and controls that serve this tenant. It must
  /// outlive the planner. Null: the planner has a budget of its own.
  LossBudget* loss_budget = nullptr;
};

/// The number of tokens that each sequence drafts. The view is valid until the next plan(), shrink() or reserve().
struct BatchPlan {
  std::span<const std::uint32_t> nodes;  ///< one element per entry, in the same order; see nodes_of()
  std::size_t drafted = 0;               ///< sum of `nodes`
  std::size_t rows = 0;                  ///< rows of the pass, without padding
  std::size_t width = 0;                 ///< rows of the pass, with padding
  Cut cut = Cut::none;                   ///< why some offered nodes are not drafted; pass it to Session::plan()

  /// Returns nodes[i], or 0 for a plan that ran out of memory (Cut::out_of_memory), because its `nodes` is empty.
  [[nodiscard]] std::size_t nodes_of(std::size_t i) const noexcept { return i < nodes.size() ? nodes[i] : 0; }
};

}  // namespace reprise
