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

/// The rule that decides how many tokens a pass drafts.
struct Method {
  enum class Kind : std::uint8_t { none, fixed, planner };
  Kind kind = Kind::planner;
  std::size_t nodes = 0;  ///< for fixed: the number of best nodes of each draft

  [[nodiscard]] std::string text() const;
  friend bool operator==(const Method&, const Method&) = default;
};

/// The settings of a simulation.
struct ServerSetup {
  std::size_t sequences = 1;  ///< in every pass
  Method method = {};
  const replay::CostCurve* curve = nullptr;  ///< time of a pass, by CostCurve::batch_cost()
  bool learned = false;                      ///< the planner receives pass times instead of the curve
  double noise = 0;                          ///< of these times: standard deviation over mean
  std::uint64_t seed = 1;                    ///< of the noise
  std::size_t max_nodes = 32;                ///< drafted rows of one sequence
  bool trees = true;
};

/// The counts of a simulation.
struct ServerCounts {
  std::uint64_t sessions = 0;  ///< sessions begun
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  double cost = 0;                ///< unit: the time of a pass of one row
  std::uint64_t planning_ns = 0;  ///< time in the planner: budget, plan and learn
  std::string fault;              ///< the first difference from a recording; empty: none

  /// Tokens in the time of a pass of one row.
  [[nodiscard]] double throughput() const { return cost > 0 ? static_cast<double>(tokens) / cost : 0; }
};

/// The curve in the form that the planner receives.
CostCurve told_curve(const replay::CostCurve& curve);

/// Serves `sessions` in order. When one ends, the next takes its place, so every pass is full. Counting ends with the
/// pass after which no session is left to begin. The rules of replay_session() apply: all prompts and the first token
/// of each turn are free, and the length of a turn is unknown in advance.
ServerCounts serve(std::span<const replay::TraceSession* const> sessions, const ServerSetup& setup);

}  // namespace reprise::server
