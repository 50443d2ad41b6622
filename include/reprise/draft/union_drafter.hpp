// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/sub_drafts.hpp"

namespace reprise::inline v0 {

/// The drafts of several strategies as one ordered tree.
///
/// The same token under the same parent is one node, with the source and the probability of the member that claims
/// most for it; so a path that one member begins another one may go on with. Each member's claims are first held
/// against what the target made of such claims (ClaimCalibrator), so one that promises too much does not crowd out the
/// others; the draft states what they proved to be worth (CostOptions::calibrated may be set). Forced tokens are taken
/// at their word: they come first, what the grammar rules out beside them is left out, and what other members say
/// follows behind where they foresaw the same. Where a chain is asked for, the most probable child of each place is
/// taken.
///
/// Each member learns from every round what became of its own draft, whoever else proposed the same; see MemberOutcome.
///
/// A member's sampled draft becomes part of an ordered one. That is exact, because it is then checked by agreement; but
/// agreement accepts less of it than rejection sampling. To keep a sampled draft as it is, combine with FirstMatch.
///
/// Limits: of each member 128 nodes are read, of all together 256. Cost of propose: those of the members, and about as
/// much as sorting the nodes. Size: 4 KB for each member and 20 KB; no allocation of its own.
/// Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class UnionDrafter : public SubDrafts<Strategies...> {
 public:
  explicit UnionDrafter(Strategies... strategies) : SubDrafts<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    static_cast<void>(this->propose_all(context, draft.budget()));
    for (std::size_t i = 0; i < sizeof...(Strategies); ++i) this->add(i);
    this->write(draft);
  }
};

}  // namespace reprise
