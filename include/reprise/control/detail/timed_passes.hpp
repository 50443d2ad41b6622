// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/fixed_point.hpp"

/// \file The parts of LearnedCurve: the usual error of a time, the last samples of a row count, and a fit over rows.
namespace reprise { inline namespace v0 { namespace detail {

/// The usual relative error of a time: how far times are from their expected values.
class UsualError {
 public:
  /// Learns from a sample and its expected value. Requires both numbers below 2^40.
  void learn(std::int64_t sample, std::int64_t value) noexcept {
    const std::int64_t error = UnitScale::divide(sample - value, std::max<std::int64_t>(value, 1));
    const std::int64_t size = std::min(error < 0 ? -error : error, 4 * deviation_);
    deviation_ = std::clamp(deviation_ + (size - deviation_) / memory, least, most);
  }
  /// Returns the mean absolute error, in UnitScale.
  [[nodiscard]] std::int64_t deviation() const noexcept { return deviation_; }
  /// Returns 1 if `sample` is far above `value`, -1 if it is far below, and 0 otherwise. Noise alone hardly ever causes
  /// a factor of 1.5 or of four usual errors.
  [[nodiscard]] int side(std::int64_t value, std::int64_t sample) const noexcept {
    const std::int64_t band = UnitScale::one + std::max(UnitScale::one / 2, 4 * deviation_);
    if (UnitScale::from(sample) > value * band) return 1;
    return sample * band < UnitScale::from(value) ? -1 : 0;
  }

 private:
  static constexpr std::int64_t least = 64;  // 0.1%: times are never exact
  static constexpr std::int64_t most = UnitScale::one / 2;
  static constexpr std::int64_t memory = 32;  // number of errors in the mean

  std::int64_t deviation_ = UnitScale::one / 8;
};

/// The time of a plain pass as a function of its context: a straight line through recent plain passes.
class ContextLine {
 public:
  /// Converts a time at `context` to the mean context of the line. It changes by a factor of at most 8. Requires
  /// 0 < `time` < 2^40.
  [[nodiscard]] std::int64_t at_mean(std::int64_t time, std::size_t context) const noexcept {
    if (count_ == 0) return time;
    const std::int64_t here = std::clamp(at(context), time_ / 8 + 1, 8 * time_);
    return std::clamp<std::int64_t>(UnitScale::divide(time, UnitScale::divide(here, time_)), 1, most);
  }
  /// Learns from a plain pass. Requires the same as at_mean(). A time above twice the expected one counts as twice.
  void learn(std::int64_t time, std::size_t context) noexcept {
    if (count_ > 0) time = std::min(time, 2 * std::max(at(context), time_));
    count_ = std::min(count_ + 1, memory);
    const std::int64_t away = limited(context) - context_;
    context_ += away / count_;
    time_ += (time - time_) / count_;
    squares_ += (away * (limited(context) - context_) - squares_) / count_;
    products_ += (away * (time - time_) - products_) / count_;
  }

 private:
  static constexpr std::int64_t memory = 256;  // number of passes in the means
  static constexpr std::int64_t most = (std::int64_t{1} << 40) - 1;
  static constexpr std::int64_t least_squares = std::int64_t{128} * 128;  // contexts that differ by less show no slope

  static std::int64_t limited(std::size_t context) noexcept {
    return static_cast<std::int64_t>(std::min<std::size_t>(context, std::size_t{1} << 20));
  }
  /// Returns the expected time at a context. A longer context never makes a pass faster.
  [[nodiscard]] std::int64_t at(std::size_t context) const noexcept {
    const std::int64_t slope = std::max<std::int64_t>(0, products_ / (squares_ + least_squares));
    return time_ + slope * (limited(context) - context_);
  }

