// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "reprise/core/buffer.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// Index of a node in its draft; `anchor_parent` stands for the anchor, the last committed token.
using NodeIndex = std::int32_t;
inline constexpr NodeIndex anchor_parent = -1;

/// ordered: nodes come in non-increasing path probability, so every prefix is the best smaller draft.
/// sampled: nodes keep the order in which they were drawn from a distribution of the drafter's own; a node's
/// stated probability was fixed before its token was drawn, or cutting on it would bias rejection sampling. Where it
/// ends may depend on earlier tokens only, as well.
enum class DraftKind : std::uint8_t { ordered, sampled };

/// The form of a draft. A chain has at most one child per node.
enum class DraftShape : std::uint8_t { chain, tree };

/// Where a drafted token came from, for statistics and calibration.
enum class DraftSource : std::uint8_t {
  unknown,
  context,
  history,
  predicted_output,
  model,
  lookahead,
  recycled,
  external,
  jump_forward,
  padding  ///< no proposal: fills the rows of a pass up to an allowed width, see Capabilities::pad_token
};
inline constexpr std::size_t draft_source_count = 10;

constexpr std::string_view to_string(DraftSource source) noexcept {
  constexpr std::string_view names[draft_source_count] = {"unknown",      "context",   "history",  "predicted_output",
                                                          "model",        "lookahead", "recycled", "external",
                                                          "jump_forward", "padding"};
  return names[static_cast<std::size_t>(source)];
}

/// One proposed token.
struct DraftNode {
  Token token = 0;
  NodeIndex parent = anchor_parent;                   ///< comes before this node, or is the anchor
  Probability path_probability = Probability::one();  ///< that the target picks this whole path
  std::uint16_t match_length = 0;                     ///< tokens of context that backed it, 0: not a lookup
  DraftSource source = DraftSource::unknown;
  bool auxiliary = false;  ///< verified for what it reveals, never committed
};

/// How much a strategy may propose in a round. Draft::push() enforces it.
struct DraftBudget {
  std::size_t max_nodes = 32;                              ///< nodes in all
  std::size_t max_depth = unlimited;                       ///< tokens on one path
  std::size_t max_leaves = unlimited;                      ///< paths: nodes without a child
  DraftShape shape = DraftShape::tree;                     ///< chain: at most one path. Engines that check chains only
                                                           ///< (Capabilities::max_leaves is 1) never get a tree
  Probability min_path_probability = Probability::zero();  ///< less likely nodes are refused
};

/// A draft to read: one flat array of nodes, owned by whoever handed the view out.
class DraftView {
 public:
  DraftView() noexcept = default;
  DraftView(std::span<const DraftNode> nodes, DraftKind kind) noexcept : nodes_(nodes), kind_(kind) {}

  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
  [[nodiscard]] DraftKind kind() const noexcept { return kind_; }
  [[nodiscard]] const DraftNode& operator[](std::size_t i) const noexcept { return nodes_[i]; }
  [[nodiscard]] auto begin() const noexcept { return nodes_.begin(); }
  [[nodiscard]] auto end() const noexcept { return nodes_.end(); }
  /// The first `nodes` nodes: of an ordered draft, the best draft of that size.
  [[nodiscard]] DraftView prefix(std::size_t nodes) const noexcept {
    return {nodes_.first(std::min(nodes, nodes_.size())), kind_};
  }

 private:
  std::span<const DraftNode> nodes_;
  DraftKind kind_ = DraftKind::ordered;
};

/// The claim of node i, given that its parent is right: its path probability over its parent's; one if it is no less
/// probable than its parent, also where both are impossible.
[[nodiscard]] inline Probability conditional_probability(DraftView draft, std::size_t i) noexcept {
  const std::uint64_t path = draft[i].path_probability.raw();
  const NodeIndex parent = draft[i].parent;
  const std::uint64_t before =
      parent == anchor_parent ? Probability::scale : draft[static_cast<std::size_t>(parent)].path_probability.raw();
  // Spares chains of certainty the division.
  if (path >= before) return Probability::one();
  return Probability::from_raw(static_cast<std::uint32_t>(path * Probability::scale / before));
}

