// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cost_curve.hpp"
#include "progress.hpp"
#include "replay.hpp"
#include "strategies.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The sums of one trace under one strategy, for all its sessions or those of one category.
struct Row {
  std::string trace;
  std::string category;  ///< "all", or its name
  std::string strategy;
  Counts counts;
};

/// What all sessions of a category are together; no category of a trace may be named so when asked for by category.
inline constexpr const char* all_categories = "all";

/// Replays every trace with every strategy, in that order. `by_category`: after the row of all sessions one for
/// each category, in the order in which they first occur. The counts do not depend on `threads`, the sums of cost
/// included: sessions are summed in the order of the file. Throws InputError (a category named "all").
std::vector<Row> replay_all(std::span<const Trace> traces, std::span<const StrategyRun> runs,
                            std::span<const CostCurve> curves, bool by_category, std::size_t threads,
                            Progress& progress);

}  // namespace reprise::replay
