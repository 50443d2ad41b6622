// SPDX-License-Identifier: Apache-2.0
#include "predict.hpp"

#include <utility>

namespace reprise::llama {

Predictor::Predictor(const Drafting& drafting, const PredictionSettings& settings) : strategy_(drafting.strategy) {
  if (settings.told) curves_.push_back(*settings.told);  // control weighs drafts against the first curve
  curves_.push_back(settings.charged);
  setup_.control = replay::resolve(replay::ControlSpec(), drafting.usual);
  setup_.settings.trees = settings.trees;
  setup_.settings.cost_known = settings.told ? replay::CostKnown::told : replay::CostKnown::carried;
  setup_.calibrated = drafting.calibrated();
  setup_.curves = curves_;
  control_ = make_control(setup_);
}

Prediction Predictor::predict(const Request& request, const RequestRun& plain) {
  setup_.curves = curves_;  // again, because the Predictor may have been moved
  Prediction prediction;
  AnyStrategy strategy = strategy_;  // as in a run, a session keeps only what control has learned
  for (const replay::TraceSession& session : as_replayed(request, plain)) {
    const replay::Counts counts = replay_session(session, strategy, setup_, control_);
    if (!counts.lossless()) throw EngineError("the replay differs from the generated tokens: " + counts.fault);
    prediction.tokens += static_cast<double>(counts.tokens);
    prediction.cost += counts.charges.back().cost;
  }
  return prediction;
}

std::vector<replay::TraceSession> as_replayed(const Request& request, const RequestRun& run) {
  std::vector<replay::TraceSession> sessions;
  std::vector<Token> context;
  for (const TurnRun& turn : run.turns) {
    std::vector<Token> prompt = turn.prompt;
    if (sessions.empty() || turn.rewritten) {
      context.resize(turn.kept);
      prompt.insert(prompt.begin(), context.begin(), context.end());
      sessions.push_back({request.id, request.category, {}});
    }
    context.insert(context.end(), turn.prompt.begin(), turn.prompt.end());
    context.insert(context.end(), turn.output.begin(), turn.output.end());
    std::vector<Token> output = turn.output;
    if (!prompt.empty()) {
      output.insert(output.begin(), prompt.back());
      prompt.pop_back();
    }
    sessions.back().turns.push_back({std::move(prompt), std::move(output)});
  }
  return sessions;
}

}  // namespace reprise::llama