  std::int64_t count_ = 0;
  std::int64_t context_ = 0;  // a mean, as the next
  std::int64_t time_ = 0;
  std::int64_t squares_ = 0;
  std::int64_t products_ = 0;
};

/// The last samples of the plain pass (times in nanoseconds), or of a row count (costs).
///
/// The first sample counts half if it is near the expected value, and not at all otherwise. With two to eight samples,
/// the value is the mean of those near their lower median, because passes are often accidentally slow but hardly ever
/// fast. After that, it is a mean of up to 64 samples, unless the last eight contradict it. If the last three are all
/// far above or all far below it, the value starts again from them.
template <class Sample>
struct RecentSamples {
  static constexpr std::uint32_t ring = 8;
  static constexpr std::uint32_t memory = 64;  // maximum number of samples averaged
  static constexpr std::uint32_t most_patience = 4;

  std::array<Sample, ring> samples{};
  Sample value = 0;
  std::uint32_t count = 0;     // number of samples in the value
  std::uint64_t seen = 0;      // pass number of the last sample
  std::uint32_t patience = 0;  // how often a sample confirmed an old or unknown value, at most `most_patience`
  std::uint8_t next = 0;       // number of samples ever added, modulo a multiple of `ring`
  bool trusted = false;        // there are two samples, or the only one is within a factor of two of its expected value

  /// Adds a sample above 0 from pass number `pass`. `expected`: the value before the first sample. Returns true if the
  /// value starts again.
  bool add(Sample sample, Sample expected, const UsualError& usual, std::uint64_t pass) noexcept {
    samples[next++ % ring] = sample;
    count = std::min(count + 1, memory);
    trusted = count > 1 || (sample / 2 <= expected && expected / 2 <= sample);
    if (trusted) seen = pass;
    if (count == 1) {
      value = trusted ? std::midpoint(sample, expected) : expected;
      return false;
    }
    const int side = usual.side(value, sample);
    const bool changed =
        count > 3 && side != 0 && side == usual.side(value, last(1)) && side == usual.side(value, last(2));
    if (changed) count = 3;
    const std::int64_t recent = mean(usual);
    const std::int64_t before = value;
    const std::int64_t error = UnitScale::multiply(before, usual.deviation());
    if (count <= ring || recent > before + 2 * error || recent < before - 2 * error) {
      value = static_cast<Sample>(recent);
      count = std::min(count, ring);
    } else {
      const std::int64_t step = std::clamp(std::int64_t{sample} - before, -3 * error, 3 * error);
      value = static_cast<Sample>(before + step / std::int64_t{count});
    }
    return changed;
  }

 private:
  /// Returns the sample before the last `age` ones.
  [[nodiscard]] Sample last(std::uint32_t age) const noexcept { return samples[(next + ring - 1 - age) % ring]; }
  /// Returns the mean of the last samples that are near their lower median.
  [[nodiscard]] std::int64_t mean(const UsualError& usual) const noexcept {
    const std::uint32_t size = std::min(count, ring);
    std::array<Sample, ring> sorted;  // NOLINT(*-member-init): filled as far as it is read
    for (std::uint32_t i = 0; i < size; ++i) {
      std::uint32_t at = i;
      for (; at > 0 && sorted[at - 1] > last(i); --at) sorted[at] = sorted[at - 1];
      sorted[at] = last(i);
    }
    const Sample median = sorted[(size - 1) / 2];
    std::int64_t sum = 0;
    std::int64_t near = 0;
    for (std::uint32_t i = 0; i < size; ++i)
      if (usual.side(median, sorted[i]) == 0) sum += sorted[i], ++near;
    return sum / near;
  }
};

/// The learned cost of a pass with `drafted` drafted rows: a mean of `samples` samples. `base`: its assumed cost, or
/// cost_one if nothing is assumed.
struct MeasuredRow {
  std::int64_t drafted;
  std::int64_t cost;
  std::int64_t samples;
  std::int64_t base;
};

/// Smooths the noisy costs of row counts. The fit has a step to the second row, a straight line after it, and a
/// deviation from the line for each row count; step and line are fitted to the differences from the base. How far the
/// step and the deviations are believed depends on the noise and on their size. So noise alone gives a straight line,
/// and an engine with steps keeps them. Source: empirical Bayes (James and Stein 1961).
class RowFit {
 public:
  /// `variance`: the variance of a single relative error, in UnitScale squared. `plain_samples`: the number of samples
  /// of the plain time. `slope`: the slope that is expected before any sample, in UnitScale for each row. `least`: the
  /// lower bound on the slope.
  RowFit(std::span<const MeasuredRow> rows, std::int64_t variance, std::int64_t plain_samples, std::int64_t slope,
         std::int64_t least) noexcept
      : variance_(std::max<std::int64_t>(variance, 1)), slope_(slope) {
    if (rows.empty()) return;
    fit(rows, std::max<std::int64_t>(plain_samples, 1), least);
    std::int64_t squares = 0;
    std::int64_t samples = 0;
    for (const MeasuredRow& row : rows) {
      const std::int64_t expected = line(row.drafted, row.base);
      const std::int64_t deviation =
          std::clamp(UnitScale::divide(row.cost - expected, expected), -4 * UnitScale::one, 4 * UnitScale::one);
      squares += deviation * deviation * row.samples - variance_;
      samples += row.samples;
    }
    spread_ = std::max<std::int64_t>(0, squares / samples);
  }

