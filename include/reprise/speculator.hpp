// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/loop/session.hpp"

namespace reprise::inline v0 {

/// The composition to begin with, and to stay with: drafts from what the context has said before, as likely as it has
/// proved to be, and as many tokens as a pass of this engine can carry with profit.
///
///   Speculator speculator;                          // what passes cost is learned from their times, if there are any
///   Speculator speculator(CostCurve::linear(0.02)); // or told: each drafted token adds 2% to a pass
///
/// Without a curve, pass the time of every pass to commit(), or let the verifier tell it (TimedVerifier); without
/// either, a drafted token is taken to cost 5% of a pass. See NgramDrafter, CostControl and Session, of which it is
/// one.
///
/// Memory: about 30 bytes for each token of text, 4 of them in the session, and 30 KB. Where every token is new, up to
/// 80 bytes for each: right after the tables have grown, else from 55. Threads: as Session.
class Speculator : public Session<NgramDrafter<RollingHashIndex>, CostControl> {
 public:
  using Base = Session<NgramDrafter<RollingHashIndex>, CostControl>;

  Speculator() : Speculator(NgramOptions(), CostOptions()) {}
  explicit Speculator(CostCurve curve) : Speculator(NgramOptions(), CostOptions{.curve = std::move(curve)}) {}
  /// `cost.calibrated` is set: the drafter's probabilities are.
  explicit Speculator(const NgramOptions& drafter, CostOptions cost = {})
      : Base(NgramDrafter<RollingHashIndex>(drafter), CostControl(calibrated(std::move(cost)))) {}

  /// A second Speculator that goes on from the committed state of this one. Errors: not_begun, out_of_memory.
  [[nodiscard]] Result<Speculator> fork() const {
    auto forked = Base::fork();
    if (!forked) return forked.error();
    return Speculator(std::move(*forked));
  }

 private:
  explicit Speculator(Base&& session) noexcept : Base(std::move(session)) {}
  static CostOptions calibrated(CostOptions cost) noexcept {
    cost.calibrated = true;
    return cost;
  }
};

}  // namespace reprise
