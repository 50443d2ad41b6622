// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/progress.hpp"
#include "control_spec.hpp"
#include "cost_curve.hpp"
#include "curve_log.hpp"
#include "pass_watcher.hpp"
#include "replay.hpp"
#include "replay_settings.hpp"
#include "run.hpp"
#include "strategies.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// One replay of all sessions of a trace.
struct Job {
  const Trace& trace;
  const StrategyRun& run;
  ControlSpec control;
  std::span<const CostCurve> curves;  ///< curves to charge its passes under
  std::size_t first_curve = 0;        ///< index of the first of them among all curves
  std::vector<std::pair<std::string, Counts>> sums = {};
  std::uint64_t memory_bytes = 0;
  PassWatcher* watcher = nullptr;  ///< may be null; allowed only where the sessions run one after the other

  [[nodiscard]] bool weighed() const { return control.weighs(); }
  [[nodiscard]] bool remembers(const ReplaySettings& settings) const {
    return settings.kept == Kept::past
               ? run.remembers != Remembers::nothing
               : settings.kept == Kept::calibration && run.calibrated() && run.remembers == Remembers::sequences;
  }
  /// Most tokens drafted in one pass. A published method of a fixed size has its own number, unless `settings` have a
  /// lower one than the default, or control weighs its drafts.
  [[nodiscard]] std::size_t max_nodes(const ReplaySettings& settings) const {
    const bool own = control.kind == ControlKind::all && settings.max_nodes == usual_draft_nodes;
    return own ? run.max_nodes : settings.max_nodes;
  }
  /// True if its sessions must run one after the other.
  [[nodiscard]] bool chained(const ReplaySettings& settings) const {
    return remembers(settings) || (weighed() && settings.cost_known == CostKnown::carried);
  }
  [[nodiscard]] std::string text() const {
    return trace.path + "  " + run.spec + "  " + (weighed() ? curves.front().spec() : control.text());
  }
};

/// The sums of a trace: all sessions first, then each category in order of first occurrence.
std::vector<std::pair<std::string, Counts>> sums(const Trace& trace, std::span<const Counts> counts, bool by_category);

/// The jobs of a trace with a strategy, in the order of their rows: one per control, or per curve of it.
std::vector<Job> jobs_of(const Assignment& assignment, const Trace& trace, const StrategyRun& run);

/// Replays the sessions of a job one after the other, and returns their counts. Each starts with the state that the one
/// before left.
std::vector<Counts> replay_chained(const Assignment& assignment, Job& job, tools::Progress& progress);

/// Replays independent sessions in parallel, and returns their counts.
std::vector<Counts> replay_freely(const Assignment& assignment, Job& job, tools::Progress& progress);

/// Returns a watcher of the curve that control learns in a replay of `job`: in the whole stream if knowledge is
/// carried, otherwise in the session with the most tokens. `curve`: the true one.
CurveWatcher curve_watcher(const Assignment& assignment, const Job& job, const CostCurve& curve);

}  // namespace reprise::replay
