// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/fixed_point.hpp"
#include "reprise/core/result.hpp"

namespace reprise::inline v0 {

/// The cost of a pass, of UnitScale: one is a plain pass, that is one row for each sequence. From 2^-16 to just below
/// 65,536 plain passes; a cost outside is read as the nearest of the two.
using Cost = std::uint32_t;
inline constexpr Cost cost_one = UnitScale::one;

/// The nearest Cost to the result of a computation.
constexpr Cost saturated_cost(std::int64_t cost) noexcept {
  return static_cast<Cost>(std::clamp<std::int64_t>(cost, 0, std::numeric_limits<Cost>::max()));
}

/// A cost from a number of plain passes. For settings: the one place, with CostCurve's makers, where a double comes in.
constexpr Cost to_cost(double plain_passes) noexcept {
  if (!(plain_passes > 0)) return 0;
  return plain_passes < 65535 ? static_cast<Cost>((plain_passes * 2 * cost_one + 1) / 2)
                              : std::numeric_limits<Cost>::max();
}

/// A measured pass.
struct CostPoint {
  std::size_t sequences = 1;
  std::size_t context = 0;  ///< committed tokens per sequence before the pass
  std::size_t rows = 1;     ///< in all sequences together
  double nanoseconds = 0;
};

/// The cost of a pass by its shape: its time divided by that of one row per sequence at the same context. It need not
/// rise with the rows (captured graphs step, kernels have favourite widths).
///
/// Between measured rows and between measured contexts: linear interpolation of the times. Beyond the last rows: the
/// last slope, a falling one being read as flat. Outside the measured contexts: the nearest. Between measured numbers
/// of sequences: the nearest below (the smallest if there is none), with its own time of `sequences` rows as the plain
/// pass; numbers in between would need a model of batching that the points do not hold.
///
/// Integers after construction, within 2^-15 of the exact value for costs of 1/4 and more (absolute below).
/// cost(): two binary searches. Only from_points() and copies allocate, 24 bytes a point; a copy that runs out of
/// memory is the default curve. Threads: const functions may be called by many threads at once.
class CostCurve {
 public:
  /// The assumption about an unknown engine: each drafted row costs a twentieth of a plain pass.
  static constexpr double default_per_row = 0.05;

  CostCurve() noexcept : slope_(slope(default_per_row)) {}

  /// 1 + per_row x drafted rows. Negative numbers are read as 0, those above 65,536 as that.
  [[nodiscard]] static CostCurve linear(double per_row) noexcept {
    CostCurve curve;
    curve.slope_ = slope(per_row);
    return curve;
  }

  /// From measurements, in any order. Every pair of sequences and context needs the time of a plain pass (as many rows
  /// as sequences). Error::value is the index of the point that was refused.
  [[nodiscard]] static Result<CostCurve> from_points(std::span<const CostPoint> points) noexcept {
    if (points.empty())
      return Error{ErrorCode::invalid_argument, "a cost curve needs at least one point: a plain pass"};
    CostCurve curve;
    if (!curve.points_.reserve(points.size()))
      return Error{ErrorCode::out_of_memory, "no memory for the points of a cost curve", points.size()};
    for (std::size_t i = 0; i < points.size(); ++i) {
      const CostPoint& point = points[i];
      if (point.sequences == 0) return refuse("a point of a cost curve has no sequences: at least 1", i);
      if (point.rows < point.sequences)
        return refuse("a point of a cost curve has fewer rows than sequences: a pass has one row for each at least", i);
      if (std::max(point.rows, point.context) > largest_size)
        return refuse("a point of a cost curve has more than 2^32 - 1 rows or tokens of context", i);
      if (!(point.nanoseconds >= 1 / time_one && point.nanoseconds <= most_nanoseconds))
        return refuse("a point of a cost curve needs a time above 0 and of at most 2^40 nanoseconds", i);
      curve.points_.push_reserved({static_cast<std::uint32_t>(point.sequences),
                                   static_cast<std::uint32_t>(point.context), static_cast<std::uint32_t>(point.rows),
                                   static_cast<std::uint64_t>(point.nanoseconds * time_one)});
    }
    std::sort(curve.points_.begin(), curve.points_.end());
    for (std::size_t i = 0; i < curve.points_.size(); ++i) {
      const Point& point = curve.points_[i];
      const bool first = i == 0 || !point.same_line(curve.points_[i - 1]);
      if (first && point.rows != point.sequences)
        return refuse("a cost curve lacks the time of a plain pass (rows = sequences) at the context of this point",
                      point.index_in(points, 1));
      if (!first && point.rows == curve.points_[i - 1].rows)
        return refuse("an earlier point of the cost curve has the same sequences, context and rows",
                      point.index_in(points, 2));
    }
    return curve;
  }

