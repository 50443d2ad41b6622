// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace reprise::replay {

/// Measured times of passes of one number of sequences: context -> rows -> nanoseconds. Linear between the measured
/// rows; beyond them the last slope continues, or 0 if it is negative. Linear between contexts; outside them the
/// nearest one counts.
class MeasuredCost {
 public:
  using Lines = std::map<std::size_t, std::map<std::size_t, double>>;

  /// `lines`: at least one context, each with a point for a plain pass. All times are above 0.
  explicit MeasuredCost(Lines lines) : lines_(std::move(lines)) {}

  [[nodiscard]] double nanoseconds(std::size_t rows, std::size_t context) const;
  [[nodiscard]] const Lines& lines() const { return lines_; }

 private:
  Lines lines_;
};

}  // namespace reprise::replay
