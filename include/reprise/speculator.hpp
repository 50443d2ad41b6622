// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "reprise/control/cost_control.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/loop/session.hpp"

namespace reprise { inline namespace v0 {

/// The recommended composition. It drafts continuations found in the context, or in the datastores of NgramOptions. It
/// learns their probabilities from the target's acceptances. In each pass, it sends as many tokens as pay off on this
/// engine.
///
///   Speculator speculator;                          // Learns costs from pass times.
///   Speculator speculator(CostCurve::linear(0.02)); // A drafted token adds 2%.
///
/// Without a curve, pass the time of every pass to commit(), or let a TimedVerifier report it. Without a curve or pass
/// times, a drafted token is assumed to cost 5% of a pass. A Speculator is a Session of NgramDrafter and CostControl;
/// see these classes for details.
///
/// Memory: 43 KB plus about 30 bytes for each token of text, of which the session holds 4. An engine that shows
/// rankings adds NgramOptions::row_bytes (320 KiB). If every token is new, the memory is 55 to 80 bytes for each token.
/// The maximum occurs directly after the tables have grown. Threads: as for Session.
class Speculator : public Session<NgramDrafter<RollingHashIndex>, CostControl> {
 public:
  using Base = Session<NgramDrafter<RollingHashIndex>, CostControl>;

  Speculator() : Speculator(NgramOptions(), CostOptions()) {}
  explicit Speculator(CostCurve curve) : Speculator(NgramOptions(), CostOptions{.curve = std::move(curve)}) {}
  explicit Speculator(const NgramOptions& drafter, CostOptions cost = {});
  Speculator(Speculator&&) noexcept;
  Speculator& operator=(Speculator&&) noexcept;
  ~Speculator();

  /// Returns a second Speculator that continues from the committed state of this one. Errors: not_begun, out_of_memory.
  [[nodiscard]] Result<Speculator> fork() const;

 private:
  explicit Speculator(Base&& session) noexcept;
};

/// Returns a session of another strategy under the control of a Speculator, which sends only drafts that pay off. A
/// Session without a control sends every draft.
///
///   auto session = speculator_with(MyDrafter());
///   auto both = speculator_with(UnionDrafter{NgramDrafter<>(), MyDrafter()});
template <DraftStrategy Strategy>
[[nodiscard]] Session<Strategy, CostControl> speculator_with(Strategy strategy, CostOptions cost = {}) {
  return Session<Strategy, CostControl>(std::move(strategy), CostControl(std::move(cost)));
}

// A file that is compiled with REPRISE_COMPILED=1 leaves the composition to compiled.cpp, which defines it as 2.
#ifndef REPRISE_COMPILED
#define REPRISE_COMPILED 0
#endif
#if REPRISE_COMPILED == 1
extern template class Session<NgramDrafter<RollingHashIndex>, CostControl>;
#else
#if REPRISE_COMPILED == 0
#define REPRISE_INLINE inline
#else
#define REPRISE_INLINE
#endif
REPRISE_INLINE Speculator::Speculator(const NgramOptions& drafter, CostOptions cost)
    : Base(NgramDrafter<RollingHashIndex>(drafter), CostControl(std::move(cost))) {}
REPRISE_INLINE Speculator::Speculator(Base&& session) noexcept : Base(std::move(session)) {}
REPRISE_INLINE Speculator::Speculator(Speculator&&) noexcept = default;
REPRISE_INLINE Speculator& Speculator::operator=(Speculator&&) noexcept = default;
REPRISE_INLINE Speculator::~Speculator() = default;
REPRISE_INLINE Result<Speculator> Speculator::fork() const {
  auto forked = Base::fork();
  if (!forked) return forked.error();
  return Speculator(std::move(*forked));
}
#undef REPRISE_INLINE
#endif

}}  // namespace reprise
