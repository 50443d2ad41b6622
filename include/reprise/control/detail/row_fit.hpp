// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise::inline v0::detail {

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

}  // namespace reprise::detail
