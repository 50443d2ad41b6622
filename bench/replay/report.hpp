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

/// What results are made of: one for each row.
struct Report {
  std::span<const Row> rows;
  std::span<const CostCurve> curves;
  ReplaySettings settings = {};
  TracePart part = TracePart::all;
};

/// Ratios of sums; 0 where nothing was counted, but a speedup of nothing is 1.
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

/// {"version", "results": [...]}: for programs. Fields are there in every result, whatever their value.
void write_json(std::ostream& out, const Report& report);

/// The same results, a line each, with a line of names above (RFC 4180), without the fields that are no single value:
/// cuts and reliability.
void write_csv(std::ostream& out, const Report& report);

/// For people: a block for each trace and category, strategies below each other, with a bar. `columns` is the width
/// to fill; `unicode`: bars of block characters, else of '#'.
struct TableStyle {
  std::size_t columns = 120;
  bool unicode = false;
  bool reasons = false;      ///< also why drafts were not sent whole
  bool reliability = false;  ///< also what was claimed of drafted tokens against what came true
};
void write_table(std::ostream& out, const Report& report, const TableStyle& style);

/// The parts of a block that are there when asked for. `name`: what the row is called.
void write_reasons(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style);
void write_reliability(std::ostream& out, const Row& row, const std::string& name, const TableStyle& style);

}  // namespace reprise::replay
