// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/any_strategy.hpp"
#include "engine.hpp"
#include "engine_error.hpp"
#include "inputs.hpp"
#include "replay/cost_curve.hpp"
#include "replay/past.hpp"
#include "replay/replay_control.hpp"
#include "replay/replay_settings.hpp"
#include "replay/strategies.hpp"
#include "replay/top_k_rows.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/stats/statistics.hpp"
#include "sampling.hpp"

namespace reprise::llama {

/// A strategy, and the control that decides how much of its drafts is sent. The control keeps its knowledge of pass
/// times from session to session, as in a server. The strategy starts fresh in each session, unless it has a past.
struct Drafting {
  std::string spec;
  AnyStrategy strategy;
  replay::ReplayControl control;
  replay::ControlKind usual = replay::ControlKind::all;  ///< the kind of its control
  std::size_t max_nodes = usual_draft_nodes;             ///< most nodes of a draft
  replay::Remembers remembers = replay::Remembers::nothing;
  /// Makes the strategy for the next session from `past`.
  std::function<AnyStrategy(replay::Past&)> with_past = {};
  /// The state that earlier sessions left; null: every session starts fresh. The strategy reads it, so it lives as
  /// long.
  std::shared_ptr<replay::Past> past = {};

  /// True if the probabilities of the strategy are calibrated.
  [[nodiscard]] bool calibrated() const { return usual == replay::ControlKind::cost; }
};

/// Plain decoding.
Drafting no_drafting();

/// The strategies of `specs` (as for reprise-replay), in order. With learned probabilities, control weighs drafts
/// against `cost`; null: it learns the cost from pass times. SendMarginal assumes 5% for a drafted token then. Drafts
/// of other strategies are sent whole, as in their own projects. With Kept::past, each strategy that has a memory keeps
/// one of its own. Throws InputError.
std::vector<Drafting> make_draftings(std::span<const std::string> specs, const replay::CostCurve* cost = nullptr,
                                     replay::Kept kept = replay::Kept::session);

/// The source of the tokens that are committed.
enum class PickSource : std::uint8_t {
  target,    ///< the model
  recorded,  ///< the recorded answers of a trace; the model still runs all rows (RecordedVerifier)
};
constexpr std::string_view name(PickSource picks) { return picks == PickSource::target ? "target" : "recorded"; }

/// The settings of generation.
struct Settings {
  Sampling sampling;
  std::size_t leaves = 1;                      ///< above 1: drafts may be trees
  bool raw = false;                            ///< no chat template
  const replay::CostCurve* charged = nullptr;  ///< the curve of TurnRun::cost; null: passes are not charged
  /// With `recorded`, an answer ends where the recorded one ends, and end tokens do not end it earlier.
  PickSource picks = PickSource::target;
  /// Strategies that want rows are shown the rows of prompts too; RACER always is. The prefill then computes the logits
  /// of all tokens.
  bool prompt_rows = false;
};

/// One prompt and its answer. Times and statistics are of this turn.
struct TurnRun {
  std::size_t kept = 0;       ///< tokens of the earlier context that stayed
  bool rewritten = false;     ///< some earlier tokens did not stay: the chat template changed earlier turns
  std::vector<Token> prompt;  ///< the tokens after the kept ones
  std::vector<Token> output;  ///< including the token that ended it
  std::optional<replay::TopKRows> top_k = {};  ///< one row for each output token; nullopt without Watch::top_k
  FinishReason finish = FinishReason::none;
  Statistics statistics;
  std::chrono::nanoseconds prefill{};
  std::chrono::nanoseconds decoding{};  ///< includes strategy, control and loop, and their reading of the prompt
  std::chrono::nanoseconds model{};     ///< the part of `decoding` spent in llama_decode
  double cost = 0;                      ///< of the passes under Settings::charged; 1: a pass without a draft
};

struct RequestRun {
  std::vector<TurnRun> turns;
  bool context_full = false;  ///< the remaining turns did not fit
};

/// The distribution at one position of a plain run, used to judge a difference.
struct Probe {
  std::size_t turn = 0;
  std::size_t position = 0;   ///< in the output of the turn
  std::vector<float> logits;  ///< the logits from which the token there was picked
  SamplerOwner sampler;       ///< its state before the pick; null: the likeliest token is taken
};

/// Callbacks during a run. All are optional.
struct Watch {
  std::function<void(const TurnRun& turn)> on_prompt;  ///< called before the answer to a turn
  std::function<bool(TokenSpan tokens)> on_tokens =
      {};  ///< receives tokens of the answer, except the end token; false ends the turn
  /// Called after the answer. Returns the number of answer tokens to keep; the others are removed from the context and
  /// from the run.
  std::function<std::size_t(const TurnRun& turn)> on_turn = {};
  Probe* probe = nullptr;  ///< filled in by runs without drafting
  /// Above 0: runs without drafting store the `top_k` likeliest tokens of the row that picked each output token.
  std::size_t top_k = 0;
};

/// Runs all turns of a session one after the other in the same context, which is emptied first. The sampler's random
/// stream starts afresh. If the drafting has a past, the strategy is made from it and leaves its state there. Throws
/// EngineError, and InputError if the model does not support `settings`.
RequestRun run_request(Engine& engine, const Request& request, Drafting& drafting, const Settings& settings,
                       const Watch& watch = {});

}  // namespace reprise::llama
