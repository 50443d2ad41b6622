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
#include "pass_watcher.hpp"
#include "past.hpp"
#include "replay.hpp"
#include "replay_settings.hpp"
#include "strategies.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The sums of one trace under one strategy, control and curve, for all its sessions or for one category.
struct Row {
  std::string trace;
  std::string category;  ///< "all", or the name of a category
  std::string strategy;
  ControlSpec control;
  std::size_t curve = 0;                      ///< index of the curve
  Counts counts;                              ///< charged under that curve only
  Kept kept = Kept::session;                  ///< the state that sessions left to later ones
  std::uint64_t memory_bytes = 0;             ///< size of that state at the end
  std::size_t max_nodes = usual_draft_nodes;  ///< most tokens drafted in one pass
  bool reads_corpora = false;                 ///< the strategy reads datastores

  /// True if the drafts depend on the curve.
  [[nodiscard]] bool weighed() const { return control.weighs(); }
  [[nodiscard]] const Charge& charge() const { return counts.charges.front(); }
};

/// The name of all categories together. With --by-category no category of a trace may have this name.
inline constexpr const char* all_categories = "all";

struct Job;

/// Receives the sessions of all replays of an assignment.
class ReplayObserver {
 public:
  virtual ~ReplayObserver() = default;
  /// Returns the watcher of the passes of `job`; null: none. The sessions of a watched job are replayed one after the
  /// other.
  virtual PassWatcher* watcher(const Job& /*job*/) { return nullptr; }
  /// A replay has ended; `counts` has one item for each session of the trace. One call at a time.
  virtual void replayed(const Job& job, std::span<const Counts> counts) = 0;
  /// The same for the ceiling under a curve.
  virtual void bounded(const Trace& /*trace*/, std::size_t /*curve*/, std::span<const Counts> /*counts*/) {}
};

/// The inputs of a replay.
struct Assignment {
  std::span<const Trace> traces;
  std::span<const StrategyRun> runs;
  std::span<const ControlSpec> controls;
  std::span<const CostCurve> curves;
  ReplaySettings settings;
  bool by_category = false;
  std::size_t threads = 1;
  bool ceiling = false;                            ///< also compute the bound of ceiling()
  SnapshotBytes snapshot_in = {};                  ///< initial past; no bytes: empty
  std::vector<std::byte>* snapshot_out = nullptr;  ///< receives the past left by the only replay; see replays()
  ReplayObserver* observer = nullptr;              ///< receives the counts of each session; may be null
};

/// The number of replays: one per trace, strategy, control and curve. Each has its own past.
std::size_t replays(const Assignment& assignment);

/// Throws InputError for a category named "all" if the assignment sums by category.
void check_categories(const Assignment& assignment);
/// Throws InputError for a curve that control does not accept, if a control receives it.
void check_curves(const Assignment& assignment);

/// The strategy name in rows of ceiling().
inline constexpr const char* ceiling_name = "ceiling";

/// Replays every trace with every strategy under every control, in that order. Control by cost needs one replay per
/// curve; the other controls need one for all curves.
///
/// Order of the rows of one replay: all sessions first; then the categories, if requested, in order of first
/// occurrence. Each comes with its curves in turn.
///
/// The counts and summed costs do not depend on `threads`. Sessions are summed in the order of the file, and sessions
/// that depend on each other are replayed in that order too.
///
/// Throws InputError: a category named "all", a curve that control does not accept, a snapshot that cannot be loaded,
/// no memory for a past.
std::vector<Row> replay_all(const Assignment& assignment, tools::Progress& progress);

}  // namespace reprise::replay
