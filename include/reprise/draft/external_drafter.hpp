// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// Drafts the nodes that the caller sets in each round: for engines with their own draft head (MTP, EAGLE, Medusa).
///
///   session.strategy().set({.tokens = ..., .parents = ..., .probabilities = ...});   // before propose()
///
/// The nodes are for the current context: begin(), observe() and truncate() delete them. A cancelled round may be run
/// again with the same nodes. The draft takes as many as its budget allows and refuses the rest.
///
/// Cost: set() copies and sorts the nodes. It does not allocate if reserve_nodes() has reserved enough. propose()
/// copies the nodes; in a tree, it also compares each node with those after its parent. Threads: one at a time; copies
/// are independent, but share the distributions.
class ExternalDrafter {
 public:
  /// A draft made by the caller: parallel arrays with one entry per node.
  struct Nodes {
    TokenSpan tokens;
    std::span<const NodeIndex> parents = {};    ///< per node: an earlier node or anchor_parent; empty: a chain
    std::span<const float> probabilities = {};  ///< per node, given that its parent is right; empty: all one
    /// ordered: nodes in any order with parents first; they are sorted by path probability. sampled: nodes in the order
    /// in which they were drawn; this order is kept. A sampled draft ends at the first node that is not a child of the
    /// previous node.
    ///
    /// The probability of a sampled node must not depend on its token, or rejection sampling would be biased. It may
    /// depend on earlier tokens. For example, it can be the acceptance rate of tokens at that depth.
    DraftKind kind = DraftKind::ordered;
    /// The distributions from which sampled nodes were drawn, concatenated, with `vocabulary` weights each. The caller
    /// owns them and must keep them until the round is committed. Empty: each token counts as drawn with probability
    /// one.
    std::span<const float> distributions = {};
    std::size_t vocabulary = 0;
  };

  void begin(TokenSpan) noexcept { clear(); }
  void observe(TokenSpan, std::size_t, Origin) noexcept { clear(); }
  void truncate(TokenSpan, std::size_t) noexcept { clear(); }
  void feedback(TokenSpan, const Outcome&) noexcept {}

  /// Sets the nodes of the next draft. Deletes the earlier nodes, even if the new ones are refused. Probabilities above
  /// one count as one. Errors: out_of_memory; invalid_argument for a wrong array length, an invalid parent (see
  /// Nodes), a negative or NaN probability, or distributions of an ordered draft.
  Result<void> set(const Nodes& nodes) noexcept {
    clear();
    if (auto checked = check(nodes); !checked) return checked;
    const std::size_t size = nodes.tokens.size();
    if (!nodes_.reserve(size) || !order_.reserve(size) || !written_.resize(size, anchor_parent))
      return Error{ErrorCode::out_of_memory, "out of memory; nothing is drafted in this round"};
    for (std::size_t i = 0; i < size; ++i) {
      DraftNode node{.token = nodes.tokens[i], .source = DraftSource::external};
      node.parent = nodes.parents.empty() ? static_cast<NodeIndex>(i) - 1 : nodes.parents[i];
      if (!nodes.probabilities.empty()) node.path_probability = from_float(nodes.probabilities[i]);
      if (node.parent != anchor_parent)
        node.path_probability = node.path_probability * nodes_[static_cast<std::size_t>(node.parent)].path_probability;
      nodes_.push_reserved(node);
      order_.push_reserved(static_cast<NodeIndex>(i));
    }
    // Sorting keeps parents before children: a parent is no less probable and has a smaller index.
    if (nodes.kind == DraftKind::ordered)
      std::sort(order_.begin(), order_.end(),
                [this](NodeIndex a, NodeIndex b) { return path(a) != path(b) ? path(a) > path(b) : a < b; });
    kind_ = nodes.kind;
    distributions_ = nodes.distributions;
    vocabulary_ = nodes.vocabulary;
    return {};
  }
  /// Deletes the nodes: nothing is drafted until the next set().
  void clear() noexcept {
    nodes_.clear();
    order_.clear();
    written_.clear();
    kind_ = DraftKind::ordered;
    distributions_ = {};
    vocabulary_ = 0;
  }
  /// Reserves memory for drafts of `nodes` nodes. Errors: out_of_memory; set() then allocates on demand.
  Result<void> reserve_nodes(std::size_t nodes) noexcept {
    if (!nodes_.reserve(nodes) || !order_.reserve(nodes) || !written_.reserve(nodes))
      return Error{ErrorCode::out_of_memory, "no memory for drafts of so many nodes: reserve fewer", nodes, 0};
    return {};
  }

