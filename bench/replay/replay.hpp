// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "clock_spec.hpp"
#include "common/any_strategy.hpp"
#include "control_spec.hpp"
#include "cost_curve.hpp"
#include "pass_watcher.hpp"
#include "reliability.hpp"
#include "replay_control.hpp"
#include "replay_settings.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "timed_strategy.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The cost of a replay's passes under one curve.
struct Charge {
  double cost = 0;        ///< sum, in passes without a draft
  double worst_loss = 0;  ///< largest loss of at most 1,000 consecutive passes of a session; see LossWindow

  Charge& operator+=(const Charge& other);
};

/// The counts of a replay, of one session or of many. They are sums, so ratios are ratios of sums and never averages.
struct Counts {
  std::uint64_t sessions = 0;
  std::uint64_t turns = 0;
  std::uint64_t tokens = 0;                     ///< output tokens from passes: all except the first of each turn
  std::uint64_t passes = 0;                     ///< including passes without a draft
  std::uint64_t drafted = 0;                    ///< draft tokens sent, including those past the end of the recording
  std::uint64_t accepted = 0;                   ///< draft tokens that agree with the recording
  std::array<std::uint64_t, cut_count> cuts{};  ///< passes by the reason why their draft was not sent whole
  std::vector<Charge> charges;                  ///< for each curve
  Reliability reliability;                      ///< of the strategy's probabilities
  DraftingTime time;
  std::uint64_t control_ns = 0;  ///< time spent in control
  std::uint64_t peak_bytes = 0;  ///< largest heap use of the strategy in any session
  /// Top-k rows of the trace that the strategy was shown, one for each committed token.
  std::uint64_t top_k_rows = 0;
  std::string fault;  ///< the first difference from the recording; empty: none

  [[nodiscard]] bool lossless() const { return fault.empty(); }
  Counts& operator+=(const Counts& other);
};

/// The settings of a replay.
struct ReplaySetup {
  ControlSpec control = {ControlKind::all, 0};  ///< automatic counts as all
  std::span<const CostCurve> curves = {};       ///< curves to charge passes under; control by cost weighs the first
  ReplaySettings settings = {};
  bool calibrated = false;         ///< the strategy's probabilities are calibrated
  PassWatcher* watcher = nullptr;  ///< receives each pass; may be null
};

/// Replays one session with a strategy as an engine would: a reprise::Session takes the recorded tokens as the target's
/// picks.
///
/// The first output token of a turn is free, because the prefill gives it. The turn ends like one with an
/// end-of-sequence token: when the last recorded token is committed. Session, strategy and control do not know how many
/// tokens remain, so drafts are not cut there.
///
/// If a turn has top-k rows and the strategy wants some (TopKLearner), it is shown the row of each committed token. The
/// anchor's row picked the first of these tokens, and the row of accepted token j picked the one after it. The rows of
/// rejected tokens are not in a trace, so an engine that shows them gives the strategy more. The row of the free token
/// is not shown, because it belongs to no pass.
///
/// Committed tokens are compared with the recording. At the first difference the replay of the session ends, and
/// Counts::fault describes the place.
///
/// The counts are a pure function of the arguments; the times are not.
Counts replay_session(const TraceSession& recorded, const AnyStrategy& strategy, const ReplaySetup& setup);
/// The same with a strategy, a control and a stream that may have a past and are updated in place: see Kept::past and
/// CostKnown::carried.
Counts replay_session(const TraceSession& recorded, AnyStrategy& strategy, const ReplaySetup& setup,
                      ReplayControl& control, StreamPosition& stream);

/// The same with a stream of this session only.
Counts replay_session(const TraceSession& recorded, AnyStrategy& strategy, const ReplaySetup& setup,
                      ReplayControl& control);

/// The output tokens that passes commit: all except the first of each turn.
std::uint64_t tokens_of(const TraceSession& session);

/// A control for `setup` that has learned nothing yet. Throws InputError if control does not accept the curve.
ReplayControl make_control(const ReplaySetup& setup);

/// The index at which `output` first differs from `recorded`; its size if it does not.
std::size_t first_difference(TokenSpan output, TokenSpan recorded);

}  // namespace reprise::replay
