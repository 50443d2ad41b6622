// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"

namespace reprise::inline v0 {

/// A draft that the caller has made, to hand in: flat arrays with one entry for each node.
struct ExternalNodes {
  TokenSpan tokens;
  std::span<const NodeIndex> parents = {};    ///< of each, an earlier node or anchor_parent; empty: a chain
  std::span<const float> probabilities = {};  ///< of each, given that its parent is right; empty: one for all
  /// ordered: any order that has parents first; it is put in order of path probability. sampled: in the order in which
  /// they were drawn, which is kept; the draft ends at the first node that does not follow the one before. The
  /// probability of a sampled node is then not that of its token: it may depend on the tokens before it only (say, how
  /// often such a token was accepted), or rejection sampling would be biased.
  DraftKind kind = DraftKind::ordered;
  /// Of sampled nodes, the distributions they were drawn from, one after the other, of `vocabulary` weights each. They
  /// stay the caller's, and have to live until the round is committed. Empty: checked by agreement.
  std::span<const float> distributions = {};
  std::size_t vocabulary = 0;
};

/// Drafts what the caller hands in each round: for engines with a draft head of their own (MTP, EAGLE, Medusa).
///
///   session.strategy().set({.tokens = ..., .parents = ..., .probabilities = ...});   // before propose()
///
/// What was handed in is for the context as it is now, and is gone after begin(), observe() or truncate(); a round that
/// was cancelled may be run again. A draft of an engine is as long as the engine likes; the budget cuts it.
///
/// Cost: set() copies the nodes and sorts them, and may allocate (not below reserve_nodes()); propose() copies them.
/// Threads: one at a time; copies are independent, but for the distributions.
class ExternalDrafter {
 public:
  void begin(TokenSpan) noexcept { clear(); }
  void observe(TokenSpan, std::size_t, Origin) noexcept { clear(); }
  void truncate(TokenSpan, std::size_t) noexcept { clear(); }
  void feedback(TokenSpan, const Outcome&) noexcept {}

  /// The draft of the next round; what was set before is forgotten, also when this one is refused. Errors:
  /// invalid_argument (arrays of other lengths, a parent that is not an earlier node, a probability that is negative or
  /// no number; more than one counts as one), out_of_memory.
  Result<void> set(const ExternalNodes& nodes) noexcept {
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
    // Parents stay first: they are no less probable, and came earlier.
    if (nodes.kind == DraftKind::ordered)
      std::sort(order_.begin(), order_.end(),
                [this](NodeIndex a, NodeIndex b) { return path(a) != path(b) ? path(a) > path(b) : a < b; });
    kind_ = nodes.kind;
    distributions_ = nodes.distributions;
    vocabulary_ = nodes.vocabulary;
    return {};
  }
  /// Nothing is drafted until the next set().
  void clear() noexcept {
    nodes_.clear();
    order_.clear();
    written_.clear();
    kind_ = DraftKind::ordered;
    distributions_ = {};
    vocabulary_ = 0;
  }
  /// Room for drafts of that many nodes. Errors: out_of_memory; then set() allocates as it needs to.
  Result<void> reserve_nodes(std::size_t nodes) noexcept {
    if (!nodes_.reserve(nodes) || !order_.reserve(nodes) || !written_.reserve(nodes))
      return Error{ErrorCode::out_of_memory, "no memory for drafts of so many nodes: reserve fewer", nodes, 0};
    return {};
  }

  void propose(TokenSpan, Draft& draft) noexcept {
    draft.clear(kind_);
    if (order_.size() != nodes_.size() || written_.size() != nodes_.size()) return;  // a copy that got no memory
    std::fill(written_.begin(), written_.end(), anchor_parent);
    for (const NodeIndex i : order_) {
      DraftNode node = nodes_[static_cast<std::size_t>(i)];
      if (node.parent != anchor_parent) {
        node.parent = written_[static_cast<std::size_t>(node.parent)];
        if (node.parent == anchor_parent) continue;  // its parent was refused
      }
      if (repeats(draft, node)) {                 // a head may try a token twice
        if (kind_ == DraftKind::sampled) return;  // later nodes were drawn knowing of it
        continue;
      }
      if (draft.push(node)) written_[static_cast<std::size_t>(i)] = static_cast<NodeIndex>(draft.size() - 1);
    }
  }

  /// What a node of the last draft was drawn from; empty when no distributions were handed in.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const noexcept {
    if (distributions_.empty()) return {};
    const auto found = std::find(written_.begin(), written_.end(), node);
    if (node == anchor_parent || found == written_.end()) return {};
    return distributions_.subspan(static_cast<std::size_t>(found - written_.begin()) * vocabulary_, vocabulary_);
  }

  /// Nodes that were handed in for this round.
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return nodes_.memory_bytes() + order_.memory_bytes() + written_.memory_bytes();
  }

 private:
  static Result<void> check(const ExternalNodes& nodes) noexcept {
    const auto refuse = [](const char* why, std::size_t value, std::size_t limit) {
      return Error{ErrorCode::invalid_argument, why, value, limit};
    };
    const std::size_t size = nodes.tokens.size();
    if (!nodes.parents.empty() && nodes.parents.size() != size)
      return refuse("there are not as many parents as tokens", nodes.parents.size(), size);
    if (!nodes.probabilities.empty() && nodes.probabilities.size() != size)
      return refuse("there are not as many probabilities as tokens", nodes.probabilities.size(), size);
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
      if (!(nodes.probabilities[i] >= 0)) return refuse("a probability is negative, or not a number", i, size);
    return {};
  }
  /// Scaling by a power of two and rounding down: the same everywhere.
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

  Buffer<DraftNode> nodes_;    // as handed in
  Buffer<NodeIndex> order_;    // in which they are proposed
  Buffer<NodeIndex> written_;  // of each, its place in the last draft
  DraftKind kind_ = DraftKind::ordered;
  std::span<const float> distributions_;
  std::size_t vocabulary_ = 0;
};
static_assert(DistributionStrategy<ExternalDrafter>);

}  // namespace reprise
