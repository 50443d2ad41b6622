// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "server.hpp"

namespace reprise::server {

/// One simulation.
struct Row {
  std::size_t sequences = 1;
  Method method;
  ServerCounts counts;
  double plain = 0;  ///< throughput without drafting, of as many sequences

  [[nodiscard]] double speedup() const { return plain > 0 ? counts.throughput() / plain : 1; }
};

/// Results and what they were made of. Rows come by number of sequences, and the methods of each in the same order.
struct Report {
  std::span<const Row> rows;
  std::string curve;
};

/// A line for each row, and a line of names above (RFC 4180).
void write_csv(std::ostream& out, const Report& report);

/// For people: a line for each number of sequences, and a chart of the speedups. `unicode`: drawn with dots, else
/// with letters.
void write_table(std::ostream& out, const Report& report, bool unicode);

}  // namespace reprise::server