/// A draft to write, over memory that the caller owns. It enforces its own form and budget, so a strategy cannot hand
/// over a malformed draft. The capacity is fixed: writing never allocates.
///
/// push() refuses a node
///
///  * where the draft is full (DraftBudget::max_nodes, or the storage),
///  * whose parent is not the anchor and not an earlier node,
///  * that repeats an earlier child of its parent with the same token (auxiliary nodes repeat nothing),
///  * that is auxiliary in a chain, or follows an auxiliary node without being auxiliary itself,
///  * deeper than DraftBudget::max_depth, or on a path beyond DraftBudget::max_leaves,
///  * less likely than DraftBudget::min_path_probability (left_out() is set),
///  * in an ordered draft, more probable than an earlier node; equal is fine.
///
/// A sampled draft is a chain. It is not checked for order and ends at its first refusal: what comes later was drawn
/// knowing of the refused token.
///
/// Cost of push: constant for a chain, for a tree sometimes a look at all nodes after the parent; with a limit on the
/// depth, a walk to the anchor.
class Draft {
 public:
  Draft(std::span<DraftNode> storage, const DraftBudget& budget) noexcept : storage_(storage), budget_(budget) {
    budget_.max_nodes = std::min(budget.max_nodes, storage.size());
    if (budget_.shape == DraftShape::chain) budget_.max_leaves = std::min<std::size_t>(budget_.max_leaves, 1);
    if (budget_.max_leaves <= 1) budget_.shape = DraftShape::chain;
  }
  Draft(const Draft&) = delete;             // or a strategy could write over accepted nodes by way of an empty copy
  Draft& operator=(const Draft&) = delete;  // or a strategy could hand back a draft over memory of its own
  ~Draft() = default;

  /// The limits that push() enforces: max_nodes is at most the storage, max_leaves at most 1 where a chain is asked
  /// for.
  [[nodiscard]] const DraftBudget& budget() const noexcept { return budget_; }

