// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "advice.hpp"
#include "cost_curve.hpp"
#include "curve_log.hpp"
#include "page_figures.hpp"
#include "pass_record.hpp"
#include "pass_tally.hpp"
#include "replay.hpp"
#include "run.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The sessions of all traces under one strategy and control.
struct PageLine {
  std::string strategy;
  ControlSpec control;
  std::string label;                            ///< the strategy, and the control if the strategy is ambiguous
  std::vector<std::vector<SessionCost>> costs;  ///< by curve, then by session
};

/// A session of some trace, by its index among the sessions of all traces.
struct PageSession {
  const TraceSession* session = nullptr;
  std::size_t trace = 0;
};

/// The inputs of a page. `lines.front()` under `curves[main]` is the run that the page is about.
struct PageData {
  std::span<const Trace> traces;
  std::span<const CostCurve> curves;
  std::size_t main = 0;
  std::vector<PageSession> sessions;
  std::vector<PageLine> lines;
  std::vector<SessionCost> hindsight;  ///< by session, under the main curve; empty: not replayed
  std::vector<SessionCost> ceiling;    ///< likewise
  Counts counts;                       ///< of the main run
  PassSums passes;                     ///< likewise
  std::vector<double> worst_losses;    ///< of the main run, by session
  std::vector<CurvePoint> learned;     ///< the curve that the main run has learned; empty: it learns none
  RowCounts rows;                      ///< of the same passes
  std::vector<ShownSession> shown;     ///< the sessions whose text is shown
  Advice advice;                       ///< under the main curve; nothing was tried for too few sessions
  std::size_t advised_every = 1;       ///< the advice is from every so many-th session
  ReplaySettings settings;
  TracePart part = TracePart::all;

  [[nodiscard]] std::span<const SessionCost> main_costs() const { return lines.front().costs[main]; }
  [[nodiscard]] const TraceSession& session(std::size_t i) const { return *sessions[i].session; }
};

}  // namespace reprise::replay
