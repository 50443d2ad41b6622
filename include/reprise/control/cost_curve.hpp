// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"

namespace reprise { inline namespace v0 {

/// The cost of a pass: cost_one is the cost of a plain pass, which has one row per sequence. The range is 0 to just
/// below 65,536 plain passes; costs outside this range saturate. The cost of a pass is at least 2^-16.
using Cost = std::uint32_t;
inline constexpr Cost cost_one = detail::UnitScale::one;

/// Returns `cost` as a Cost, saturated at the ends of the range.
constexpr Cost saturated_cost(std::int64_t cost) noexcept {
  return static_cast<Cost>(std::clamp<std::int64_t>(cost, 0, std::numeric_limits<Cost>::max()));
}

/// Returns a number of plain passes as a Cost, rounded to the nearest. Returns 0 for negative numbers; large numbers
/// saturate. Use it for settings: apart from this function and the functions that make a CostCurve, costs are integers.
constexpr Cost to_cost(double plain_passes) noexcept {
  if (!(plain_passes > 0)) return 0;
  return plain_passes < 65535 ? static_cast<Cost>((plain_passes * 2 * cost_one + 1) / 2)
                              : std::numeric_limits<Cost>::max();
}

/// A measured pass.
struct CostPoint {
  std::size_t sequences = 1;
  std::size_t context = 0;  ///< committed tokens per sequence before the pass
  std::size_t rows = 1;     ///< rows of all sequences together
  double nanoseconds = 0;
};

/// Maps the shape of a pass to its cost: its time divided by the time of a plain pass at the same context. A plain pass
/// has one row per sequence. The cost need not rise with the rows: captured graphs cause steps, and kernels are faster
/// at some widths.
///
///  * Between measured row counts and between measured contexts, times are interpolated linearly.
///  * Beyond the largest measured row count, the last slope continues. A falling slope counts as flat, and so does a
///    single measured row count.
///  * Outside the measured contexts, the nearest context applies.
///  * For a number of sequences that was not measured, the next smaller measured number applies, or the smallest if
///    there is none. In that case, the time of the plain pass is that of `sequences` rows at the measured number.
///    Interpolation would need a model of batching, which the points do not provide.
///
/// After construction, the curve uses integers only. The error is at most 2^-15: relative for costs of at least 1/4,
/// absolute for smaller costs.
///
/// Cost of cost(): a few binary searches. Only from_points() and copies allocate: 24 bytes per point. A copy that runs
/// out of memory becomes the default curve. Threads: many threads may call const functions at once.
class CostCurve {
 public:
  /// The assumed cost of a drafted row in an unknown engine: a twentieth of a plain pass.
  static constexpr double default_per_row = 0.05;

  CostCurve() noexcept : slope_(slope(default_per_row)) {}

  /// Returns the curve 1 + per_row x drafted rows. `per_row` saturates at 0 and at 65,536.
  [[nodiscard]] static CostCurve linear(double per_row) noexcept {
    CostCurve curve;
    curve.slope_ = slope(per_row);
    return curve;
  }

