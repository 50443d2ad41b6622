// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "server.hpp"

namespace reprise::server {

/// The result of one simulation.
struct Row {
  std::size_t sequences = 1;
  Method method;
  ServerCounts counts;
  double plain = 0;  ///< throughput of the same number of sequences without drafting

  [[nodiscard]] double speedup() const { return plain > 0 ? counts.throughput() / plain : 1; }
};

/// The rows of a simulation and its curve. Rows are sorted by number of sequences; each number has the same order of
/// methods.
struct Report {
  std::span<const Row> rows;
  std::string curve;
};

/// Writes text for people: one line per number of sequences, then a chart of the speedups. `unicode` selects symbols
/// for the chart instead of letters.
void write_table(std::ostream& out, const Report& report, bool unicode);

}  // namespace reprise::server
