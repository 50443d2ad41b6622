// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "reprise/control/cost_control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// A pass of a replay.
struct Passed {
  PassShape shape;
  std::size_t committed = 0;              ///< tokens
  double cost = 0;                        ///< in passes without a draft, under the first curve of the replay
  const LearnedCurve* learned = nullptr;  ///< the control's curve after this pass; null if it learns none
};

/// Receives the passes of a replay, one after the other.
class PassWatcher {
 public:
  virtual ~PassWatcher() = default;
  /// A session begins. The passes up to the next call belong to it.
  virtual void began(const TraceSession& session) = 0;
  /// The draft of the pass that the next call of passed() describes. Not called if the strategy threw before.
  virtual void tested(const Outcome& /*outcome*/) {}
  virtual void passed(const Passed& pass) = 0;
};

}  // namespace reprise::replay
