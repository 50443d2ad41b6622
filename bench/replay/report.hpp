// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>

#include "cost_curve.hpp"
#include "run.hpp"

namespace reprise::replay {

/// What results are made of. One result for each row and curve, rows first.
struct Report {
  std::span<const Row> rows;
  std::span<const CostCurve> curves;
};

/// Ratios of sums; 0 where nothing was counted, but a speedup of nothing is 1.
struct Ratios {
  double mat = 0;
  double acceptance_rate = 0;
  double drafted_per_pass = 0;
  double ns_per_token = 0;
  double ns_per_propose = 0;
};
Ratios ratios(const Counts& counts);
double speedup(const Counts& counts, std::size_t curve);

/// {"version", "results": [...]}: for programs. Fields are there in every result, whatever their value.
void write_json(std::ostream& out, const Report& report);

/// The same results, a line each, with a line of names above (RFC 4180).
void write_csv(std::ostream& out, const Report& report);

/// For people: a block for each trace and category, a line for each strategy, with a bar. `columns` is the width to
/// fill; `unicode`: bars of block characters, else of '#'.
struct TableStyle {
  std::size_t columns = 120;
  bool unicode = false;
};
void write_table(std::ostream& out, const Report& report, const TableStyle& style);

/// A number with so many digits behind the point, the same in every locale.
std::string decimal(double value, int digits);

}  // namespace reprise::replay
