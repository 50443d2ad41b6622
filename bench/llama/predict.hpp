// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generate.hpp"
#include "replay/cost_curve.hpp"
#include "replay/replay.hpp"

namespace reprise::llama {

/// Passes as a replay charges them, in passes without a draft.
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

/// Under what predictions are made.
struct PredictionSettings {
  replay::CostCurve charged;              ///< what passes cost
  std::optional<replay::CostCurve> told;  ///< the curve that control was given; none: it learns the charged one
  bool trees = false;
};

/// Replays the very tokens that an engine has generated, with the strategy and the control that it had: the speedup
/// that reprise-replay would have promised. Control learns from simulated pass times, and keeps what it has learned
/// from session to session.
class Predictor {
 public:
  Predictor(const Drafting& drafting, const PredictionSettings& settings);

  /// `plain`: what plain decoding has generated. Throws EngineError when the replay is not lossless: a bug.
  Prediction predict(const Request& request, const RequestRun& plain);

 private:
  AnyStrategy strategy_;
  std::vector<replay::CostCurve> curves_;
  replay::ReplaySetup setup_;
  replay::ReplayControl control_;
};

/// The tokens of a run as recorded sessions: one, or more where a chat template has written earlier turns differently.
/// A replay takes the first token of an output as given by the prefill. In a run a pass gives it, so the last token of
/// each prompt takes that place.
std::vector<replay::TraceSession> as_replayed(const Request& request, const RequestRun& run);

}  // namespace reprise::llama
