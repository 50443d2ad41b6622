// SPDX-License-Identifier: Apache-2.0
#include "measured_cost.hpp"

#include <algorithm>
#include <iterator>

namespace reprise::replay {
namespace {

double between(double low, double high, double share) { return low + (high - low) * share; }

double at_rows(const std::map<std::size_t, double>& line, std::size_t rows) {
  const auto above = line.lower_bound(rows);
  if (above == line.begin()) return above->second;
  const auto below = std::prev(above);
  if (above != line.end())
    return between(below->second, above->second,
                   static_cast<double>(rows - below->first) / static_cast<double>(above->first - below->first));
  if (below == line.begin()) return below->second;
  const auto before = std::prev(below);
  const double slope = (below->second - before->second) / static_cast<double>(below->first - before->first);
  return below->second + std::max(slope, 0.0) * static_cast<double>(rows - below->first);
}

}  // namespace

double MeasuredCost::nanoseconds(std::size_t rows, std::size_t context) const {
  const auto above = lines_.lower_bound(context);
  if (above == lines_.begin()) return at_rows(above->second, rows);
  const auto below = std::prev(above);
  if (above == lines_.end()) return at_rows(below->second, rows);
  return between(at_rows(below->second, rows), at_rows(above->second, rows),
                 static_cast<double>(context - below->first) / static_cast<double>(above->first - below->first));
}

}  // namespace reprise::replay
