// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

#include "common/json_writer.hpp"
#include "report.hpp"
#include "seeds.hpp"

namespace reprise::replay {

/// Writes the points of a learned curve as the member "curve". `counted`: the passes of told, whose common row counts
/// decide the largest error.
void write_curve_json(tools::JsonWriter& json, std::span<const CurvePoint> points, const RowCounts& counted);

/// Draws the learned curve of the worst run of `row` at its end, and its largest error over the passes. Draws nothing
/// if no curve was recorded. `title` names the run.
void write_curve(std::ostream& out, const SeedRow& row, const std::string& title, const TableStyle& style);

}  // namespace reprise::replay
