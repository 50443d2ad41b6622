// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cost_curve.hpp"
#include "replay.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// What no drafter can beat that copies what the session has said before: one that knows, for each pass, where to copy
/// from and how far, and chooses the passes whose summed cost under the curve is the least. Nothing need match before
/// what is copied, and a copy may run into itself; at most `max_nodes` tokens each. tokens, passes, drafted, accepted
/// and one charge are counted as replay_session() counts them.
///
/// Cost: memory in proportion to the session; time to its tokens x the occurrences of each pair of them.
Counts ceiling(const TraceSession& recorded, const CostCurve& curve, std::size_t max_nodes);

}  // namespace reprise::replay
