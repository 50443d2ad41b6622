// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/detail/sub_drafts.hpp"

namespace reprise::inline v0 {

/// Merges the drafts of several strategies into one ordered tree. member<i>() returns the i-th strategy.
///
/// The same token under the same parent becomes one node, except for auxiliary nodes. The node has the source and the
/// probability of the member that claims the highest probability for it. One member can thus continue a path that
/// another member has started.
///
/// Each member's claims are first calibrated by the target's verdicts on earlier claims (ClaimCalibrator). A member
/// that claims too much thus does not crowd out the others. The draft states the calibrated probabilities, so
/// CostOptions::calibrated may be set. If the budget asks for a chain, only the most probable child of each node is
/// drafted.
///
/// Two kinds of nodes are not calibrated. Auxiliary nodes keep their stated probability. Forced tokens
/// (JumpForwardDrafter) keep probability one and come first. Siblings that the grammar excludes are omitted. Drafts of
/// other members that agree with the forced tokens continue after them.
///
/// After every committed round, each member receives the outcome of its own draft, even if other members proposed the
/// same nodes; see MemberOutcome.
///
/// A member's sampled draft becomes part of an ordered draft. The output stays exact, because an ordered draft is
/// verified by agreement, but agreement accepts fewer tokens than rejection sampling. FirstMatch keeps sampled drafts
/// as they are.
///
/// Limits: at most 128 nodes per member are read, and 256 in all. Cost of propose(): the costs of the members, plus
/// about the cost of sorting the nodes. Size: 4 KB per member plus 20 KB, or plus 44 KB if a member is a TopKLearner;
/// no allocation of its own. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class UnionDrafter : public detail::SubDrafts<Strategies...> {
 public:
  explicit UnionDrafter(Strategies... strategies) : detail::SubDrafts<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    static_cast<void>(this->propose_all(context, draft.budget()));
    for (std::size_t i = 0; i < sizeof...(Strategies); ++i) this->add(i);
    this->write(draft);
  }
};

}  // namespace reprise
