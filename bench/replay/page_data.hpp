// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "advice.hpp"
#include "control_spec.hpp"
#include "curve_log.hpp"
#include "page_figures.hpp"
#include "pass_record.hpp"
#include "pass_tally.hpp"
#include "strategies.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The sessions of all traces under one strategy and control, and under the main curve.
struct PageLine {
  const StrategyRun* run = nullptr;
  ControlSpec control;
  std::vector<SessionCost> costs;  ///< by session
};

/// A session of some trace, by its index among the sessions of all traces.
struct PageSession {
  const TraceSession* session = nullptr;
  std::size_t trace = 0;
};

/// The data of a page that its results do not have. `lines.front()` under the curve `main` is the run that the page is
/// about. The lines have the order of the results.
struct PageData {
  std::span<const Trace> traces;
  std::size_t main = 0;
  std::vector<PageSession> sessions;
  std::vector<PageLine> lines;
  std::vector<SessionCost> hindsight;  ///< by session, under the main curve
  std::vector<SessionCost> ceiling;    ///< likewise
  PassSums passes;                     ///< of the main run
  std::string fault;                   ///< likewise: the first difference from a recording; empty: none
  std::vector<double> worst_losses;    ///< likewise, by session
  std::vector<CurvePoint> learned;     ///< the curve that the main run has learned; empty: it learns none
  RowCounts rows;                      ///< of the same passes
  std::vector<ShownSession> shown;     ///< the sessions whose text is shown
  Advice advice;                       ///< under the main curve; nothing was tried for too few sessions
  std::size_t advised_every = 1;       ///< the advice is from every so many-th session

  [[nodiscard]] std::span<const SessionCost> main_costs() const { return lines.front().costs; }
  [[nodiscard]] const TraceSession& session(std::size_t i) const { return *sessions[i].session; }
};

}  // namespace reprise::replay