  /// Returns the curve through measured points, which can be in any order. Each pair of `sequences` and `context` needs
  /// the time of a plain pass (rows = sequences).
  ///
  /// Errors: out_of_memory; invalid_argument if there are no points, or if a point is refused, with its index in
  /// Error::value. A point is refused if it has 0 sequences, fewer rows than sequences, or 2^32 or more rows or tokens
  /// of context. It is also refused if its time is below 0.1 ns or above 2^40 ns, its plain pass is missing, or its
  /// shape is repeated.
  [[nodiscard]] static Result<CostCurve> from_points(std::span<const CostPoint> points) noexcept {
    if (points.empty())
      return Error{ErrorCode::invalid_argument, "a cost curve needs at least one point: a plain pass"};
    CostCurve curve;
    if (!curve.points_.reserve(points.size()))
      return Error{ErrorCode::out_of_memory, "no memory for the points of a cost curve", points.size()};
    for (std::size_t i = 0; i < points.size(); ++i) {
      const CostPoint& point = points[i];
      if (point.sequences == 0) return refuse("a point of a cost curve has 0 sequences: it needs at least 1", i);
      if (point.rows < point.sequences)
        return refuse("a point of a cost curve has fewer rows than sequences: each sequence needs at least 1 row", i);
      if (std::max(point.rows, point.context) > largest_size)
        return refuse("a point of a cost curve has more than 2^32 - 1 rows or tokens of context", i);
      if (!(point.nanoseconds >= least_nanoseconds && point.nanoseconds <= most_nanoseconds))
        return refuse("a point of a cost curve needs a time of at least 0.1 and at most 2^40 nanoseconds", i);
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

  /// Sets out[k] to the cost of `plain` with k more rows. This is faster than a call of cost() for each k.
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

  /// Returns true if the curve was made from points, so the cost may depend on the context.
  [[nodiscard]] bool depends_on_context() const noexcept { return !points_.empty(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return points_.memory_bytes(); }

 private:
  static constexpr std::size_t largest_size = std::numeric_limits<std::uint32_t>::max();
  using SlopeScale = detail::Fixed<32>;  // plain passes per row
  using TimeScale = detail::Fixed<20>;   // nanoseconds
  static constexpr double time_one = static_cast<double>(TimeScale::one);
  static constexpr double least_nanoseconds = 0.1;  // shorter times would be rounded by more than the stated error
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
    /// Returns the index in `points` of the nth point with this shape; n counts from 1.
    [[nodiscard]] std::size_t index_in(std::span<const CostPoint> points, std::size_t nth) const noexcept {
      for (std::size_t i = 0; i < points.size(); ++i)
        if (points[i].sequences == sequences && points[i].context == context && points[i].rows == rows && --nth == 0)
          return i;
      return 0;
    }
  };
  /// The points that share a number of sequences and a context, by ascending rows.
  using Line = std::span<const Point>;

  /// The lines at the two measured contexts that enclose a given context. The given context lies `part` / `whole` of
  /// the way from `below` to `above`.
  struct Section {
    Line below;
    Line above;
    std::uint64_t part = 0;   // distance from `below`, in tokens
    std::uint64_t whole = 0;  // distance between the lines, in tokens; 0: use `below` alone

    [[nodiscard]] std::uint64_t time(std::size_t rows) const noexcept {
      const std::uint64_t low = at_rows(below, rows);
      return whole == 0 ? low : between(low, at_rows(above, rows), part, whole);
    }
  };

  static Error refuse(std::string_view why, std::size_t index) noexcept {
    return {ErrorCode::invalid_argument, why, index, 0};
  }

  /// Returns `per_row` in SlopeScale, rounded to the nearest.
  static std::uint64_t slope(double per_row) noexcept {
    if (!(per_row > 0)) return 0;
    return static_cast<std::uint64_t>((std::min(per_row, 65536.0) * static_cast<double>(2 * SlopeScale::one) + 1) / 2);
  }
  [[nodiscard]] Cost linear_cost(const PassShape& shape) const noexcept {
    const std::uint64_t drafted = shape.rows - std::min(shape.rows, shape.sequences);
    constexpr std::uint64_t most = std::uint64_t{1} << 48;
    if (slope_ != 0 && drafted >= most / slope_) return std::numeric_limits<Cost>::max();
    return static_cast<Cost>(std::min<std::uint64_t>(
        cost_one + detail::rounded<SlopeScale, detail::UnitScale>(slope_ * drafted), std::numeric_limits<Cost>::max()));
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
  /// Returns a x b / c, saturated at most_time. Requires b and c below 2^32.
  static std::uint64_t multiply_divide(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
    if (b == 0) return 0;
    if (a / c >= most_time / b) return most_time;
    return a / c * b + a % c * b / c;
  }
  static Cost ratio(std::uint64_t time, std::uint64_t base) noexcept {
    const int shift = std::max(0, static_cast<int>(std::bit_width(base)) - 47);  // the remainder needs 16 more bits
    time >>= shift;
    base >>= shift;
    if (time / base >= cost_one) return std::numeric_limits<Cost>::max();
    const std::uint64_t cost =
        detail::UnitScale::from(time / base) + (detail::UnitScale::from(time % base) + base / 2) / base;
    return static_cast<Cost>(std::clamp<std::uint64_t>(cost, 1, std::numeric_limits<Cost>::max()));
  }

  detail::Buffer<Point> points_;  // sorted; empty if the curve is linear
  std::uint64_t slope_;
};

namespace detail {
class LearnedCurve;
}
/// The costs that a control has learned: CostControl::learned(), BatchPlanner::learned(). prior() keeps them.
using LearnedCurve = detail::LearnedCurve;

/// The costs of passes of 2 to 64 rows that are assumed before such passes have been timed. Each row count has an
/// assumed cost or none. A default-constructed prior assumes nothing.
///
/// LearnedCurve starts from a prior, and measured times correct the assumed costs. If CostControl gets neither a curve
/// nor times, it always drafts by the prior, so a wrong prior stays wrong. docs/choosing.md states the loss.
///
/// A plain value of 252 bytes. Cost: a few nanoseconds for each row count. Threads: many may call const functions.
class CostPrior {
 public:
  static constexpr std::size_t least_rows = 2;
  static constexpr std::size_t most_rows = 64;
  static constexpr Cost least_cost = cost_one / 64;
  static constexpr Cost most_cost = cost_one * 1024;

  constexpr CostPrior() noexcept = default;

  /// Returns the costs of a GPU that runs one sequence, with captured graphs or few launches. Reading the weights takes
  /// most of a pass. Each of the first 32 drafted rows costs 1% of a plain pass, and each further row costs 2%. On an
  /// H100 with fast kernels a row costs 0.2% to 0.8%; with slow ones the first row costs 4% to 15%
  /// (docs/performance/gpu.md).
  [[nodiscard]] static constexpr CostPrior gpu_batch_1() noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows) {
      const std::size_t drafted = rows - 1;
      prior.assume(rows, cost_one + share(drafted, 1) + share(drafted - std::min<std::size_t>(drafted, 32), 1));
    }
    return prior;
  }
  /// Returns the costs of a CPU with quantised weights. The first drafted row costs 65% of a plain pass, because the
  /// engine changes to another kernel; each further row costs 35%. Source: llama.cpp with a model of 135 million
  /// parameters on an AMD EPYC (docs/performance/costs-and-curves.md). In the curves of bench/profiles/README.md,
  /// the first drafted row costs 0.7 to 0.8, and later rows cost 0.4 to 0.7 on average. Curves that are not bundled go
  /// down to 0.57 and 0.27.
  [[nodiscard]] static constexpr CostPrior cpu_quantised() noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows)
      prior.assume(rows, cost_one + share(1, 65) + share(rows - least_rows, 35));
    return prior;
  }
  /// Returns the costs that a curve gives for passes of one sequence at `context` tokens, limited as by assume(). The
  /// curve can be one that was measured on another machine.
  [[nodiscard]] static CostPrior of(const CostCurve& curve, std::size_t context = 0) noexcept {
    CostPrior prior;
    for (std::size_t rows = least_rows; rows <= most_rows; ++rows) prior.assume(rows, curve.cost({1, rows, context}));
    return prior;
  }

