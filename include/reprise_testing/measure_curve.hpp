// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise_testing/detail/answers.hpp"

namespace reprise::testing {

/// The result of measure_cost_curve(). Warnings do not make it unusable, unless curve() returns an error.
struct MeasuredCurve {
  /// The shapes of the measured passes and the number of repetitions.
  struct Settings {
    std::vector<std::size_t> contexts = {256, 4096};                     ///< committed tokens before the pass
    std::vector<std::size_t> rows = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};  ///< rows of a pass, over all its sequences
    std::vector<std::size_t> sequences = {1};                            ///< numbers of sequences that share a pass
    std::size_t warm_up = 3;                                             ///< passes of each shape that are discarded
    std::size_t repeats = 15;                                            ///< passes of each shape that are evaluated
    std::int64_t noisy_percent = 10;   ///< a point is noisy if its interquartile range exceeds this share of its median
    std::int64_t falling_percent = 3;  ///< the curve falls if a pass with more rows is faster by more than this share
  };

  /// The reasons to inspect a curve before using it.
  enum class Doubt : std::uint8_t {
    noisy,    ///< the times of one shape vary: another program ran, or the device changed its clock
    falls,    ///< more rows take less time: real if kernels prefer some widths, otherwise noise
    no_time,  ///< the median is 0 ns or less: the clock is too coarse, or run_pass did not wait for the pass
    failed,   ///< the engine returned an error; this shape was not measured
  };

  struct Warning {
    Doubt doubt = Doubt::noisy;
    PassShape shape;
    std::string message;  ///< the shape, the figures and a suggested remedy
  };

  /// A pass shape and its times in nanoseconds. For a pass with a draft, they include the time that it adds to the next
  /// plain pass.
  struct Point {
    PassShape shape;
    std::int64_t median = 0;
    std::int64_t lower_quartile = 0;
    std::int64_t upper_quartile = 0;
    [[nodiscard]] std::int64_t spread() const noexcept { return upper_quartile - lower_quartile; }
  };

  /// Free text that is written to the JSON of a curve.
  struct Origin {
    std::string_view hardware = {};
    std::string_view model = {};
    std::string_view date = {};
    std::string_view command = {};
  };

  std::vector<Point> points;  ///< sorted by sequences, context and rows
  std::vector<Warning> warnings;

  [[nodiscard]] std::vector<CostPoint> cost_points() const {
    std::vector<CostPoint> all;
    for (const Point& point : points)
      all.push_back({point.shape.sequences, point.shape.context, point.shape.rows, static_cast<double>(point.median)});
    return all;
  }
  /// Returns the curve for CostControl and BatchPlanner. Errors: those of CostCurve::from_points().
  [[nodiscard]] Result<CostCurve> curve() const { return CostCurve::from_points(cost_points()); }

  /// Returns the text of a curve file of version 1 (docs/formats.md). `base_ns` is the median time of the first plain
  /// pass; 0 if there is none.
  [[nodiscard]] std::string to_json() const { return to_json({}); }
  [[nodiscard]] std::string to_json(const Origin& origin) const {
    const auto plain = std::find_if(points.begin(), points.end(),
                                    [](const Point& point) { return point.shape.rows == point.shape.sequences; });
    std::string json = R"({"version": 1, "base_ns": )" + std::to_string(plain == points.end() ? 0 : plain->median);
    json += R"(, "points": [)";
    for (const Point& point : points) {
      if (&point != points.data()) json += ", ";
      json += R"({"sequences": )" + std::to_string(point.shape.sequences) + R"(, "context": )" +
              std::to_string(point.shape.context) + R"(, "rows": )" + std::to_string(point.shape.rows) + R"(, "ns": )" +
              std::to_string(point.median) + "}";
    }
    json += R"(], "hardware": )" + quoted(origin.hardware) + R"(, "model": )" + quoted(origin.model) + R"(, "date": )" +
            quoted(origin.date) + R"(, "command": )" + quoted(origin.command) + "}\n";
    return json;
  }
  /// Returns a readable text: a header, one line per point, then one line per warning.
  [[nodiscard]] std::string to_string() const {
    std::string text = "sequences context rows: median ns (quartiles)\n";
    for (const Point& point : points)
      text += std::to_string(point.shape.sequences) + ' ' + std::to_string(point.shape.context) + ' ' +
              std::to_string(point.shape.rows) + ": " + std::to_string(point.median) + " (" +
              std::to_string(point.lower_quartile) + " to " + std::to_string(point.upper_quartile) + ")\n";
    for (const Warning& warning : warnings) text += "warning: " + warning.message + '\n';
    return text;
  }

