// SPDX-License-Identifier: Apache-2.0
#include "generate.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "charged_verifier.hpp"
#include "common/input_error.hpp"
#include "conversation.hpp"
#include "llama_verifier.hpp"
#include "peers/racer_drafter.hpp"
#include "recorded_verifier.hpp"
#include "replay/control_spec.hpp"
#include "replay/past.hpp"
#include "replay/replay_settings.hpp"
#include "replay/strategies.hpp"
#include "replay/trace.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"

namespace reprise::llama {
namespace {

using Clock = std::chrono::steady_clock;

using LlamaSession = Session<AnyStrategy, replay::ReplayControl>;

/// A LlamaVerifier that also stores the logits and the sampler of one position. For passes without a draft, which are
/// one token each.
class ProbedVerifier {
 public:
  ProbedVerifier(LlamaVerifier& verifier, const llama_sampler* sampler, Probe& probe)
      : verifier_(verifier), sampler_(sampler), probe_(probe) {}

  auto verify(TokenSpan batch, std::size_t drafted) {
    const bool here = position_++ == probe_.position;
    if (here && sampler_ != nullptr) probe_.sampler.reset(llama_sampler_clone(sampler_));
    auto picks = verifier_.verify(batch, drafted);
    if (here && picks) probe_.logits.assign(verifier_.logits(0).begin(), verifier_.logits(0).end());
    return picks;
  }
  Result<void> commit(std::size_t keep) { return verifier_.commit(keep); }

 private:
  LlamaVerifier& verifier_;
  const llama_sampler* sampler_;
  Probe& probe_;
  std::size_t position_ = 0;
};

/// A LlamaVerifier that also stores the likeliest tokens of each pass. For passes without a draft, which pick one token
/// each.
class RankedVerifier {
 public:
  RankedVerifier(LlamaVerifier& verifier, replay::TopKRows& rows) : verifier_(verifier), rows_(rows) {}

  auto verify(TokenSpan batch, std::size_t drafted) {
    auto picks = verifier_.verify(batch, drafted);
    if (picks) rows_.add_row(verifier_.top_k(0));
    return picks;
  }
  Result<void> commit(std::size_t keep) { return verifier_.commit(keep); }

 private:
  LlamaVerifier& verifier_;
  replay::TopKRows& rows_;
};

class RequestRunner {
 public:
  RequestRunner(Engine& engine, const Request& request, Drafting& drafting, const Settings& settings,
                const Watch& watch)
      : engine_(engine),
        request_(request),
        settings_(settings),
        watch_(watch),
        conversation_(engine, request, settings.raw),
        session_(drafting.strategy, drafting.control, drafting.max_nodes),
        verifier_(make_verifier()) {
    if (settings.picks == PickSource::target) limits_.eos = engine.end_tokens();
    limits_.max_context = engine.context_size();
    limits_.draft.max_nodes = request.draft ? drafting.max_nodes : 0;
  }

  RequestRun run() {
    RequestRun run;
    for (const RequestTurn& turn : request_.turns) {
      NextPrompt next = conversation_.next(session_.context());
      if (next.keep + next.tokens.size() >= engine_.context_size()) {
        run.context_full = true;
        break;
      }
      run.turns.push_back(play(turn, std::move(next), run.turns.size()));
      if (watch_.on_turn) shorten(run.turns.back(), watch_.on_turn(run.turns.back()), run.turns.size() - 1);
      conversation_.answered(run.turns.back().output);
    }
    return run;
  }
  [[nodiscard]] const replay::ReplayControl& control() const { return session_.control(); }
  [[nodiscard]] const AnyStrategy& strategy() const { return session_.strategy(); }

 private:
  ChargedVerifier make_verifier() {
    engine_.clear();
    SamplerOwner sampler = make_sampler(settings_.sampling, engine_.vocab());
    sampler_ = sampler.get();
    LlamaOptions options{sampler.release(), 0, settings_.leaves};
    if (watch_.top_k != 0) options.top_k = watch_.top_k;
    auto made = LlamaVerifier::make(engine_.context(), options);
    if (!made) throw tools::InputError("--model " + engine_.options().model + ": " + std::string(made.error().message));
    return {std::move(*made), settings_.charged};
  }

