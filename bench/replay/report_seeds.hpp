// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>

#include "common/json_writer.hpp"
#include "cost_curve.hpp"
#include "replay_settings.hpp"
#include "report.hpp"
#include "seeds.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The inputs of a report over seeds.
struct SeedReport {
  std::span<const SeedRow> rows;
  std::span<const CostCurve> curves;
  ReplaySettings settings = {};
  TracePart part = TracePart::all;
  bool top_k = false;  ///< some trace has top-k rows
};

/// Writes one result per row, as for a Report.
void write_results(tools::JsonWriter& json, const SeedReport& report);
/// Writes a table per trace and category, and one summary of all.
void write_table(std::ostream& out, const SeedReport& report, const TableStyle& style);

}  // namespace reprise::replay
