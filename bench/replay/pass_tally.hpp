// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cost_curve.hpp"
#include "curve_log.hpp"
#include "pass_watcher.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// Sums over the passes of many sessions: the rows by what became of them, and the cost by position.
struct PassSums {
  /// Drafted tokens by what became of them. Auxiliary tokens and pad rows count as sent.
  struct Drafted {
    std::uint64_t proposed = 0;
    std::uint64_t sent = 0;
    std::uint64_t accepted = 0;

    Drafted& operator+=(const Drafted& other);
  };
  /// The passes that begin at positions [first_of(i), first_of(i + 1)) of the output of a session.
  struct Position {
    std::uint64_t passes = 0;
    std::uint64_t tokens = 0;
    double cost = 0;

    Position& operator+=(const Position& other);
  };
  static constexpr std::size_t positions = 18;
  /// The first output token of the position class `i`: 0, 16, 32, 64, 128, ...
  static constexpr std::uint64_t first_of(std::size_t i) { return i == 0 ? 0 : std::uint64_t{8} << i; }

  Drafted drafted;
  std::array<Drafted, draft_source_count> by_source{};
  std::array<std::uint64_t, cut_count> withheld{};  ///< proposed tokens that were not sent, by the pass's reason
  std::array<std::uint64_t, cut_count> passes{};    ///< passes by the reason
  std::array<Position, positions> by_position{};
  std::uint64_t tokens = 0;        ///< committed
  std::uint64_t undrafted = 0;     ///< passes that carried no draft
  std::uint64_t all_accepted = 0;  ///< passes whose whole draft was proposed, sent and accepted to its end

  /// Adds the draft of a pass: everything except `tokens` and `by_position`.
  void add(const Outcome& outcome);
  /// Adds a pass that begins at output token `position` of its session.
  void add(std::uint64_t position, std::uint64_t committed, double cost);
  PassSums& operator+=(const PassSums& other);
};

/// Sums the passes of a replay, and records the curve that control learns.
class PassTally : public CurveWatcher {
 public:
  /// `curve` charges the passes, and outlives the tally.
  PassTally(const CostCurve& curve, const CurveWatcher& watcher) : CurveWatcher(watcher), curve_(&curve) {}

  void began(const TraceSession& session) override;
  void tested(const Outcome& outcome) override;
  void passed(const Passed& pass) override;

  [[nodiscard]] const PassSums& sums() const { return sums_; }

 private:
  const CostCurve* curve_;
  PassSums sums_;
  std::uint64_t position_ = 0;  // output tokens of the session before the pass
};

}  // namespace reprise::replay
