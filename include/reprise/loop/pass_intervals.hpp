// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "reprise/core/detail/contract.hpp"

namespace reprise::inline v0 {

/// Decides which intervals between two passes are times of passes, for an engine that does not measure its passes. The
/// engine may pause between two passes, for another request or because it has no work. Such an interval is far above
/// the usual one, and nothing should be learned from it:
///
///   planner.learn(committed, intervals.take(PassIntervals::between(before, now), rows));
///
/// Call take() only if nothing except the pass ran in the interval. Follower and BatchFollower use this filter already.
///
/// The usual interval is a running mean. It is kept for each power of two of the row count, because long passes may
/// cost many times as much as short ones. Memory: 64 bytes. Threads: one at a time; copies are independent.
class PassIntervals {
 public:
  /// An interval above this many usual intervals is not the time of a pass.
  static constexpr std::int64_t most_usual = 10;
  static constexpr std::chrono::nanoseconds unknown{0};

  /// Returns the interval between two times of a clock; `unknown` if the clock went back, or after more than three
  /// days.
  [[nodiscard]] static std::chrono::nanoseconds between(std::chrono::nanoseconds before,
                                                        std::chrono::nanoseconds now) noexcept {
    if (now <= before) return unknown;
    // Unsigned, because the difference of two times can exceed the range.
    const std::uint64_t interval = static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(before.count());
    return interval > longest ? unknown : std::chrono::nanoseconds(static_cast<std::int64_t>(interval));
  }

  /// Returns the interval if it can be the time of a pass of `rows` rows; otherwise nullopt. Intervals of 0 or less are
  /// never times. The first interval is none either: there is no usual one, and the engine may have been warming up.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> take(std::chrono::nanoseconds interval,
                                                             std::size_t rows) noexcept {
    const std::int64_t time = interval.count();
    if (time <= 0 || static_cast<std::uint64_t>(time) > longest) return std::nullopt;
    const std::size_t i = index(rows);
    const std::int64_t usual = expected(i);
    if (usual == 0) {
      usual_[i] = time;
      return std::nullopt;
    }
    const std::int64_t clipped = std::min(time, most_usual * usual);
    // A clipped interval still raises the mean, so an engine that has become slower is believed after a few passes. The
    // mean falls faster: a pass can be slow by accident, but hardly ever fast.
    usual_[i] = usual_[i] == 0 ? clipped : usual_[i] + (clipped - usual_[i]) / (clipped < usual_[i] ? 2 : 8);
    if (time > clipped) return std::nullopt;
    return interval;
  }

 private:
  static constexpr std::uint64_t longest = std::uint64_t{1} << 48;  // three days; the products stay in range

  static std::size_t index(std::size_t rows) noexcept {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(rows | 1)) - 1, 7);
  }
  /// Returns the usual interval of these row counts in nanoseconds; 0 if no interval is known. Unknown row counts are
  /// assumed to cost in proportion to their rows.
  [[nodiscard]] std::int64_t expected(std::size_t i) const noexcept {
    for (std::size_t j = i + 1; j-- > 0;)
      if (usual_[j] != 0) return usual_[j] << (i - j);
    for (std::size_t j = i + 1; j < usual_.size(); ++j)
      if (usual_[j] != 0) return usual_[j];
    return 0;
  }

  std::array<std::int64_t, 8> usual_{};
};

}  // namespace reprise
