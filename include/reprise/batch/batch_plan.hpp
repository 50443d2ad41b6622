// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/evidence/acceptance_calibrator.hpp"
#include "reprise/loop/pass.hpp"

/// \file The types that BatchPlanner takes and returns.
namespace reprise::inline v0 {

/// One sequence of the next pass.
struct BatchEntry {
  Offer offer;                                   ///< from Session::offer(); an empty draft will do
  std::size_t context = 0;                       ///< its committed tokens
  const AcceptanceCalibrator* credit = nullptr;  ///< null: its probabilities can be taken as they are
};

/// Settings of BatchPlanner. All have working defaults.
struct BatchOptions {
  std::optional<CostCurve> curve = {};  ///< the cost of passes, by all their rows; none: learned from the times given
                                        ///< to learn(), and until there are times the default. CostCurve::linear(0)
                                        ///< where a token budget alone decides
  std::size_t max_rows = unlimited;     ///< token budget of a pass: rows in all, pending and other ones included
  std::size_t max_nodes = 32;           ///< most drafted rows of one sequence; more than
                                        ///< BatchPlanner::most_nodes have no effect
  std::size_t max_drafted = 512;        ///< most drafted rows of a pass; more than 65,536 have no effect
  AllowedWidths widths = {};            ///< the row counts that are run (captured graphs): the rows of a plan are to be
                                        ///< padded up to the next one. Of the whole pass; if uniform, of each sequence
  bool uniform = false;                 ///< all sequences of a drafting pass have as many rows, padded where they have
                                        ///< fewer: for kernels that take one query length
};

/// How much each sequence drafts. The view holds until the next plan() or shrink().
struct BatchPlan {
  std::span<const std::uint32_t> nodes;  ///< for each entry, in their order; see nodes_of()
  std::size_t drafted = 0;               ///< these added up
  std::size_t rows = 0;                  ///< of the pass, without padding
  std::size_t width = 0;                 ///< of the pass, padded
  std::size_t row_width = 0;             ///< if uniform and anything is drafted: rows of each sequence, padded; else 0
  Cut cut = Cut::none;                   ///< why it is not all that was offered; for Session::plan()

  /// nodes[i], also of a plan for which there was no memory (Cut::out_of_memory): it has no nodes to read, and nobody
  /// drafts.
  [[nodiscard]] std::size_t nodes_of(std::size_t i) const noexcept { return i < nodes.size() ? nodes[i] : 0; }
};

}  // namespace reprise
