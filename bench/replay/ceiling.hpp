// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cost_curve.hpp"
#include "replay.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// An upper bound for drafters that copy earlier text of the session. The bound is an oracle: for each pass it knows
/// where to copy from and how far, and it minimises the summed cost under the curve. A copy needs no matching text
/// before it, may run into itself, and has at most `max_nodes` tokens. Counts tokens, passes, drafted, accepted and one
/// charge in the same way as replay_session().
///
/// Cost: memory proportional to the session; time proportional to its tokens x the occurrences of each pair of tokens.
Counts ceiling(const TraceSession& recorded, const CostCurve& curve, std::size_t max_nodes);

}  // namespace reprise::replay