  /// Assumes `cost` for passes of `rows` rows. The cost is limited to least_cost ... most_cost. The call has no effect
  /// for fewer than least_rows or more than most_rows rows.
  constexpr void assume(std::size_t rows, Cost cost) noexcept {
    if (rows >= least_rows && rows <= most_rows) costs_[rows - least_rows] = std::clamp(cost, least_cost, most_cost);
  }
  /// Returns true if a cost is assumed for this row count.
  [[nodiscard]] constexpr bool assumes(std::size_t rows) const noexcept { return cost(rows) != 0; }
  /// Returns the assumed cost, or 0 if none is assumed.
  [[nodiscard]] constexpr Cost cost(std::size_t rows) const noexcept {
    return rows >= least_rows && rows <= most_rows ? costs_[rows - least_rows] : 0;
  }
  /// Returns the number of row counts with an assumed cost.
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    return static_cast<std::size_t>(std::count_if(costs_.begin(), costs_.end(), [](Cost cost) { return cost != 0; }));
  }
  /// Returns true if no row count has an assumed cost.
  [[nodiscard]] constexpr bool empty() const noexcept { return widest() == 1; }
  /// Returns the largest row count with an assumed cost, or 1 if there is none.
  [[nodiscard]] constexpr std::size_t widest() const noexcept {
    std::size_t rows = most_rows;
    while (rows > 1 && !assumes(rows)) --rows;
    return rows;
  }

  friend constexpr bool operator==(const CostPrior&, const CostPrior&) noexcept = default;

 private:
  /// Returns `percent` percent of a plain pass for each of `rows` rows.
  static constexpr Cost share(std::size_t rows, std::uint64_t percent) noexcept {
    return static_cast<Cost>(rows * percent * cost_one / 100);
  }

  std::array<Cost, most_rows - least_rows + 1> costs_{};  // 0: nothing is assumed
};
static_assert(std::is_trivially_copyable_v<CostPrior> && sizeof(CostPrior) <= 300);

/// The cost of a run of a draft head or draft model, in plain passes (to_cost()); see HeadedSpeculator. A head that
/// runs for all sequences of a batch at once has no cost of a row.
struct HeadCost {
  Cost draft = 0;  ///< of any run
  Cost token = 0;  ///< of each token of the longest draft
  Cost row = 0;    ///< of each token of every draft
  Cost late = 0;   ///< of each token that was committed in a pass without it, which it has to process first
};

}}  // namespace reprise
