// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/fixed_point.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/evidence/isotonic.hpp"

namespace reprise::inline v0 {

/// A rising map from the probability that a strategy claims of a token, given that the tokens before it are right, to
/// the share of such claims that the target confirmed. For strategies that are not calibrated; PromptLookupDrafter
/// claims probability one for everything.
///
/// Seventeen knots at 0, 1/16, ..., 1, straight between them. At first half of a claim is believed, and that
/// counts for four tests only; of a calibrated strategy all of it, and that counts for sixty. Every tested node moves
/// the two knots around its claim towards its outcome, by 1 / (tests + 4) and 1 / 260 at least, so old tests fade
/// over a few hundred. The error is taken against the interpolated value: where claims are right, the map comes to be
/// the identity, and stays so except for noise. Neighbours that come out of order are pooled (pool adjacent violators:
/// Ayer et al. 1955), so a likelier claim never becomes the less likely one. The form is that of the adaptive
/// probability maps of PAQ (Mahoney 2005).
///
/// 136 bytes, no allocation. learn(): for each tested node about ten operations. Threads: one at a time.
class ClaimCalibrator {
 public:
  /// One, of UnitScale: claims and answers are of that scale.
  static constexpr std::uint32_t one = UnitScale::one;

  ClaimCalibrator() noexcept {
    for (std::size_t i = 0; i < knots; ++i) knots_[i].value = static_cast<std::uint32_t>(i * (full / (knots - 1)) / 2);
  }

  /// For a strategy that is calibrated by itself.
  [[nodiscard]] static ClaimCalibrator of_calibrated() noexcept {
    ClaimCalibrator made;
    for (std::size_t i = 0; i < knots; ++i)
      made.knots_[i] = {static_cast<std::uint32_t>(i * (full / (knots - 1))), 56 * step};
    return made;
  }

  /// The calibrated probability of a claim; both of UnitScale. Never falls as the claim rises.
  [[nodiscard]] std::uint32_t trusted(std::uint32_t claim) const noexcept {
    return rescaled<KnotScale, UnitScale>(value(span_of(claim)));
  }

  /// The claim of a node: see conditional_probability().
  [[nodiscard]] static std::uint32_t claim(DraftView draft, std::size_t i) noexcept {
    return rescaled<ProbabilityScale, UnitScale>(conditional_probability(draft, i).raw());
  }

  /// Learns from every node that the outcome says something about.
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
  using KnotScale = Fixed<24>;  // knots are finer than claims, or slow steps would be lost
  static constexpr std::uint32_t full = KnotScale::one;
  static constexpr std::uint32_t prior = 4 * step;     // tests that the initial map counts for
  static constexpr std::uint32_t memory = 256 * step;  // tests that are remembered

  struct Knot {
    std::uint32_t value = 0;
    std::uint32_t tests = 0;  // in 1/step
  };
  /// Two neighbouring knots, and a claim between them.
  struct KnotSpan {
    std::size_t knot;    // the lower one
    std::uint32_t part;  // the distance of the claim from it, of `step`
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
    detail::IsotonicPools<knots> pools;
    // Untested knots follow the others: with a full weight they would hold them at their initial values.
    for (std::size_t i = 0; i < knots; ++i) pools.add(knots_[i].value, 1 + knots_[i].tests / (step / 16));
    for (std::size_t i = 0; i < knots; ++i) knots_[i].value = static_cast<std::uint32_t>(pools.next());
  }

  std::array<Knot, knots> knots_;
};

}  // namespace reprise
