// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cost_curve.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/any_strategy.hpp"
#include "timed_strategy.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// Most tokens drafted in one pass.
inline constexpr std::size_t most_drafted_nodes = 32;

/// What a replay counts, of one session or of many: sums, so that ratios are made of sums and never averaged.
struct Counts {
  std::uint64_t sessions = 0;
  std::uint64_t turns = 0;
  std::uint64_t tokens = 0;    ///< output tokens that passes had to give: all but the first of each turn
  std::uint64_t passes = 0;    ///< those without a draft included
  std::uint64_t drafted = 0;   ///< draft tokens sent, those past the end of the recording included
  std::uint64_t accepted = 0;  ///< draft tokens that were the recorded ones
  std::vector<double> cost;    ///< summed cost of the passes, for each curve
  DraftingTime time;
  std::uint64_t peak_bytes = 0;  ///< most heap that the strategy held in any one session
  std::string fault;             ///< where the output first differed from the recording; empty: nowhere

  [[nodiscard]] bool lossless() const { return fault.empty(); }
  Counts& operator+=(const Counts& other);
};

/// Replays one session with a strategy, as an engine would drive it: a reprise::Session takes the recorded tokens
/// as the target's picks.
///
/// The first output token of a turn is free: the prefill gives it. The turn ends as it would at an end-of-sequence
/// token: when the last recorded token is committed. Neither session nor strategy is told before how much is left,
/// so drafts are not cut there. What is committed is compared with the recording as it goes; at the first
/// difference the session's replay ends and the place is kept in Counts::fault.
///
/// The counts are a pure function of the arguments; only the times are not.
Counts replay_session(const TraceSession& recorded, const AnyStrategy& strategy, std::span<const CostCurve> curves);

/// Where `output` first differs from `recorded`; its size when it does not.
std::size_t first_difference(TokenSpan output, TokenSpan recorded);

}  // namespace reprise::replay