  [[nodiscard]] Cost cost(const PassShape& shape) const noexcept {
    if (points_.empty()) return linear_cost(shape);
    const Section section = section_at(shape);
    return ratio(section.time(shape.rows), section.time(shape.sequences));
  }

  /// out[k] becomes the cost of `plain` with k rows more. Faster than asking for each.
  void costs(PassShape plain, std::span<Cost> out) const noexcept {
    if (!points_.empty()) {
      const Section section = section_at(plain);
      const std::uint64_t base = section.time(plain.sequences);
      for (Cost& cost : out) cost = ratio(section.time(plain.rows++), base);
      return;
    }
    for (Cost& cost : out) {
      cost = linear_cost(plain);
      ++plain.rows;
    }
  }

  /// False if the context makes no difference.
  [[nodiscard]] bool depends_on_context() const noexcept { return !points_.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return points_.memory_bytes(); }

 private:
  static constexpr std::size_t largest_size = std::numeric_limits<std::uint32_t>::max();
  using SlopeScale = Fixed<32>;  // plain passes for each row
  using TimeScale = Fixed<20>;   // nanoseconds
  static constexpr double time_one = static_cast<double>(TimeScale::one);
  static constexpr double most_nanoseconds = static_cast<double>(std::uint64_t{1} << 40);
  static constexpr std::uint64_t most_time = std::uint64_t{1} << 62;

  struct Point {
    std::uint32_t sequences = 1;
    std::uint32_t context = 0;
    std::uint32_t rows = 1;
    std::uint64_t time = 0;

    [[nodiscard]] bool same_line(const Point& other) const noexcept {
      return sequences == other.sequences && context == other.context;
    }
    friend bool operator<(const Point& a, const Point& b) noexcept {
      if (a.sequences != b.sequences) return a.sequences < b.sequences;
      return a.context != b.context ? a.context < b.context : a.rows < b.rows;
    }
    /// Where this point stands in `points`, the nth time.
    [[nodiscard]] std::size_t index_in(std::span<const CostPoint> points, std::size_t nth) const noexcept {
      for (std::size_t i = 0; i < points.size(); ++i)
        if (points[i].sequences == sequences && points[i].context == context && points[i].rows == rows && --nth == 0)
          return i;
      return 0;
    }
  };
  /// The points of one number of sequences and one context, by rows.
  using Line = std::span<const Point>;

  /// The lines around a context, and where between them it lies.
  struct Section {
    Line below;
    Line above;
    std::uint64_t part = 0;   // of `whole`
    std::uint64_t whole = 0;  // 0: `below` alone

    [[nodiscard]] std::uint64_t time(std::size_t rows) const noexcept {
      const std::uint64_t low = at_rows(below, rows);
      return whole == 0 ? low : between(low, at_rows(above, rows), part, whole);
    }
  };

  static Error refuse(std::string_view why, std::size_t index) noexcept {
    return {ErrorCode::invalid_argument, why, index, 0};
  }

