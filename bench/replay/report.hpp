// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "cost_curve.hpp"
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
  bool top_k = false;  ///< some trace has top-k rows
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

/// The field "top_k" of a result: "accepted rows", "unused" or "off".
std::string_view top_k_text(const ReplaySettings& settings, const Counts& counts);
/// The note on top-k rows under a table, with the newline at its end.
std::string_view top_k_note(const ReplaySettings& settings);

/// Writes {"version", "results": [...]} for programs. Every result has all fields.
void write_json(std::ostream& out, const Report& report);

/// Writes the same results as CSV with a header line (RFC 4180). Leaves out the fields with several values: cuts and
/// reliability.
void write_csv(std::ostream& out, const Report& report);

/// Writes tables for people: a block per trace and category, with one line and one bar per strategy. `columns` is the
/// width to fill; `unicode` selects block characters for the bars instead of '#'.
struct TableStyle {
  std::size_t columns = 120;
  bool unicode = false;
  bool reasons = false;      ///< add the reasons why drafts were not sent whole
  bool reliability = false;  ///< add claimed against observed probabilities of drafted tokens
  bool curves = false;       ///< with several seeds: draw the learned curve of each line, not of the worst run only
};
void write_table(std::ostream& out, const Report& report, const TableStyle& style);

/// A bar up to `share` of `width` columns, with a mark at `marked` of them.
std::string bar_and_mark(double share, double marked, std::size_t width, bool unicode);

/// The optional parts of a block. `name` is the label of the row.
void write_reasons(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style);
void write_reliability(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style);

}  // namespace reprise::replay
