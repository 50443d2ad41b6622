// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/sub_drafts.hpp"

namespace reprise::inline v0 {

/// Drafts in each round with the member whose draft can be expected to save the most tokens: the one with the largest
/// sum of path probabilities. Of equal members, the first drafts.
///
/// Each member's claims are first corrected by the target's record on such claims (ClaimCalibrator). The draft states
/// the corrected probabilities, so CostOptions::calibrated may be set. Members that were not chosen learn too, from the
/// agreement of their drafts with the target's tokens (see MemberOutcome). A member that does badly at first therefore
/// comes back when it does better.
///
/// Where the engine checks trees, UnionDrafter drafts at least as well. Where it checks chains only, BestOf sends one
/// whole draft; UnionDrafter switches to another member's draft wherever that seems better. Sampled drafts, limits,
/// cost and size: as UnionDrafter. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class BestOf : public SubDrafts<Strategies...> {
 public:
  explicit BestOf(Strategies... strategies) : SubDrafts<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    const auto worth = this->propose_all(context, draft.budget());
    const auto best = static_cast<std::size_t>(std::max_element(worth.begin(), worth.end()) - worth.begin());
    this->add(best);
    for (std::size_t i = 0; i < worth.size(); ++i)
      if (i != best) this->find(i);
    this->write(draft);
  }
};

}  // namespace reprise
