// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Merges several drafts into one tree. Except for auxiliary nodes, the same token under the same parent is one node,
/// which keeps the highest claim. write() turns the tree into an ordered draft within a budget.
///
/// `Most`: the capacity in nodes; further nodes are left out. Cost: add() searches the children of the parent; write()
/// sorts the nodes. No allocation.
template <std::size_t Most>
class MergedDraft {
 public:
  void clear() noexcept {
    size_ = 0;
    first_ = none;
    forced_ = false;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// A claim for one token. `probability`: its probability, given that the tokens before it are right.
  struct Claim {
    Token token = 0;
    Probability probability;
    std::uint16_t match_length = 0;
    DraftSource source = DraftSource::unknown;
    bool auxiliary = false;
  };

  /// Adds a claim below `parent`, a node of this tree or the anchor. Returns the claim's node, or anchor_parent if the
  /// claim needs a new node and the tree is full.
  ///
  /// A forced claim (DraftSource::jump_forward) replaces the earlier claim of its node. It excludes the parent's other
  /// children from write(), unless they are forced or auxiliary. Auxiliary nodes are never merged: they exist for the
  /// information that they return to their own member.
  NodeIndex add(NodeIndex parent, const Claim& claim) noexcept {
    const bool forced = claim.source == DraftSource::jump_forward && !claim.auxiliary;
    const auto stands_alone = [&] {
      if (forced) (parent == anchor_parent ? forced_ : at(parent).forced) = true;
    };
    if (const NodeIndex known = claim.auxiliary ? none : find(parent, claim.token); known != none) {
      if (forced || claim.probability > at(known).claim.probability) at(known).claim = claim;
      stands_alone();
      return known;
    }
    if (size_ == Most) return anchor_parent;  // a forced claim without room does not exclude its siblings
    stands_alone();
    const auto added = static_cast<NodeIndex>(size_++);
    NodeIndex& first = parent == anchor_parent ? first_ : at(parent).child;
    at(added) = Node();
    at(added).claim = claim;
    at(added).parent = parent;
    at(added).sibling = first;
    first = added;
    return added;
  }

  /// Returns the node of `token` below `parent`, or anchor_parent if there is none. Ignores auxiliary nodes.
  [[nodiscard]] NodeIndex find(NodeIndex parent, Token token) const noexcept {
    NodeIndex i = parent == anchor_parent ? first_ : nodes_[static_cast<std::size_t>(parent)].child;
    while (i != none && (at(i).claim.auxiliary || at(i).claim.token != token)) i = at(i).sibling;
    return i;
  }

  /// Writes the tree as an ordered draft until the draft is full or the next path is less likely than the budget
  /// allows. The most probable paths come first; of equally probable paths, the one added first. A chain gets only the
  /// most probable child of each node.
  void write(Draft& draft) noexcept {
    // With fewer than 17 elements g++ 12 reports an overflow in std::sort, which treats the first 16 separately.
    std::array<NodeIndex, std::max<std::size_t>(Most, 17)> order;  // NOLINT(*-member-init): filled up to `size_`
    for (std::size_t i = 0; i < size_; ++i) {
      Node& node = nodes_[i];
      node.written = anchor_parent;
      const bool root = node.parent == anchor_parent;
      node.path = node.claim.probability * (root ? Probability::one() : at(node.parent).path);
      order[i] = static_cast<NodeIndex>(i);
    }
    // Sorting keeps children after their parents: a child is no more probable, and was added later.
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(size_),
              [this](NodeIndex a, NodeIndex b) { return at(a).path != at(b).path ? at(a).path > at(b).path : a < b; });
    for (std::size_t i = 0; i < size_ && !draft.full(); ++i) {
      Node& node = at(order[i]);
      // push() would also refuse this node, but then all later nodes too, one by one.
      if (node.path < draft.budget().min_path_probability) return draft.leave_out();
      const bool root = node.parent == anchor_parent;
      if (!root && at(node.parent).written == anchor_parent) continue;
      // A forced token excludes its siblings.
      const bool beside_forced = root ? forced_ : at(node.parent).forced;
      if (beside_forced && !node.claim.auxiliary && node.claim.source != DraftSource::jump_forward) continue;
      // A variable, because nvcc 13.0 cannot compile this initialiser as an argument.
      const DraftNode drafted{.token = node.claim.token,
                              .parent = root ? anchor_parent : at(node.parent).written,
                              .path_probability = node.path,
                              .match_length = node.claim.match_length,
                              .source = node.claim.source,
                              .auxiliary = node.claim.auxiliary};
      if (!draft.push(drafted)) continue;
      node.written = static_cast<NodeIndex>(draft.size() - 1);
    }
  }
  /// Returns the draft node that write() made of this node, or anchor_parent if this node was left out.
  [[nodiscard]] NodeIndex written(NodeIndex node) const noexcept {
    return nodes_[static_cast<std::size_t>(node)].written;
  }

 private:
  static constexpr NodeIndex none = -1;

  struct Node {
    Claim claim;
    NodeIndex parent = anchor_parent;
    NodeIndex child = none;    // the child added last
    NodeIndex sibling = none;  // the previously added sibling
    Probability path;
    NodeIndex written = anchor_parent;
    bool forced = false;  // true: the node has a forced child
  };

  [[nodiscard]] Node& at(NodeIndex i) noexcept { return nodes_[static_cast<std::size_t>(i)]; }
  [[nodiscard]] const Node& at(NodeIndex i) const noexcept { return nodes_[static_cast<std::size_t>(i)]; }

  std::array<Node, Most> nodes_;
  std::size_t size_ = 0;
  NodeIndex first_ = none;  // the anchor's child that was added last
  bool forced_ = false;     // true: the anchor has a forced child
};

}}}  // namespace reprise::detail