  [[noreturn]] void fail(const Error& error, std::size_t turn) const {
    std::string text = "session " + request_.id + ", turn " + std::to_string(turn + 1) + ": ";
    text += error.message;
    if (error.value != 0) text += " (" + std::to_string(static_cast<std::int64_t>(error.value)) + ")";
    throw EngineError(text);
  }
  void check(const Result<void>& done, std::size_t turn) const {
    if (!done) fail(done.error(), turn);
  }

  TurnRun play(const RequestTurn& turn, NextPrompt next, std::size_t index) {
    TurnRun run;
    run.kept = next.keep;
    run.rewritten = next.keep < session_.context().size();
    run.prompt = std::move(next.tokens);
    if (watch_.on_prompt) watch_.on_prompt(run);

    const auto start = Clock::now();
    prefill(run, index);
    const auto prefilled = Clock::now();
    run.prefill = prefilled - start;
    const auto model_before = verifier_.model_time();
    const double cost_before = verifier_.cost();
    const std::size_t before = enter(run, index);
    limits_.max_tokens = turn.max_tokens;
    run.finish = settings_.picks == PickSource::recorded && watch_.probe == nullptr
                     ? decode_recorded(turn, before, index)
                     : decode(run, index);
    run.decoding = Clock::now() - prefilled;
    run.model = verifier_.model_time() - model_before;
    run.cost = verifier_.cost() - cost_before;

    const TokenSpan output = session_.context().subspan(before);
    run.output.assign(output.begin(), output.end());
    run.statistics = session_.statistics();
    return run;
  }

  /// Keeps the first `keep` tokens of an answer. The next prompt brings the engine's cache in line.
  void shorten(TurnRun& run, std::size_t keep, std::size_t index) {
    if (keep >= run.output.size()) return;
    check(session_.truncate(session_.context().size() - (run.output.size() - keep)), index);
    run.output.resize(keep);
    if (run.top_k) run.top_k->truncate(keep);
  }

  /// Fills the engine's cache with all tokens of the prompt except the last.
  void prefill(const TurnRun& run, std::size_t index) {
    if (run.rewritten && run.kept > 0) check(session_.truncate(run.kept), index);
    const bool anew = run.kept == 0;
    check(verifier_.truncate(anew ? 0 : session_.cached()), index);
    // The last committed token is not in the cache yet.
    std::vector<Token> tokens;
    if (!anew) tokens.assign(session_.pending().begin(), session_.pending().end());
    tokens.insert(tokens.end(), run.prompt.begin(), run.prompt.end());
    if (!tokens.empty()) tokens.pop_back();
    prompt_rows_ = {};
    first_prompt_row_ = anew ? 0 : session_.cached();
    // RACER's authors also use the rows of prompts.
    const bool ranks = session_.strategy().get<peers::RacerDrafter>() != nullptr ||
                       (settings_.prompt_rows && session_.strategy().top_k_wanted() != 0);
    check(ranks ? prefill_with_rows(tokens) : verifier_.prefill(tokens), index);
  }
  /// Prefills and stores all rows. These passes are not charged.
  Result<void> prefill_with_rows(TokenSpan tokens) {
    LlamaVerifier& verifier = verifier_;
    while (!tokens.empty()) {
      const TokenSpan chunk = tokens.first(std::min(tokens.size(), verifier.capabilities().max_rows));
      if (auto picks = verifier.verify(chunk, chunk.size() - 1); !picks) return picks.error();
      for (std::size_t i = 0; i < chunk.size(); ++i) prompt_rows_.add_row(verifier.top_k(i));
      if (auto done = verifier.commit(chunk.size()); !done) return done;
      tokens = tokens.subspan(chunk.size());
    }
    return {};
  }
  /// Passes the whole prompt to the session. Returns the number of tokens in its context.
  std::size_t enter(const TurnRun& run, std::size_t index) {
    const bool anew = run.kept == 0;
    check(anew ? session_.begin(run.prompt, verifier_.capabilities()) : session_.append(run.prompt), index);
    for (std::size_t i = 0; i < prompt_rows_.size(); ++i)
      check(session_.report_prompt_row(first_prompt_row_ + i, prompt_rows_[i]), index);
    return session_.context().size();
  }