  /// Of SlopeScale, rounded.
  static std::uint64_t slope(double per_row) noexcept {
    if (!(per_row > 0)) return 0;
    return static_cast<std::uint64_t>((std::min(per_row, 65536.0) * static_cast<double>(2 * SlopeScale::one) + 1) / 2);
  }
  [[nodiscard]] Cost linear_cost(const PassShape& shape) const noexcept {
    const std::uint64_t drafted = shape.rows - std::min(shape.rows, shape.sequences);
    constexpr std::uint64_t most = std::uint64_t{1} << 48;
    if (slope_ != 0 && drafted >= most / slope_) return std::numeric_limits<Cost>::max();
    return static_cast<Cost>(std::min<std::uint64_t>(cost_one + rounded<SlopeScale, UnitScale>(slope_ * drafted),
                                                     std::numeric_limits<Cost>::max()));
  }

  [[nodiscard]] Section section_at(const PassShape& shape) const noexcept {
    const Line all(points_.begin(), points_.size());
    const auto after = std::partition_point(all.begin(), all.end(),
                                            [&](const Point& point) { return point.sequences <= shape.sequences; });
    const std::uint32_t sequences = after == all.begin() ? all.front().sequences : (after - 1)->sequences;
    const auto first =
        std::partition_point(all.begin(), all.end(), [&](const Point& point) { return point.sequences < sequences; });
    const auto last =
        std::partition_point(first, all.end(), [&](const Point& point) { return point.sequences == sequences; });
    const auto above = std::partition_point(first, last, [&](const Point& p) { return p.context < shape.context; });
    if (above == first) return {line(above, last), {}};
    const std::uint32_t context = (above - 1)->context;
    const auto below = std::partition_point(first, above, [&](const Point& p) { return p.context < context; });
    if (above == last) return {line(below, last), {}};
    return {line(below, last), line(above, last), shape.context - context, above->context - context};
  }
  template <class Iterator>
  static Line line(Iterator first, Iterator last) noexcept {
    return {first, std::partition_point(first, last, [&](const Point& point) { return point.same_line(*first); })};
  }

  static std::uint64_t at_rows(Line line, std::size_t rows) noexcept {
    rows = std::min(rows, largest_size);
    const auto above =
        std::partition_point(line.begin(), line.end(), [&](const Point& point) { return point.rows < rows; });
    if (above == line.begin()) return above->time;
    const auto below = above - 1;
    if (above != line.end()) return between(below->time, above->time, rows - below->rows, above->rows - below->rows);
    if (below == line.begin()) return below->time;
    const auto before = below - 1;
    const std::uint64_t rise = below->time - std::min(below->time, before->time);
    return std::min(below->time + multiply_divide(rise, rows - below->rows, below->rows - before->rows), most_time);
  }
  static std::uint64_t between(std::uint64_t low, std::uint64_t high, std::uint64_t part,
                               std::uint64_t whole) noexcept {
    return high >= low ? low + multiply_divide(high - low, part, whole)
                       : low - multiply_divide(low - high, part, whole);
  }
  /// a x b / c, at most most_time; b and c below 2^32.
  static std::uint64_t multiply_divide(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    if (b == 0) return 0;
    if (a / c >= most_time / b) return most_time;
    return a / c * b + a % c * b / c;
  }
  static Cost ratio(std::uint64_t time, std::uint64_t base) noexcept {
    const int shift = std::max(0, static_cast<int>(std::bit_width(base)) - 47);  // the remainder needs 16 bits more
    time >>= shift;
    base >>= shift;
    if (time / base >= cost_one) return std::numeric_limits<Cost>::max();
    const std::uint64_t cost = UnitScale::from(time / base) + (UnitScale::from(time % base) + base / 2) / base;
    return static_cast<Cost>(std::clamp<std::uint64_t>(cost, 1, std::numeric_limits<Cost>::max()));
  }

  Buffer<Point> points_;  // sorted; empty: linear
  std::uint64_t slope_;
};

}  // namespace reprise
