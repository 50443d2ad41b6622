// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measured_cost.hpp"
#include "reprise/core/limits.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::replay {

/// A recording of pass times of a real engine, in nanoseconds.
class PassTimes {
 public:
  /// context -> rows -> times, ascending. At least one context; each has one row; no list is empty; all times are above
  /// 0.
  using Lists = std::map<std::size_t, std::map<std::size_t, std::vector<double>>>;

  explicit PassTimes(Lists lists) : lists_(std::move(lists)), medians_(medians_of(lists_)) {}

  /// Reads the text of a file: {"version": 1, "pass_times": [{"context", "rows", "ns": [...]}, ...]}. `path` is its
  /// name in messages. Throws InputError.
  static PassTimes parse(const std::string& path, std::string_view text);

  /// The median times. The costs of a replay are computed from them.
  [[nodiscard]] const MeasuredCost& medians() const { return medians_; }

  /// A random time of a pass of this shape. For a recorded shape it is one of the recorded times. For others it is the
  /// interpolated median, times a recorded ratio of time and median: that of the nearest row count at the nearest
  /// context.
  [[nodiscard]] double sample(const PassShape& shape, testing::Random& random) const;

 private:
  static MeasuredCost medians_of(const Lists& lists);

  Lists lists_;
  MeasuredCost medians_;
};

/// True if `text` is a JSON object with the fields of such a file. Their values are not checked.
bool looks_like_pass_times(std::string_view text);

}  // namespace reprise::replay
