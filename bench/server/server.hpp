// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "replay/cost_curve.hpp"
#include "replay/trace.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/token.hpp"

namespace reprise::server {

/// How much a pass drafts.
struct Method {
  enum class Kind : std::uint8_t { none, fixed, planner };
  Kind kind = Kind::planner;
  std::size_t nodes = 0;  ///< of fixed: the best so many of each draft

  [[nodiscard]] std::string text() const;
  friend bool operator==(const Method&, const Method&) = default;
};

/// How sessions are served.
struct ServerSetup {
  std::size_t sequences = 1;  ///< in every pass
  Method method = {};
  const replay::CostCurve* curve = nullptr;  ///< what passes take, by all their rows
  bool learned = false;                      ///< the planner is told times instead of the curve
  std::size_t max_nodes = 32;                ///< drafted rows of one sequence
  std::size_t max_rows = unlimited;          ///< of a pass of the planner
  bool trees = true;
};

/// What was counted.
struct ServerCounts {
  std::uint64_t sessions = 0;  ///< begun
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  double cost = 0;                ///< in the time of a pass of one row
  std::uint64_t planning_ns = 0;  ///< in the planner: budget, plan and learn
  std::string fault;              ///< where an output first differed from its recording; empty: nowhere

  /// Tokens in the time of a pass of one row.
  [[nodiscard]] double throughput() const { return cost > 0 ? static_cast<double>(tokens) / cost : 0; }
};

/// What a pass takes, in the time of one of one row.
double pass_cost(const replay::CostCurve& curve, std::size_t rows, std::size_t context);
/// The same curve as the planner is told of it.
CostCurve told_curve(const replay::CostCurve& curve);

/// Serves `sessions` in their order: as soon as one has ended, the next takes its place, so that every pass is full;
/// counting ends with the pass after which none is left to begin. All else is as replay_session() has it: the first
/// token of a turn and all prompts are free, and nobody knows how long a turn will be.
ServerCounts serve(std::span<const replay::TraceSession* const> sessions, const ServerSetup& setup);

}  // namespace reprise::server