  /// Empty again, for a draft of this kind.
  void clear(DraftKind kind = DraftKind::ordered) noexcept {
    size_ = leaves_ = 0;
    parents_ = children_ = 0;
    kind_ = kind;
    ended_ = false;
    left_out_ = false;
    held_back_ = false;
    malformed_ = false;
  }
  /// Appends a node. False, and nothing written, when the node is refused.
  bool push(const DraftNode& node) noexcept {
    if (!admits(node)) {
      ended_ = kind_ == DraftKind::sampled;
      return false;
    }
    append(node);
    return true;
  }
  /// Appends `node` as the child of the last node (of the anchor when the draft is empty).
  bool extend(DraftNode node) noexcept {
    node.parent = size_ == 0 ? anchor_parent : static_cast<NodeIndex>(size_ - 1);
    return push(node);
  }
  /// Keeps the first `nodes` nodes, and charges the budget for these alone. A sampled draft that has ended stays ended.
  /// Cost: a look at each node.
  void truncate(std::size_t nodes) noexcept {
    if (nodes >= size_) return;
    size_ = leaves_ = 0;
    parents_ = children_ = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      leaves_ += opens_path(storage_[i]) ? 1 : 0;
      append(storage_[i]);
    }
  }
  /// Says that something was found that is less likely than the budget asks for: an empty draft then counts as
  /// Cut::unlikely, not as Cut::no_match.
  void leave_out() noexcept { left_out_ = true; }
  [[nodiscard]] bool left_out() const noexcept { return left_out_; }
  /// Says that the strategy has stopped drafting for now: an empty draft then counts as Cut::throttled.
  void hold_back() noexcept { held_back_ = true; }
  [[nodiscard]] bool held_back() const noexcept { return held_back_; }
  /// Says that a node was refused for its form: for strategies that hand on the draft of another one.
  void mark_malformed() noexcept { malformed_ = true; }
  /// True after a refused node whose form was wrong: its parent, order or repetition, or auxiliary where only a chain
  /// is asked for. Counts as Cut::shape, so that the statistics show a faulty strategy.
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// True when no further node fits, whatever it is.
  [[nodiscard]] bool full() const noexcept { return size_ == budget_.max_nodes; }
  /// True where only one path is possible.
  [[nodiscard]] bool chain() const noexcept { return max_leaves() <= 1; }
  /// Tokens on the path to `node`, itself included; 0 for the anchor.
  [[nodiscard]] std::size_t depth(NodeIndex node) const noexcept {
    std::size_t depth = 0;
    for (; node != anchor_parent; node = storage_[static_cast<std::size_t>(node)].parent) ++depth;
    return depth;
  }
  [[nodiscard]] const DraftNode& operator[](std::size_t i) const noexcept { return storage_[i]; }
  [[nodiscard]] DraftView view() const noexcept { return {storage_.first(size_), kind_}; }

 private:
  static constexpr NodeIndex bits = 64;

  [[nodiscard]] std::size_t max_leaves() const noexcept {
    return kind_ == DraftKind::sampled ? std::min<std::size_t>(budget_.max_leaves, 1) : budget_.max_leaves;
  }
  /// Writes a node and notes it for the questions below, which most nodes then spare the search.
  void append(const DraftNode& node) noexcept {
    if (node.parent >= 0 && node.parent < bits) parents_ |= std::uint64_t{1} << node.parent;
    if (!node.auxiliary) children_ |= child_bit(node);
    storage_[size_++] = node;
  }
  /// True if a path that ends with this node needs a leaf of its own: its parent has a child already, or is the anchor.
  [[nodiscard]] bool opens_path(const DraftNode& node) const noexcept {
    if (node.parent == anchor_parent) return true;
    if (node.parent < bits) return (parents_ >> node.parent & 1) != 0;
    return any_after(node.parent, [&](const DraftNode& other) { return other.parent == node.parent; });
  }
  /// True if its parent has a child with the same token.
  [[nodiscard]] bool repeats(const DraftNode& node) const noexcept {
    if (node.auxiliary || (children_ & child_bit(node)) == 0) return false;
    return any_after(node.parent, [&](const DraftNode& other) {
      return other.parent == node.parent && other.token == node.token && !other.auxiliary;
    });
  }
  template <class Predicate>
  [[nodiscard]] bool any_after(NodeIndex node, Predicate predicate) const noexcept {
    for (std::size_t i = static_cast<std::size_t>(node) + 1; i < size_; ++i)
      if (predicate(storage_[i])) return true;
    return false;
  }
  static constexpr std::uint64_t child_bit(const DraftNode& node) noexcept {
    const std::uint32_t hash =
        static_cast<std::uint32_t>(node.token) * 0x9e3779b1U + static_cast<std::uint32_t>(node.parent) * 0x85ebca77U;
    return std::uint64_t{1} << (hash >> 26);
  }
  /// Form and order, as far as a look at the node and its parent tells.
  [[nodiscard]] bool well_formed(const DraftNode& node) const noexcept {
    if (node.parent < anchor_parent || node.parent >= static_cast<NodeIndex>(size_)) return false;
    if (node.auxiliary) {
      if (chain()) return false;
    } else if (node.parent != anchor_parent && storage_[static_cast<std::size_t>(node.parent)].auxiliary) {
      return false;
    }
    return kind_ == DraftKind::sampled || size_ == 0 || node.path_probability <= storage_[size_ - 1].path_probability;
  }
  /// Counts the node's path if the node may be written.
  [[nodiscard]] bool admits(const DraftNode& node) noexcept {
    if (full() || ended_) return false;
    if (!well_formed(node)) return malformed_ = true, false;
    if (node.path_probability < budget_.min_path_probability) {
      left_out_ = true;
      return false;
    }
    const bool new_leaf = opens_path(node);
    // The first child of a node repeats none.
    if (new_leaf && repeats(node)) return malformed_ = true, false;
    if (new_leaf && leaves_ >= max_leaves()) return false;
    if (budget_.max_depth < budget_.max_nodes && depth(node.parent) >= budget_.max_depth) return false;
    leaves_ += new_leaf ? 1 : 0;
    return true;
  }

  std::span<DraftNode> storage_;
  DraftBudget budget_;
  std::size_t size_ = 0;
  std::size_t leaves_ = 0;      // paths that the nodes so far need
  std::uint64_t parents_ = 0;   // bit i: node i has a child
  std::uint64_t children_ = 0;  // the child_bit() of every node that is not auxiliary
  DraftKind kind_ = DraftKind::ordered;
  bool ended_ = false;  // a sampled draft in which a node was refused
  bool left_out_ = false;
  bool held_back_ = false;
  bool malformed_ = false;
};

}  // namespace reprise
