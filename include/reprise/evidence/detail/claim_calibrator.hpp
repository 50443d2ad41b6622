// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Isotonic regression: replaces the values with the closest non-decreasing sequence. Neighbours that are out of order
/// become their weighted mean, rounded down (pool adjacent violators: Ayer et al. 1955).
///
/// Weights must be above 0. The sum of all values times their weights, multiplied by the sum of all weights, must fit
/// in 64 bits. Cost: linear in the number of values.
template <std::size_t count>
void make_isotonic(std::array<std::uint64_t, count>& values, std::array<std::uint64_t, count> weights) noexcept {
  std::array<std::size_t, count> sizes;  // NOLINT(*-member-init): filled as far as it is read
  std::array<std::uint64_t, count>& sums = values;
  std::size_t pools = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums[pools] = values[i] * weights[i];
    weights[pools] = weights[i];
    sizes[pools++] = 1;
    while (pools > 1 && sums[pools - 2] * weights[pools - 1] > sums[pools - 1] * weights[pools - 2]) {
      --pools;
      sums[pools - 1] += sums[pools];
      weights[pools - 1] += weights[pools];
      sizes[pools - 1] += sizes[pools];
    }
  }
  // Backwards, because the sum of a pool is never after the values of the pool.
  for (std::size_t i = count; pools-- > 0;) {
    const std::uint64_t mean = sums[pools] / weights[pools];
    for (std::size_t left = sizes[pools]; left > 0; --left) values[--i] = mean;
  }
}

/// Calibrates the probabilities of an uncalibrated strategy: maps each claimed probability to the share of such claims
/// that the target confirmed. A claim is the stated probability of a token, given that the tokens before it are right.
/// PromptLookupDrafter claims 1 for every token.
///
/// The map is non-decreasing: seventeen knots at 0, 1/16, ..., 1, with linear interpolation. Initially the map halves
/// every claim; this prior counts as much as four tests. For a calibrated strategy, the map starts as the identity,
/// which counts as much as sixty tests.
///
/// Every tested node moves the knots on both sides of its claim towards the outcome, each by its share in the
/// interpolation. A full share is 1 / (tests + 4) of the error, but at least 1 / 260 of it. Old tests therefore fade
/// over a few hundred new ones. The error is the difference between the outcome and the interpolated value. If the
/// claims are right, the map therefore converges to the identity, up to noise. Neighbours that are out of order are
/// pooled (pool adjacent violators: Ayer et al. 1955), so a higher claim never maps to a lower probability. The form
/// follows the adaptive probability maps of PAQ (Mahoney 2005).
///
/// It takes 136 bytes and does not allocate. learn() takes about ten operations per tested node. Threads: one at a
/// time.
class ClaimCalibrator {
 public:
  /// The value 1 in UnitScale, the scale of claims and of calibrated probabilities.
  static constexpr std::uint32_t one = UnitScale::one;

  ClaimCalibrator() noexcept {
    for (std::size_t i = 0; i < knots; ++i) knots_[i].value = static_cast<std::uint32_t>(i * (full / (knots - 1)) / 2);
  }

  /// Returns the initial map for a strategy that is already calibrated.
  [[nodiscard]] static ClaimCalibrator of_calibrated() noexcept {
    ClaimCalibrator made;
    for (std::size_t i = 0; i < knots; ++i)
      made.knots_[i] = {static_cast<std::uint32_t>(i * (full / (knots - 1))), 56 * step};
    return made;
  }

  /// Returns the calibrated probability of a claim, both in UnitScale. The result is non-decreasing in the claim.
  [[nodiscard]] std::uint32_t trusted(std::uint32_t claim) const noexcept {
    return rescaled<KnotScale, UnitScale>(value(span_of(claim)));
  }

  /// Returns the claim of node i, in UnitScale: its conditional_probability().
  [[nodiscard]] static std::uint32_t claim(DraftView draft, std::size_t i) noexcept {
    return rescaled<ProbabilityScale, UnitScale>(conditional_probability(draft, i).raw());
  }

  /// Learns from every tested node of the outcome; see for_each_tested().
  void learn(const Outcome& outcome) noexcept {
    for_each_tested(outcome, [&](std::size_t i, bool hit) { learn(claim(outcome.draft, i), hit); });
  }
  void learn(std::uint32_t claim, bool hit) noexcept {
    const KnotSpan at = span_of(claim);
    const std::int64_t error = std::int64_t{hit ? full : 0} - value(at);
    move(knots_[at.knot], error, step - at.part);
    move(knots_[at.knot + 1], error, at.part);
    const std::size_t first = at.knot == 0 ? 0 : at.knot - 1;
    const std::size_t last = std::min(at.knot + 2, knots - 1);
    for (std::size_t i = first; i < last; ++i)
      if (knots_[i].value > knots_[i + 1].value) return restore_order();
  }

 private:
  static constexpr std::size_t knots = 17;
  static constexpr std::uint32_t step = one / (knots - 1);
  using KnotScale = Fixed<24>;  // finer than UnitScale; otherwise small steps would be lost
  static constexpr std::uint32_t full = KnotScale::one;
  static constexpr std::uint32_t prior = 4 * step;     // the initial map counts as much as 4 tests
  static constexpr std::uint32_t memory = 256 * step;  // a knot remembers at most 256 tests

  struct Knot {
    std::uint32_t value = 0;
    std::uint32_t tests = 0;  // number of tests, in units of 1/step
  };
  /// Two neighbouring knots with a claim between them.
  struct KnotSpan {
    std::size_t knot;    // index of the lower knot
    std::uint32_t part;  // distance of the claim from the lower knot: 0 ... `step`
  };

  static KnotSpan span_of(std::uint32_t claim) noexcept {
    const std::uint32_t knot = std::min<std::uint32_t>(claim / step, knots - 2);
    return {knot, std::min(claim, one) - knot * step};
  }
  [[nodiscard]] std::uint32_t value(KnotSpan at) const noexcept {
    const std::uint64_t low = knots_[at.knot].value;
    const std::uint64_t high = knots_[at.knot + 1].value;
    return static_cast<std::uint32_t>((low * (step - at.part) + high * at.part) / step);
  }
  static void move(Knot& knot, std::int64_t error, std::uint32_t share) noexcept {
    if (share == 0) return;
    knot.tests = std::min(knot.tests + share, memory);
    const std::int64_t moved = knot.value + error * share / (prior + knot.tests);
    knot.value = static_cast<std::uint32_t>(std::clamp<std::int64_t>(moved, 0, full));
  }
  void restore_order() noexcept {
    std::array<std::uint64_t, knots> values{};
    std::array<std::uint64_t, knots> weights{};
    for (std::size_t i = 0; i < knots; ++i) {
      values[i] = knots_[i].value;
      // An untested knot counts as only 1/16 of a test, so it follows its neighbours instead of holding them back.
      weights[i] = 1 + knots_[i].tests / (step / 16);
    }
    make_isotonic(values, weights);
    for (std::size_t i = 0; i < knots; ++i) knots_[i].value = static_cast<std::uint32_t>(values[i]);
  }

  std::array<Knot, knots> knots_;
};

}}}  // namespace reprise::detail
