// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/sub_drafts.hpp"

namespace reprise::inline v0 {

/// In each round, the draft of that strategy which can be expected to save most tokens: the one with the largest sum of
/// path probabilities. Of equal ones the first.
///
/// Each member's claims are first held against what the target made of such claims (ClaimCalibrator); the draft states
/// what they proved to be worth (CostOptions::calibrated may be set). A member that was not chosen learns too: how far
/// its draft agreed with what the target said, see MemberOutcome. So one that does badly at first comes back when it
/// does better.
///
/// UnionDrafter drafts at least as well wherever the engine checks trees; where it checks chains only, this one sends
/// one draft whole instead of changing over wherever another seems better. Sampled drafts, limits, cost and size: as
/// UnionDrafter. Threads: one at a time; copies are independent.
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