  /// Returns the smoothed cost of a measured row count: its own cost, drawn towards the line. It is drawn the less, the
  /// more samples it has and the more the row counts deviate from the line.
  [[nodiscard]] std::int64_t cost(const MeasuredRow& row) const noexcept {
    const std::int64_t expected = line(row.drafted, row.base);
    const std::int64_t believed = spread_ * row.samples / 256;
    return expected + (row.cost - expected) * believed / (believed + variance_ / 256 + 1);
  }
  /// Returns the cost on the line: `base` plus the step and the slope, but at least the cost of a plain pass.
  [[nodiscard]] std::int64_t line(std::int64_t drafted, std::int64_t base) const noexcept {
    return std::max<std::int64_t>(cost_one, base + step_ + slope_ * drafted);
  }

 private:
  /// Fits the step and the line by weighted least squares. A step that is hardly larger than its standard error is
  /// reduced, down to 0. The expected slope weighs as much as one sample of one drafted row that costs 1.
  void fit(std::span<const MeasuredRow> rows, std::int64_t plain_samples, std::int64_t least) noexcept {
    constexpr std::int64_t unit = 16;  // weight of a sample of a pass that costs 1
    std::int64_t w = 0, x = 0, y = 0, xx = unit, xy = unit * slope_;
    for (const MeasuredRow& row : rows) {
      // Errors are relative, so large costs weigh less.
      const std::int64_t sixteenths = rescaled<UnitScale, Fixed<4>>(std::max<std::int64_t>(row.cost, cost_one));
      const std::int64_t weight = std::max<std::int64_t>(1, row.samples * unit * 256 / (sixteenths * sixteenths));
      w += weight;
      x += weight * row.drafted;
      y += weight * (row.cost - row.base);
      xx += weight * row.drafted * row.drafted;
      xy += weight * row.drafted * (row.cost - row.base);
    }
    const std::int64_t determinant = std::max<std::int64_t>(w * xx - x * x, 1);
    const std::int64_t step = (y - (w * xy - x * y) / determinant * x) / w;
    const std::int64_t noise =
        variance_ / plain_samples + variance_ / std::max<std::int64_t>(1, determinant / xx) * unit;
    const std::int64_t square = std::max<std::int64_t>(step * step, 1);
    step_ = square <= noise ? 0 : step - step * (noise / 256) / (square / 256 + 1);
    slope_ = std::max(least, (xy - step_ * x) / xx);
  }

  std::int64_t variance_;
  std::int64_t slope_;
  std::int64_t step_ = 0;
  std::int64_t spread_ = 0;  // variance of the deviations beyond the one that noise explains, in UnitScale squared
};

}}}  // namespace reprise::detail