 private:
  static std::string quoted(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string json = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20)
        json += std::string("\\u00") + digits[byte / 16] + digits[byte % 16];
      else
        json += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
    return json + '"';
  }
};

namespace detail {

template <class RunPass>
class CurveRuns {
 public:
  CurveRuns(RunPass& run_pass, const MeasuredCurve::Settings& settings) : run_pass_(run_pass), settings_(settings) {}

  MeasuredCurve run() {
    for (const std::size_t sequences : ascending(settings_.sequences)) {
      if (sequences == 0) continue;
      for (const std::size_t context : ascending(settings_.contexts)) measure_line(sequences, context);
    }
    return std::move(result_);
  }

 private:
  static std::vector<std::size_t> ascending(std::vector<std::size_t> numbers) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }

  /// The times of the passes of one shape, and how much longer the plain pass after each took than the one before it.
  struct Times {
    PassShape shape;
    std::vector<std::int64_t> own = {};
    std::vector<std::int64_t> lost = {};
    bool failed = false;
  };

  /// Measures all row counts of one context in turn, so that a gradual slowdown of the machine affects all of them
  /// equally. Each pass with a draft runs between two plain passes.
  void measure_line(std::size_t sequences, std::size_t context) {
    std::vector<Times> drafted;
    for (const std::size_t rows : ascending(settings_.rows))
      if (rows > sequences) drafted.push_back({{sequences, rows, context}});
    Times plain{{sequences, sequences, context}};
    for (std::size_t round = 0; round < settings_.warm_up + std::max<std::size_t>(settings_.repeats, 1); ++round) {
      if (round == settings_.warm_up) plain.own.clear();
      time_pass(plain, plain.own);
      for (Times& times : drafted) {
        if (round == settings_.warm_up) times = {times.shape, {}, {}, times.failed};
        time_pass(times, times.own);
        if (times.failed || plain.failed) continue;
        const std::int64_t before = plain.own.back();
        time_pass(plain, times.lost);
        if (!plain.failed) times.lost.back() -= before;
        time_pass(plain, plain.own);
      }
    }
    if (plain.failed) return;
    add_point(plain);
    for (Times& times : drafted) {
      if (times.failed) continue;
      add_point(times);
      warn_if_falling(result_.points.end()[-2], result_.points.back());
    }
  }
  /// Runs a pass of the shape of `times` and appends its time to `out`, unless the shape has failed.
  void time_pass(Times& times, std::vector<std::int64_t>& out) {
    if (times.failed) return;
    auto&& answer = run_pass_(times.shape);
    const auto* time = value_in(answer);
    times.failed = time == nullptr;
    if (times.failed) return warn(MeasuredCurve::Doubt::failed, times.shape, "the engine answered with an error");
    out.push_back(std::chrono::nanoseconds(*time).count());
  }
  /// Adds a point: the quartiles of the shape's times, each plus the time that the next plain pass loses.
  void add_point(Times& times) {
    std::sort(times.own.begin(), times.own.end());
    std::sort(times.lost.begin(), times.lost.end());
    const std::int64_t more =
        times.lost.empty() ? 0 : std::max<std::int64_t>(0, times.lost[(times.lost.size() - 1) / 2]);
    const PassShape& shape = times.shape;
    const std::size_t last = times.own.size() - 1;
    const MeasuredCurve::Point point{shape, times.own[last / 2] + more, times.own[last / 4] + more,
                                     times.own[last - last / 4] + more};
    result_.points.push_back(point);
    if (point.median <= 0)
      warn(MeasuredCurve::Doubt::no_time, shape,
           "the median is " + std::to_string(point.median) + " ns: use a finer clock, and wait for the pass to end");
    else if (point.spread() > point.median / 100 * settings_.noisy_percent)
      warn(MeasuredCurve::Doubt::noisy, shape,
           "half of the passes lie within " + std::to_string(point.lower_quartile) + " to " +
               std::to_string(point.upper_quartile) + " ns, the median is " + std::to_string(point.median) +
               ": quieten the machine, fix its clocks, or repeat more often");
  }
  void warn_if_falling(const MeasuredCurve::Point& fewer, const MeasuredCurve::Point& more) {
    if (more.median >= fewer.median - fewer.median / 100 * settings_.falling_percent) return;
    warn(MeasuredCurve::Doubt::falls, more.shape,
         std::to_string(more.median) + " ns, and " + std::to_string(fewer.median) + " ns for " +
             std::to_string(fewer.shape.rows) + " rows: measure again; if it stays, kernels prefer this width");
  }
  void warn(MeasuredCurve::Doubt doubt, const PassShape& shape, const std::string& why) {
    result_.warnings.push_back({doubt, shape,
                                std::to_string(shape.rows) + " rows of " + std::to_string(shape.sequences) +
                                    " sequences at context " + std::to_string(shape.context) + ": " + why});
  }