  void propose(TokenSpan, Draft& draft) noexcept {
    draft.clear(kind_);
    if (order_.size() != nodes_.size() || written_.size() != nodes_.size()) return;  // a copy that ran out of memory
    std::fill(written_.begin(), written_.end(), anchor_parent);
    for (const NodeIndex i : order_) {
      DraftNode node = nodes_[static_cast<std::size_t>(i)];
      if (node.parent != anchor_parent) {
        node.parent = written_[static_cast<std::size_t>(node.parent)];
        if (node.parent == anchor_parent) continue;  // its parent was refused
      }
      if (repeats(draft, node)) {                 // a head may propose a token twice
        if (kind_ == DraftKind::sampled) return;  // later nodes were drawn after this token
        continue;
      }
      if (draft.push(node)) written_[static_cast<std::size_t>(i)] = static_cast<NodeIndex>(draft.size() - 1);
    }
  }

  /// Returns the distribution from which a node of the last draft was drawn. Returns an empty span if no distributions
  /// were set or the draft has no such node. The span is a part of Nodes::distributions.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const noexcept REPRISE_LIFETIMEBOUND {
    if (distributions_.empty()) return {};
    const auto found = std::find(written_.begin(), written_.end(), node);
    if (node == anchor_parent || found == written_.end()) return {};
    return distributions_.subspan(static_cast<std::size_t>(found - written_.begin()) * vocabulary_, vocabulary_);
  }

  /// Returns the number of nodes set for this round.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return nodes_.memory_bytes() + order_.memory_bytes() + written_.memory_bytes();
  }

 private:
  static Result<void> check(const Nodes& nodes) noexcept {
    const auto refuse = [](const char* why, std::size_t value, std::size_t limit) {
      return Error{ErrorCode::invalid_argument, why, value, limit};
    };
    const std::size_t size = nodes.tokens.size();
    if (!nodes.parents.empty() && nodes.parents.size() != size)
      return refuse("parents has the wrong length: give one for each token, or none", nodes.parents.size(), size);
    if (!nodes.probabilities.empty() && nodes.probabilities.size() != size)
      return refuse("probabilities has the wrong length: give one for each token, or none", nodes.probabilities.size(),
                    size);
    if (!nodes.distributions.empty() && (nodes.vocabulary == 0 || nodes.distributions.size() % nodes.vocabulary != 0 ||
                                         nodes.distributions.size() / nodes.vocabulary != size))
      return refuse("distributions has to hold one weight for each token of the vocabulary, for each node",
                    nodes.distributions.size(), size);
    if (!nodes.distributions.empty() && nodes.kind != DraftKind::sampled)
      return refuse("only a sampled draft has distributions: set kind to DraftKind::sampled", size, 0);
    for (std::size_t i = 0; i < nodes.parents.size(); ++i)
      if (nodes.parents[i] < anchor_parent || nodes.parents[i] >= static_cast<NodeIndex>(i))
        return refuse("a parent is neither an earlier node nor anchor_parent: hand in parents before children", i,
                      size);
    for (std::size_t i = 0; i < nodes.probabilities.size(); ++i)
      if (!(nodes.probabilities[i] >= 0))
        return refuse("a probability is negative, or not a number: give one from 0 to 1", i, size);
    return {};
  }
  /// Scales by a power of two and rounds down, which gives the same result on every platform.
  static Probability from_float(float p) noexcept {
    return p >= 1 ? Probability::one()
                  : Probability::from_raw(static_cast<std::uint32_t>(p * static_cast<float>(Probability::scale)));
  }
  [[nodiscard]] static bool repeats(const Draft& draft, const DraftNode& node) noexcept {
    for (std::size_t i = node.parent == anchor_parent ? 0 : static_cast<std::size_t>(node.parent) + 1; i < draft.size();
         ++i)
      if (draft[i].parent == node.parent && draft[i].token == node.token) return true;
    return false;
  }
  [[nodiscard]] Probability path(NodeIndex i) const noexcept {
    return nodes_[static_cast<std::size_t>(i)].path_probability;
  }

  detail::Buffer<DraftNode> nodes_;    // in the order given to set(), with path probabilities
  detail::Buffer<NodeIndex> order_;    // the order in which the nodes are proposed
  detail::Buffer<NodeIndex> written_;  // for each node, its index in the last draft
  DraftKind kind_ = DraftKind::ordered;
  std::span<const float> distributions_;
  std::size_t vocabulary_ = 0;
};
static_assert(DistributionStrategy<ExternalDrafter>);

}}  // namespace reprise
