// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "engine_error.hpp"
#include "inputs.hpp"
#include "replay/cost_curve.hpp"
#include "replay/replay_control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/any_strategy.hpp"
#include "reprise/stats/statistics.hpp"
#include "sampling.hpp"

namespace reprise::llama {

/// A strategy, and the control that decides how much of its drafts is sent. The control keeps what it has learned about
/// passes from session to session, as in a server; the strategy begins anew in each.
struct Drafting {
  std::string spec;
  AnyStrategy strategy;
  replay::ReplayControl control;
  bool calibrated = false;
};

/// Plain decoding.
Drafting no_drafting();

/// The strategies of `specs` (as for reprise-replay), in order. `cost`: what control weighs drafts against where a
/// strategy's probabilities are learned; null: it learns from the times of the passes. Drafts of the other strategies
/// are sent whole, as their projects do. Throws InputError.
std::vector<Drafting> make_draftings(std::span<const std::string> specs, const replay::CostCurve* cost = nullptr);

/// How answers are generated.
struct Settings {
  Sampling sampling;
  std::size_t leaves = 1;  ///< more: drafts may be trees
  bool raw = false;        ///< no chat template
};

/// One prompt and its answer. Times are of this turn.
struct TurnRun {
  std::size_t kept = 0;       ///< tokens of the context before it that stayed
  bool rewritten = false;     ///< not all of them: the chat template writes earlier turns differently
  std::vector<Token> prompt;  ///< behind those
  std::vector<Token> output;  ///< what ended it included
  FinishReason finish = FinishReason::none;
  Statistics statistics;
  std::chrono::nanoseconds prefill{};
  std::chrono::nanoseconds decoding{};  ///< strategy, control and loop included, and reading the prompt into them
  std::chrono::nanoseconds model{};     ///< of that, in llama_decode
};

struct RequestRun {
  std::vector<TurnRun> turns;
  bool context_full = false;  ///< the turns after these did not fit
};

/// The distribution at one place of a plain run: what a difference is judged by.
struct Probe {
  std::size_t turn = 0;
  std::size_t position = 0;   ///< in its output
  std::vector<float> logits;  ///< that the token there was picked from
  SamplerOwner sampler;       ///< as it was before the pick; none: the likeliest token is taken
};

/// Who looks on. All may be left out.
struct Watch {
  std::function<void(const TurnRun& turn)> on_prompt;    ///< before the answer to a turn
  std::function<bool(TokenSpan tokens)> on_tokens = {};  ///< of the answer, but what ends it; false ends the turn
  /// Behind it: how many tokens of the answer stay; the others are taken out of the context and of the run.
  std::function<std::size_t(const TurnRun& turn)> on_turn = {};
  Probe* probe = nullptr;  ///< of runs without drafting
};

/// Runs all turns of a session, each behind the one before in the same context, which is emptied first. The random
/// stream of the sampler begins anew. Throws EngineError; InputError where the model cannot do what `settings` ask for.
RequestRun run_request(Engine& engine, const Request& request, Drafting& drafting, const Settings& settings,
                       const Watch& watch = {});

}  // namespace reprise::llama