  RunPass& run_pass_;
  const MeasuredCurve::Settings& settings_;
  MeasuredCurve result_;
};

}  // namespace detail

/// Measures how long an engine's passes take, for each shape in `settings`, except those with fewer rows than
/// sequences. Always measures the plain pass (rows = sequences). `run_pass(const PassShape&)` runs one pass of
/// shape.rows rows over shape.sequences sequences, which have shape.context tokens in their caches. It waits for the
/// end of the pass, rolls the pass back, and returns its duration as std::chrono::nanoseconds or a Result of that type.
/// When shape.context changes, prefill outside the timed part. Include the rollback in the time if your engine needs it
/// after a rejected draft. The tokens do not matter, except for a mixture-of-experts model: use tokens from real drafts
/// for it.
///
/// For each context, runs the row counts in turn, for warm_up + repeats rounds. Each point is the median of its last
/// `repeats` passes, so a few outliers hardly change it. Exceptions from run_pass propagate; std::bad_alloc is
/// possible. This overload reads no clock; the overload below reads the caller's clock.
///
/// Engines keep work that fits the shape of the last pass (graphs, workspaces), so a change of shape costs time. In
/// decoding, most passes are plain. Therefore each pass with a draft runs between plain passes. Its point is its median
/// plus the time that the next plain pass loses. The plain pass is measured after another plain pass.
template <class RunPass>
[[nodiscard]] MeasuredCurve measure_cost_curve(RunPass&& run_pass, const MeasuredCurve::Settings& settings = {}) {
  return detail::CurveRuns<std::remove_reference_t<RunPass>>(run_pass, settings).run();
}

/// Like the overload above, for a `run_pass` that returns nothing. Times each call with the caller's clock, for
/// example measure_cost_curve<std::chrono::steady_clock>(run_pass). The time includes any prefill and rollback in
/// `run_pass`; if it must not, use the overload above.
template <class Clock, class RunPass>
requires requires { Clock::now(); }
[[nodiscard]] MeasuredCurve measure_cost_curve(RunPass&& run_pass, const MeasuredCurve::Settings& settings = {}) {
  return measure_cost_curve(
      [&](const PassShape& shape) {
        const auto begin = Clock::now();
        run_pass(shape);
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
      },
      settings);
}

}  // namespace reprise::testing
