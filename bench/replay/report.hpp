// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>

#include "common/json_writer.hpp"
#include "cost_curve.hpp"
#include "heads.hpp"
#include "replay_settings.hpp"
#include "run.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The inputs of a report: rows, curves and settings.
struct Report {
  std::span<const Row> rows;
  std::span<const CostCurve> curves;
  ReplaySettings settings = {};
  TracePart part = TracePart::all;
  bool top_k = false;                   ///< some trace has top-k rows
  std::span<const HeadRow> heads = {};  ///< replays beside a draft head, if they were asked for

  /// True if the drafters were shown top-k rows.
  [[nodiscard]] bool rankings() const { return settings.top_k && top_k; }
};

/// Ratios of sums; 0 where nothing was counted. The speedup of no tokens is 1.
struct Ratios {
  double mat = 0;
  double acceptance_rate = 0;
  double drafted_per_pass = 0;
  double ns_per_token = 0;
  double ns_per_propose = 0;
  double control_ns_per_token = 0;
};
Ratios ratios(const Counts& counts);
double speedup(const Row& row);

/// Returns "chains, no rankings": the shape of the drafts, and whether rankings (top-k rows) were shown. `there`: some
/// trace has top-k rows.
std::string shape_and_rankings(const ReplaySettings& settings, bool there);
/// The notes under a table on trees and top-k rows, each with a newline at its end.
std::string shape_note(const ReplaySettings& settings, bool there);

/// Writes the members "version" and "results" of an open object, for programs. Every result has all fields.
void write_results(tools::JsonWriter& json, const Report& report);

/// Writes tables for people: a block per trace and category, with one line and one bar per strategy. `columns` is the
/// width to fill; `unicode` selects block characters for the bars instead of '#'.
struct TableStyle {
  std::size_t columns = 120;
  bool unicode = false;
};
void write_table(std::ostream& out, const Report& report, const TableStyle& style);

}  // namespace reprise::replay
