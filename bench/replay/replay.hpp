// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control_spec.hpp"
#include "cost_curve.hpp"
#include "replay_control.hpp"
#include "replay_settings.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/any_strategy.hpp"
#include "reprise/stats/reliability.hpp"
#include "timed_strategy.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// What the passes of a replay cost under one curve.
struct Charge {
  double cost = 0;        ///< summed, in passes without a draft
  double worst_loss = 0;  ///< the most that any 1,000 passes in a row, or fewer, of a session lost; see LossWindow

  Charge& operator+=(const Charge& other);
};

/// What a replay counts, of one session or of many: sums, so that ratios are made of sums and never averaged.
struct Counts {
  std::uint64_t sessions = 0;
  std::uint64_t turns = 0;
  std::uint64_t tokens = 0;    ///< output tokens that passes had to give: all but the first of each turn
  std::uint64_t passes = 0;    ///< those without a draft included
  std::uint64_t drafted = 0;   ///< draft tokens sent, those past the end of the recording included
  std::uint64_t accepted = 0;  ///< draft tokens that were the recorded ones
  std::array<std::uint64_t, cut_count> cuts{};  ///< passes by why their draft was not sent whole
  std::vector<Charge> charges;                  ///< for each curve
  Reliability reliability;                      ///< of the strategy's probabilities
  DraftingTime time;
  std::uint64_t control_ns = 0;  ///< time spent in control
  std::uint64_t peak_bytes = 0;  ///< most heap that the strategy held in any one session
  std::string fault;             ///< where the output first differed from the recording; empty: nowhere

  [[nodiscard]] bool lossless() const { return fault.empty(); }
  Counts& operator+=(const Counts& other);
};

/// How sessions are replayed.
struct ReplaySetup {
  ControlSpec control = {ControlKind::all, 0};  ///< automatic is read as all
  std::span<const CostCurve> curves = {};       ///< that passes are charged under; for cost: the one that is weighed
  ReplaySettings settings = {};
  bool calibrated = false;  ///< the strategy's probabilities can be taken as they are
};

/// Replays one session with a strategy, as an engine would drive it: a reprise::Session takes the recorded tokens
/// as the target's picks.
///
/// The first output token of a turn is free: the prefill gives it. The turn ends as it would at an end-of-sequence
/// token: when the last recorded token is committed. Neither session nor strategy nor control is told before how
/// much is left, so drafts are not cut there. What is committed is compared with the recording as it goes; at the
/// first difference the session's replay ends and the place is kept in Counts::fault.
///
/// The counts are a pure function of the arguments; only the times are not.
Counts replay_session(const TraceSession& recorded, const AnyStrategy& strategy, const ReplaySetup& setup);
/// The same with a strategy and a control that may have a past, and are given back as they are afterwards: see
/// Kept::past and CostKnown::carried.
Counts replay_session(const TraceSession& recorded, AnyStrategy& strategy, const ReplaySetup& setup,
                      ReplayControl& control);

/// What `setup` asks for, with nothing learned yet. Throws InputError when control cannot take the curve.
ReplayControl make_control(const ReplaySetup& setup);

/// Where `output` first differs from `recorded`; its size when it does not.
std::size_t first_difference(TokenSpan output, TokenSpan recorded);

}  // namespace reprise::replay
