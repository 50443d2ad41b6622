// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "control_spec.hpp"
#include "cost_curve.hpp"
#include "past.hpp"
#include "replay.hpp"
#include "replay_settings.hpp"
#include "strategies.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The sums of one trace under one strategy, control and curve, for all its sessions or those of one category.
struct Row {
  std::string trace;
  std::string category;  ///< "all", or its name
  std::string strategy;
  ControlSpec control;
  std::size_t curve = 0;           ///< which of the curves
  Counts counts;                   ///< charged under that curve alone
  Kept kept = Kept::session;       ///< past: sessions left something to the next ones
  std::uint64_t memory_bytes = 0;  ///< of what they left, at the end

  /// What was drafted depends on the curve.
  [[nodiscard]] bool weighed() const { return control.kind == ControlKind::cost; }
  [[nodiscard]] const Charge& charge() const { return counts.charges.front(); }
};

/// What all sessions of a category are together; no category of a trace may be named so when asked for by category.
inline constexpr const char* all_categories = "all";

/// What is replayed.
struct Assignment {
  std::span<const Trace> traces;
  std::span<const StrategyRun> runs;
  std::span<const ControlSpec> controls;
  std::span<const CostCurve> curves;
  ReplaySettings settings;
  bool by_category = false;
  std::size_t threads = 1;
  bool ceiling = false;                            ///< also what no copying drafter can beat
  SnapshotBytes snapshot_in = {};                  ///< what pasts begin with; no bytes: with nothing
  std::vector<std::byte>* snapshot_out = nullptr;  ///< for what the only replay has left; see replays()
};

/// How often each trace is replayed with each strategy, control and curve: a past belongs to one of these.
std::size_t replays(const Assignment& assignment);

/// The name that the rows of ceiling() have in place of a strategy.
inline constexpr const char* ceiling_name = "ceiling";

/// Replays every trace with every strategy under every control, in that order; once for each curve where control
/// weighs costs, else once for all of them. The rows of each: all sessions, then, if by category, one after the
/// other in the order in which they first occur; of each, the curves in turn. The counts do not depend on `threads`,
/// the sums of cost included: sessions are summed in the order of the file, and where one takes up what another has
/// left they are replayed in that order too. Throws InputError (a category named "all", a curve that control cannot
/// take, a snapshot that cannot be loaded, no room for a past).
std::vector<Row> replay_all(const Assignment& assignment, tools::Progress& progress);

}  // namespace reprise::replay
