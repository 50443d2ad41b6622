// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/fixed_point.hpp"

namespace reprise::inline v0::detail {

/// Smooths the noisy costs of row counts. The fit has a step to the second row, a straight line after it, and a
/// deviation from the line for each row count. How far the step and the deviations are believed depends on the noise
/// and on their size. If nothing is assumed, noise alone gives a line through the plain pass. An engine with steps
/// keeps its steps. Source: empirical Bayes (James and Stein 1961).
///
/// The step and the line are fitted to the differences of the costs from a base. The base of a row count is its assumed
/// cost, or the cost of a plain pass if nothing is assumed.
///
/// First call add() for each measured row count, then fit(), then deviation() for each of them again, then finish().
/// After that, cost() returns the smoothed costs.
class RowFit {
 public:
  /// `variance`: the variance of a single relative error, in UnitScale squared. `plain_samples`: the number of samples
  /// of the plain time.
  RowFit(std::int64_t variance, std::int64_t plain_samples) noexcept
      : variance_(std::max<std::int64_t>(variance, 1)), plain_samples_(std::max<std::int64_t>(plain_samples, 1)) {}

  /// Adds the cost of a pass with `drafted` drafted rows (1 to 63). The cost is the mean of `samples` samples. `base`:
  /// the assumed cost of such a pass, or cost_one if nothing is assumed.
  void add(std::size_t drafted, std::int64_t cost, std::int64_t samples, std::int64_t base) noexcept {
    const auto x = static_cast<std::int64_t>(drafted);
    const std::int64_t y = cost - base;
    const std::int64_t w = weight(cost, samples);
    w_ += w;
    wx_ += w * x;
    wxx_ += w * x * x;
    wy_ += w * y;
    wxy_ += w * x * y;
  }
  /// Fits the step and the line by weighted least squares. `slope`: the expected slope before any sample, in UnitScale
  /// for each row. `least`: the lower bound on the fitted slope. A step that is hardly larger than its standard error
  /// is reduced, down to 0.
  void fit(std::int64_t slope, std::int64_t least) noexcept {
    if (w_ == 0) {
      slope_ = slope;
      return;
    }
    constexpr std::int64_t prior = unit_weight;  // the expected slope weighs as much as one sample of one drafted row
    const std::int64_t xx = wxx_ + prior;
    const std::int64_t xy = wxy_ + prior * slope;
    const std::int64_t determinant = std::max<std::int64_t>(w_ * xx - wx_ * wx_, 1);
    const std::int64_t steep = (w_ * xy - wx_ * wy_) / determinant;
    const std::int64_t step = (wy_ - steep * wx_) / w_;
    const std::int64_t noise =
        variance_ / plain_samples_ + variance_ / std::max<std::int64_t>(1, determinant / xx) * unit_weight;
    const std::int64_t square = std::max<std::int64_t>(step * step, 1);
    step_ = square <= noise ? 0 : step - step * (noise / 256) / (square / 256 + 1);
    slope_ = std::max(least, (xy - step_ * wx_) / xx);
  }
  /// Counts the deviation of a measured row count from the line.
  void deviation(std::size_t drafted, std::int64_t cost, std::int64_t samples, std::int64_t base) noexcept {
    const std::int64_t relative = relative_deviation(cost, line(drafted, base));
    squares_ += relative * relative * samples;
    noise_ += variance_;
    samples_ += samples;
  }
  /// Computes the variance of the deviations beyond the variance that noise explains.
  void finish() noexcept { spread_ = samples_ == 0 ? 0 : std::max<std::int64_t>(0, (squares_ - noise_) / samples_); }
  /// Returns the smoothed cost of a measured row count: its own cost, drawn towards the line. It is drawn the less, the
  /// more samples it has and the more the row counts deviate from the line.
  [[nodiscard]] std::int64_t cost(std::size_t drafted, std::int64_t cost, std::int64_t samples,
                                  std::int64_t base) const noexcept {
    const std::int64_t expected = line(drafted, base);
    const std::int64_t believed = spread_ * samples / 256;
    return expected + (cost - expected) * believed / (believed + variance_ / 256 + 1);
  }
  /// Returns the cost on the line: `base` plus the step and the slope, but at least the cost of a plain pass.
  [[nodiscard]] std::int64_t line(std::size_t drafted, std::int64_t base) const noexcept {
    return std::max<std::int64_t>(cost_one, base + step_ + slope_ * static_cast<std::int64_t>(drafted));
  }

 private:
  static constexpr std::int64_t unit_weight = 16;  // weight of a sample of a pass that costs 1

  /// Returns the weight of a cost: errors are relative, so large costs weigh less.
  static std::int64_t weight(std::int64_t cost, std::int64_t samples) noexcept {
    const std::int64_t sixteenths =
        rescaled<UnitScale, Fixed<4>>(std::clamp<std::int64_t>(cost, cost_one, UnitScale::from(4096)));
    return std::max<std::int64_t>(1, samples * unit_weight * 256 / (sixteenths * sixteenths));
  }
  static std::int64_t relative_deviation(std::int64_t cost, std::int64_t expected) noexcept {
    return std::clamp(UnitScale::divide(cost - expected, expected), -4 * UnitScale::one, 4 * UnitScale::one);
  }

  std::int64_t variance_;
  std::int64_t plain_samples_;
  std::int64_t w_ = 0, wx_ = 0, wxx_ = 0, wy_ = 0, wxy_ = 0;
  std::int64_t step_ = 0;
  std::int64_t slope_ = 0;
  std::int64_t squares_ = 0, noise_ = 0, samples_ = 0;
  std::int64_t spread_ = 0;  // variance of the deviations, in UnitScale squared
};

}  // namespace reprise::detail