  /// Decodes the recorded answer, which follows the first `start` tokens of the context. Like a replay, it does not
  /// tell the strategy where the answer ends.
  FinishReason decode_recorded(const RequestTurn& turn, std::size_t start, std::size_t index) {
    RecordedVerifier recorded(verifier_, turn.recorded, start);
    limits_.max_tokens = unlimited;
    const auto ends_here = [&](TokenSpan output, Token) {
      return output.size() + 1 == turn.recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    const auto generation = generate(session_, recorded, limits_, IgnoreTokens(), ends_here);
    if (!generation) fail(generation.error(), index);
    return generation->finish;
  }
  FinishReason decode(TurnRun& run, std::size_t index) {
    const auto finished = [&](const Result<Generation>& generation) {
      if (!generation) fail(generation.error(), index);
      return generation->finish;
    };
    if (watch_.probe != nullptr && watch_.probe->turn == index) {
      ProbedVerifier probed(verifier_, sampler_, *watch_.probe);
      return finished(generate(session_, probed, limits_));
    }
    const auto generated = [&](auto& verifier) {
      if (!watch_.on_tokens) return finished(generate(session_, verifier, limits_));
      return finished(generate(session_, verifier, limits_, watch_.on_tokens));
    };
    if (watch_.top_k == 0) return generated(verifier_);
    RankedVerifier ranked(verifier_, run.top_k.emplace());
    return generated(ranked);
  }

  Engine& engine_;
  const Request& request_;
  const Settings& settings_;
  const Watch& watch_;
  Conversation conversation_;
  replay::TopKRows prompt_rows_;      // of the latest prefill; empty if they are not shown
  std::size_t first_prompt_row_ = 0;  // the position of their first token in the context
  LlamaSession session_;
  llama_sampler* sampler_ = nullptr;  // owned by the verifier
  ChargedVerifier verifier_;
  Limits limits_;
};

/// Records the end of a session in the past, as reprise-replay does.
void leave(Drafting& drafting, const Request& request, const RequestRun& run, const AnyStrategy& used) {
  replay::Past& past = *drafting.past;
  if (drafting.remembers == replay::Remembers::strategy) past.strategy = used;
  if (drafting.remembers != replay::Remembers::sequences) return;
  replay::TraceSession session{request.id, request.category, {}};
  for (const TurnRun& turn : run.turns) session.turns.push_back({turn.prompt, turn.output});
  replay::leave(past, session, used);
}

}  // namespace

Drafting no_drafting() { return {"none", NoDrafter(), replay::ReplayControl(SendAll())}; }

std::vector<Drafting> make_draftings(std::span<const std::string> specs, const replay::CostCurve* cost,
                                     replay::Kept kept) {
  CostOptions options;
  options.max_nodes = usual_draft_nodes;
  if (cost != nullptr) options.curve = cost->for_control();
  std::vector<Drafting> draftings;
  for (const std::string& spec : specs) {
    for (replay::StrategyRun& run : replay::make_runs(spec)) {
      Drafting drafting{run.spec,     std::move(run.strategy), replay::ReplayControl(SendAll()),
                        run.usual,    run.max_nodes,           run.remembers,
                        run.with_past};
      if (kept == replay::Kept::past && run.remembers != replay::Remembers::nothing) {
        const replay::ReplaySettings settings;  // the default sizes
        drafting.past = std::make_shared<replay::Past>();
        if (run.remembers == replay::Remembers::sequences)
          replay::give_room(*drafting.past, settings.memory_bytes, settings.next_token_bytes);
      }
      options.calibrated = run.calibrated();
      if (run.usual == replay::ControlKind::cost) drafting.control = replay::ReplayControl(CostControl(options));
      if (run.usual == replay::ControlKind::marginal)
        drafting.control = replay::ReplayControl(
            replay::SendMarginal{options.curve ? *options.curve : CostCurve::linear(CostCurve::default_per_row)});
      draftings.push_back(std::move(drafting));
    }
  }
  return draftings;
}

RequestRun run_request(Engine& engine, const Request& request, Drafting& drafting, const Settings& settings,
                       const Watch& watch) {
  if (drafting.past) drafting.strategy = drafting.with_past(*drafting.past);
  RequestRunner runner(engine, request, drafting, settings, watch);
  RequestRun run = runner.run();
  drafting.control = runner.control();
  if (drafting.past) leave(drafting, request, run, runner.strategy());
  return run;
}

}  // namespace reprise::llama
