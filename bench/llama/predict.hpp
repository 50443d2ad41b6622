// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generate.hpp"
#include "replay/cost_curve.hpp"
#include "replay/replay.hpp"

namespace reprise::llama {

/// The tokens and the cost of replayed passes. The unit of cost is a pass without a draft.
struct Prediction {
  double tokens = 0;
  double cost = 0;

  Prediction& operator+=(const Prediction& other) {
    tokens += other.tokens;
    cost += other.cost;
    return *this;
  }
  [[nodiscard]] double speedup() const { return cost > 0 ? tokens / cost : 1; }
};

/// The settings of a prediction.
struct PredictionSettings {
  replay::CostCurve charged;              ///< the cost of passes
  std::optional<replay::CostCurve> told;  ///< the curve that control was given; empty: it learns from the charged one
  bool trees = false;
};

/// Replays the tokens that an engine has generated, with the same strategy and control, and returns the speedup that
/// reprise-replay predicts. Control learns from simulated pass times and keeps its knowledge from session to session.
class Predictor {
 public:
  Predictor(const Drafting& drafting, const PredictionSettings& settings);

  /// `plain`: the run of plain decoding. Throws EngineError if the replay is not lossless, which is a bug.
  Prediction predict(const Request& request, const RequestRun& plain);

 private:
  AnyStrategy strategy_;
  std::vector<replay::CostCurve> curves_;
  replay::ReplaySetup setup_;
  replay::ReplayControl control_;
};

/// The tokens of a run as recorded sessions: one, or several if a chat template changed earlier turns. A replay takes
/// the first token of an output from the prefill, but in a run a pass generates it. So the last token of each prompt is
/// moved to the start of the output.
std::vector<replay::TraceSession> as_replayed(const Request& request, const RequestRun& run);

}  // namespace reprise::llama
