// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// A strategy that proposes every kind of invalid draft. Parents are later nodes, the node itself or out of range, or
/// they form cycles. Tokens repeat or lie outside any vocabulary. Drafts exceed the budget, have rising probabilities,
/// claim to be sampled, hold auxiliary nodes or are empty. The strategy ignores begin(), truncate() and feedback(), and
/// a second call of propose() gives a different draft. Some drafts are well-formed chains and trees of valid tokens,
/// which the target may accept.
///
/// Draft::push() refuses nodes that violate the draft's form or budget. With the remaining nodes, the loop must still
/// give the output of plain decoding.
///
/// The same seed and the same calls give the same drafts. Threads: one at a time.
class HostileStrategy {
 public:
  /// `vocabulary`: tokens 0 ... vocabulary - 1 are valid. Some proposed tokens are not.
  explicit HostileStrategy(std::uint64_t seed = 1, Token vocabulary = 8) noexcept
      : random_(seed), vocabulary_(vocabulary) {}

  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan context, std::size_t, Origin) noexcept {
    if (!context.empty()) last_ = context.back();
  }
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  void propose(TokenSpan, Draft& draft) noexcept { write_garbage(draft); }

  /// Writes the draft of propose() to any object that has the functions of a Draft.
  template <class Sink>
  void write_garbage(Sink& draft) noexcept {
    const std::size_t kind = random_.below(11);
    if (kind == 0) return;
    draft.clear(random_.chance(20) ? DraftKind::sampled : DraftKind::ordered);
    const std::size_t most = std::min<std::size_t>(draft.budget().max_nodes, 4096);
    // Half of the drafts far exceed the budget.
    const std::size_t wanted = random_.chance(50) ? 2 * most + 3 : random_.below(most + 1);
    highest_ = Probability::scale;
    for (std::size_t i = 0; i < wanted; ++i) draft.push(node_of(kind, draft.size(), wanted));
    if (random_.chance(10)) {
      draft.truncate(random_.below(most + 1));
      draft.push(garbage(draft.size()));
    }
    if (random_.chance(10)) draft.leave_out();
    if (random_.chance(10)) draft.hold_back();
  }

 private:
  /// Returns node number `at` of a draft of this kind.
  DraftNode node_of(std::size_t kind, std::size_t at, std::size_t wanted) noexcept {
    DraftNode node = kind >= 8 ? branch(at) : garbage(at);
    if (kind == 1) node.parent = static_cast<NodeIndex>(at);                                     // its own parent
    if (kind == 2) node.parent = static_cast<NodeIndex>(at + 1);                                 // a later node
    if (kind == 3) node.parent = static_cast<NodeIndex>((at + 1) % (wanted == 0 ? 1 : wanted));  // one large cycle
    if (kind == 4) node.parent = anchor_parent;  // all nodes are children of the anchor
    if (kind >= 5 && kind < 8 && random_.chance(90)) node.parent = static_cast<NodeIndex>(at) - 1;  // nearly a chain
    // Probabilities mostly fall; otherwise the draft would refuse all but a few nodes.
    if (random_.chance(90)) {
      highest_ -= random_.chance(50) ? static_cast<std::uint32_t>(random_.below(highest_ / 8 + 1)) : 0;
      node.path_probability = Probability::from_raw(highest_);
    }
    return node;
  }
  /// Returns a node with a valid token and an earlier node or the anchor as its parent.
  DraftNode branch(std::size_t at) noexcept {
    DraftNode node = garbage(at);
    node.token = static_cast<Token>(random_.below(static_cast<std::size_t>(vocabulary_ > 0 ? vocabulary_ : 1)));
    // Most nodes follow one of the last few, so that some paths are long.
    const std::size_t back = random_.below(random_.chance(70) ? 3 : at + 1);
    node.parent = static_cast<NodeIndex>(at - std::min(at, back)) - 1;
    node.auxiliary = false;
    return node;
  }
  DraftNode garbage(std::size_t at) noexcept {
    DraftNode node;
    switch (random_.below(8)) {
      case 0:
        node.token = std::numeric_limits<Token>::min();
        break;
      case 1:
        node.token = std::numeric_limits<Token>::max();
        break;
      case 2:
        node.token = -1;
        break;
      case 3:
        node.token = last_;
        break;
      default:
        node.token = static_cast<Token>(random_.below(static_cast<std::size_t>(vocabulary_ > 0 ? vocabulary_ : 1)));
    }
    switch (random_.below(6)) {
      case 0:
        node.parent = std::numeric_limits<NodeIndex>::max();
        break;
      case 1:
        node.parent = std::numeric_limits<NodeIndex>::min();
        break;
      case 2:
        node.parent = -2;
        break;
      default:
        node.parent = static_cast<NodeIndex>(random_.below(at + 4)) - 1;
    }
    node.path_probability = Probability::from_raw(static_cast<std::uint32_t>(random_.next()));
    node.match_length = static_cast<std::uint16_t>(random_.next());
    node.source = static_cast<DraftSource>(random_.below(draft_source_count));
    node.auxiliary = random_.chance(5);
    return node;
  }

  Random random_;
  Token vocabulary_;
  Token last_ = 0;
  std::uint32_t highest_ = 0;  // upper bound on the probability of the next node
};
static_assert(DraftStrategy<HostileStrategy>);

}  // namespace reprise::testing
