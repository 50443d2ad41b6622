// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/union_drafter.hpp"

namespace reprise { inline namespace v0 {

/// In each round, drafts with the member whose draft has the highest expected number of accepted tokens: the largest
/// sum of path probabilities. A tie goes to the member that is listed first.
///
/// First calibrates each member's stated probabilities with the observed acceptance of such claims (ClaimCalibrator).
/// The draft states the corrected probabilities, so CostOptions::calibrated may be set. Members that were not chosen
/// learn too, from the agreement of their drafts with the target's tokens (see MemberOutcome). A member that drafts
/// badly at first is therefore chosen once its drafts improve.
///
/// On engines that verify trees, UnionDrafter drafts at least as well. On engines that verify only chains, BestOf
/// drafts the chain of one member; UnionDrafter switches to a different member's draft wherever that seems better.
/// Sampled drafts, limits, cost and size: as for UnionDrafter. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class BestOf : public detail::SubDrafts<Strategies...> {
 public:
  explicit BestOf(Strategies... strategies) : detail::SubDrafts<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    const auto worth = this->propose_all(context, draft.budget());
    const auto best = static_cast<std::size_t>(std::max_element(worth.begin(), worth.end()) - worth.begin());
    this->add(best);
    for (std::size_t i = 0; i < worth.size(); ++i)
      if (i != best) this->find(i);
    this->write(draft);
  }
};

}}  // namespace reprise
