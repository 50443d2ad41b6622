// SPDX-License-Identifier: Apache-2.0
#include "batch_sequence.hpp"

#include <algorithm>
#include <utility>

#include "engine_error.hpp"

namespace reprise::llama {

BatchSequence::BatchSequence(const Engine& engine, const Request& request, std::size_t number, const Drafting& drafting,
                             const Settings& settings, const Capabilities& capabilities)
    : engine_(engine),
      request_(request),
      number_(number),
      conversation_(engine, request, settings.raw),
      session_(drafting.strategy, drafting.max_nodes),
      capabilities_(capabilities),
      sampler_(make_sampler(settings.sampling, engine.vocab())),
      max_nodes_(drafting.max_nodes) {
  limits_.eos = engine.end_tokens();
  limits_.max_context = engine.context_size();
}

void BatchSequence::check(const Result<void>& done) const {
  if (!done) throw EngineError("session " + request_.id + ": " + std::string(done.error().message));
}

bool BatchSequence::next_turn() {
  if (in_turn_) end_turn();
  if (result_.run.turns.size() == request_.turns.size()) return result_.done = true, false;
  NextPrompt next = conversation_.next(context());
  if (next.keep + next.tokens.size() >= engine_.context_size())
    return result_.run.context_full = result_.done = true, false;
  const RequestTurn& turn = request_.turns[result_.run.turns.size()];
  TurnRun& run = result_.run.turns.emplace_back();
  run.kept = next.keep;
  run.rewritten = next.keep < context().size();
  run.prompt = std::move(next.tokens);
  if (run.rewritten && run.kept > 0) check(session_.truncate(run.kept));
  check(run.kept == 0 ? session_.begin(run.prompt, capabilities_) : session_.append(run.prompt));
  cached_ = std::min({cached_, run.kept, context().size() - 1});
  output_from_ = context().size();
  limits_.max_tokens = turn.max_tokens;
  return in_turn_ = true;
}

void BatchSequence::end_turn() {
  TurnRun& run = result_.run.turns.back();
  const TokenSpan output = context().subspan(output_from_);
  run.output.assign(output.begin(), output.end());
  run.finish = session_.finish_reason();
  run.statistics = session_.statistics();
  conversation_.answered(run.output);
  in_turn_ = false;
}

void BatchSequence::abandon(const std::string& why) {
  if (in_turn_) end_turn();
  result_.gave_up = why;
  result_.done = !why.empty();
}

}  // namespace reprise::llama
