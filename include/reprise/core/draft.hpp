// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// The index of a node in its draft. `anchor_parent` is the parent of nodes that directly follow the anchor, which is
/// the last committed token.
using NodeIndex = std::int32_t;
inline constexpr NodeIndex anchor_parent = -1;

/// The order of the nodes of a draft.
///
///  * ordered: nodes come in order of non-increasing path probability, so every prefix is the best smaller draft.
///  * sampled: nodes keep the order in which they were drawn from the drafter's own distribution. Each stated
///    probability is fixed before its token is drawn; otherwise a cut by probability would bias rejection sampling. For
///    the same reason, only earlier tokens may decide where the draft ends.
enum class DraftKind : std::uint8_t { ordered, sampled };

/// The form of a draft. In a chain, each node has at most one child.
enum class DraftShape : std::uint8_t { chain, tree };

/// The origin of a drafted token, for statistics and calibration.
enum class DraftSource : std::uint8_t {
  unknown,
  context,
  store,  ///< a datastore: past sequences, a corpus, or a table
  model,
  target,  ///< the target's own picks or rankings in earlier rows
  external,
  jump_forward,
  padding  ///< not a proposal: fills the pass up to an allowed width, see Capabilities::pad_token
};
inline constexpr std::size_t draft_source_count = 8;

constexpr std::string_view to_string(DraftSource source) noexcept {
  constexpr std::string_view names[draft_source_count] = {"unknown", "context",  "store",        "model",
                                                          "target",  "external", "jump_forward", "padding"};
  return names[static_cast<std::size_t>(source)];
}

/// One proposed token.
struct DraftNode {
  Token token = 0;
  NodeIndex parent = anchor_parent;                   ///< an earlier node, or the anchor
  Probability path_probability = Probability::one();  ///< probability that the target picks this whole path
  std::uint16_t match_length = 0;                     ///< number of context tokens that matched; 0: not from a lookup
  DraftSource source = DraftSource::unknown;
  bool auxiliary = false;  ///< verified only to learn the target's pick after it; never accepted
};

/// The largest draft, in nodes: every lookup drafter, control and interface supports drafts of this size.
inline constexpr std::size_t most_draft_nodes = 64;
/// The upper bound on the nodes of a draft if no setting gives one.
inline constexpr std::size_t usual_draft_nodes = 32;

/// The limits on a strategy's draft in one round. Draft::push() enforces them.
struct DraftBudget {
  /// What ends the generation: nothing is drafted after it. Session replaces the parts that its Limits have.
  struct Stops {
    TokenSpan eos = {};
    TokenSpan more_eos = {};
    TokenSpan ids = {};
    std::span<const std::vector<Token>> sequences = {};  ///< an empty one never matches
    TokenSpan output = {};                               ///< in which a sequence may have begun
  };

  std::size_t max_nodes = usual_draft_nodes;  ///< nodes in total
  std::size_t max_depth = unlimited;          ///< tokens on one path
  std::size_t max_leaves = unlimited;         ///< paths, that is, nodes without a child
  /// chain: at most one path. Engines that verify only chains (Capabilities::max_leaves is 1) never get a tree.
  DraftShape shape = DraftShape::tree;
  Probability min_path_probability = Probability::zero();  ///< push() refuses less likely nodes
  Stops stops = {};
  /// push() refuses tokens from this value on, for any strategy. Negative tokens are always refused.
  std::uint32_t vocabulary = std::uint32_t{1} << 31;
};

/// A read-only draft: a flat array of nodes in memory that the view does not own.
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
  /// Returns the first `nodes` nodes, or all if there are fewer. For an ordered draft, they are the best draft of that
  /// size.
  [[nodiscard]] DraftView prefix(std::size_t nodes) const noexcept {
    return {nodes_.first(std::min(nodes, nodes_.size())), kind_};
  }

 private:
  std::span<const DraftNode> nodes_;
  DraftKind kind_ = DraftKind::ordered;
};

/// Returns the probability that the target picks node i after it has picked the node's parent. This is the node's path
/// probability divided by its parent's. Returns one if node i is at least as probable as its parent, even if both
/// probabilities are zero.
[[nodiscard]] inline Probability conditional_probability(DraftView draft, std::size_t i) noexcept {
  const std::uint64_t path = draft[i].path_probability.raw();
  const NodeIndex parent = draft[i].parent;
  const std::uint64_t before =
      parent == anchor_parent ? Probability::scale : draft[static_cast<std::size_t>(parent)].path_probability.raw();
  // Avoids the division in chains of certain tokens.
  if (path >= before) return Probability::one();
  return Probability::from_raw(static_cast<std::uint32_t>(path * Probability::scale / before));
}

/// A draft that a strategy writes into memory that the caller owns. The class enforces form and budget, so a strategy
/// cannot produce a malformed draft. The capacity is fixed: writing never allocates.
///
/// push() refuses a node if
///
///  * the draft is full (DraftBudget::max_nodes is reached, or the storage is used up),
///  * its token is outside DraftBudget::vocabulary, because engines use such ids for images and padding,
///  * the generation ends with its parent (DraftBudget::stops),
///  * its parent is neither the anchor nor an earlier node,
///  * its parent has an earlier child with the same token (auxiliary nodes are exempt),
///  * it is auxiliary and the draft is a chain, or it is not auxiliary but its parent is,
///  * it is deeper than DraftBudget::max_depth, or starts a path beyond DraftBudget::max_leaves,
///  * it is less likely than DraftBudget::min_path_probability (left_out() then returns true),
///  * the draft is ordered and the node is more probable than an earlier node. Equal probabilities are allowed.
///
/// A sampled draft is a chain and is not checked for order. It ends at the first refused node, because the
/// distributions of later tokens depend on the refused one.
///
/// Cost of push(): constant for a chain. For a tree, push() sometimes scans the nodes after the parent. For either, it
/// also walks to the anchor if max_depth is less than max_nodes, and reads the stop lists if there are any.
class Draft {
 public:
  Draft(std::span<DraftNode> storage, const DraftBudget& budget) noexcept : storage_(storage), budget_(budget) {
    budget_.max_nodes = std::min(budget.max_nodes, storage.size());
    if (budget_.shape == DraftShape::chain) budget_.max_leaves = std::min<std::size_t>(budget_.max_leaves, 1);
    if (budget_.max_leaves <= 1) budget_.shape = DraftShape::chain;
    const DraftBudget::Stops& stops = budget_.stops;
    has_stops_ = !(stops.eos.empty() && stops.more_eos.empty() && stops.ids.empty() && stops.sequences.empty());
  }
  // A strategy could empty a copy and overwrite this draft's nodes through it.
  Draft(const Draft&) = delete;
  // A strategy could assign a draft that is stored in the strategy's own memory.
  Draft& operator=(const Draft&) = delete;
  ~Draft() = default;

  /// Returns the limits that push() enforces. max_nodes is at most the size of the storage; max_leaves is at most 1 if
  /// `shape` is chain. A sampled draft is always a chain, whatever these limits allow.
  [[nodiscard]] const DraftBudget& budget() const noexcept REPRISE_LIFETIMEBOUND { return budget_; }

  /// Empties the draft, resets all flags (left_out(), held_back(), malformed()) and sets the kind.
  void clear(DraftKind kind = DraftKind::ordered) noexcept {
    size_ = leaves_ = 0;
    parents_ = children_ = 0;
    kind_ = kind;
    ended_ = false;
    left_out_ = false;
    held_back_ = false;
    malformed_ = false;
  }
  /// Appends a node and returns true. Returns false and appends nothing if the node is refused.
  bool push(const DraftNode& node) noexcept {
    if (!admits(node)) {
      ended_ = kind_ == DraftKind::sampled;
      return false;
    }
    append(node);
    return true;
  }
  /// Appends `node` as the child of the last node, or of the anchor if the draft is empty. Returns the result of
  /// push().
  bool extend(DraftNode node) noexcept {
    node.parent = size_ == 0 ? anchor_parent : static_cast<NodeIndex>(size_ - 1);
    return push(node);
  }
  /// Keeps the first `nodes` nodes; only these count towards the budget. A sampled draft that has ended stays ended.
  /// Cost: linear in the number of nodes kept; up to quadratic for a tree of more than 64 nodes.
  void truncate(std::size_t nodes) noexcept {
    if (nodes >= size_) return;
    size_ = leaves_ = 0;
    parents_ = children_ = 0;
    for (std::size_t i = 0; i < nodes; ++i) {
      leaves_ += opens_path(storage_[i]) ? 1 : 0;
      append(storage_[i]);
    }
  }
  /// Records that a candidate was less likely than the budget allows. If the draft remains empty, it counts as
  /// Cut::unlikely, not as Cut::no_match.
  void leave_out() noexcept { left_out_ = true; }
  [[nodiscard]] bool left_out() const noexcept { return left_out_; }
  /// Records that the strategy has stopped drafting for now. If the draft remains empty, it counts as Cut::throttled,
  /// unless left_out() or malformed() is true.
  void hold_back() noexcept { held_back_ = true; }
  [[nodiscard]] bool held_back() const noexcept { return held_back_; }
  /// Records that a node was refused for its form. Strategies that forward the draft of another strategy need it.
  void mark_malformed() noexcept { malformed_ = true; }
  /// True if a node was refused for its form: a wrong parent, wrong order, a repetition, or an auxiliary node in a
  /// chain. An ordinary child of an auxiliary node is refused for its form too. Unless another rule shortens such a
  /// draft further, it counts as Cut::shape, so that the statistics expose a faulty strategy.
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// True if the node limit is reached. push() refuses every further node.
  [[nodiscard]] bool full() const noexcept { return size_ == budget_.max_nodes; }
  /// True if at most one path is allowed.
  [[nodiscard]] bool chain() const noexcept { return max_leaves() <= 1; }
  /// Returns the number of tokens on the path to `node`, including `node`. Returns 0 for the anchor.
  [[nodiscard]] std::size_t depth(NodeIndex node) const noexcept {
    std::size_t depth = 0;
    for (; node != anchor_parent; node = storage_[static_cast<std::size_t>(node)].parent) ++depth;
    return depth;
  }
  /// True if the generation ends with `node`, so that push() refuses its children. Cost: linear in the total length of
  /// the stop lists.
  [[nodiscard]] bool ends(NodeIndex node) const noexcept {
    if (!has_stops_) [[likely]]  // a call would cost 3% of a round
      return false;
    return node != anchor_parent && has_stop(node);
  }
  [[nodiscard]] const DraftNode& operator[](std::size_t i) const noexcept { return storage_[i]; }
  [[nodiscard]] DraftView view() const noexcept REPRISE_LIFETIMEBOUND { return {storage_.first(size_), kind_}; }

 private:
  static constexpr NodeIndex bits = 64;

  [[nodiscard]] std::size_t max_leaves() const noexcept {
    return kind_ == DraftKind::sampled ? std::min<std::size_t>(budget_.max_leaves, 1) : budget_.max_leaves;
  }
  /// Appends a node and updates the bit sets, which let opens_path() and repeats() skip the search for most nodes.
  void append(const DraftNode& node) noexcept {
    if (node.parent >= 0 && node.parent < bits) parents_ |= std::uint64_t{1} << node.parent;
    if (!node.auxiliary) children_ |= child_bit(node);
    storage_[size_++] = node;
  }
  /// True if this node starts a new path: its parent is the anchor or already has a child.
  [[nodiscard]] bool opens_path(const DraftNode& node) const noexcept {
    if (node.parent == anchor_parent) return true;
    if (node.parent < bits) return (parents_ >> node.parent & 1) != 0;
    return any_after(node.parent, [&](const DraftNode& other) { return other.parent == node.parent; });
  }
  /// True if the node's parent has a child with the same token. Auxiliary nodes repeat nothing and are not repeated.
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
  /// True if a stop ends at `node`.
  [[nodiscard]] REPRISE_COLD bool has_stop(NodeIndex node) const noexcept {
    const DraftBudget::Stops& stops = budget_.stops;
    const Token token = storage_[static_cast<std::size_t>(node)].token;
    for (const TokenSpan ids : {stops.eos, stops.more_eos, stops.ids})
      if (std::find(ids.begin(), ids.end(), token) != ids.end()) return true;
    return std::any_of(stops.sequences.begin(), stops.sequences.end(),
                       [&](const std::vector<Token>& sequence) { return completes(sequence, node); });
  }
  /// True if the output and the path to `node` end with `sequence`.
  [[nodiscard]] bool completes(std::span<const Token> sequence, NodeIndex node) const noexcept {
    if (sequence.empty()) return false;
    while (node != anchor_parent && !sequence.empty()) {
      const DraftNode& last = storage_[static_cast<std::size_t>(node)];
      if (last.token != sequence.back()) return false;
      sequence = sequence.first(sequence.size() - 1);
      node = last.parent;
    }
    const TokenSpan output = budget_.stops.output;
    return output.size() >= sequence.size() &&
           std::equal(sequence.begin(), sequence.end(), output.end() - static_cast<std::ptrdiff_t>(sequence.size()));
  }
  /// True if the node's parent, its place in the order and its auxiliary flag are valid. Does not look for repetitions.
  [[nodiscard]] bool well_formed(const DraftNode& node) const noexcept {
    if (node.parent < anchor_parent || node.parent >= static_cast<NodeIndex>(size_)) return false;
    if (node.auxiliary) {
      if (chain()) return false;
    } else if (node.parent != anchor_parent && storage_[static_cast<std::size_t>(node.parent)].auxiliary) {
      return false;
    }
    return kind_ == DraftKind::sampled || size_ == 0 || node.path_probability <= storage_[size_ - 1].path_probability;
  }
  /// True if the node may be appended. If so, counts its path if it starts one. Otherwise, sets malformed_ or left_out_
  /// if the node's form or its probability is the reason.
  [[nodiscard]] bool admits(const DraftNode& node) noexcept {
    if (full() || ended_) return false;
    if (!well_formed(node)) return malformed_ = true, false;
    if (!in_vocabulary(node.token, budget_.vocabulary) || ends(node.parent)) return false;
    if (node.path_probability < budget_.min_path_probability) {
      left_out_ = true;
      return false;
    }
    const bool new_leaf = opens_path(node);
    // A node that starts no path is the first child of its parent, so it repeats no sibling.
    if (new_leaf && repeats(node)) return malformed_ = true, false;
    if (new_leaf && leaves_ >= max_leaves()) return false;
    if (budget_.max_depth < budget_.max_nodes && depth(node.parent) >= budget_.max_depth) return false;
    leaves_ += new_leaf ? 1 : 0;
    return true;
  }

  std::span<DraftNode> storage_;
  DraftBudget budget_;
  std::size_t size_ = 0;
  std::size_t leaves_ = 0;      // number of paths so far
  std::uint64_t parents_ = 0;   // bit i: node i has a child
  std::uint64_t children_ = 0;  // the child_bit() of every node that is not auxiliary
  DraftKind kind_ = DraftKind::ordered;
  bool has_stops_ = false;
  bool ended_ = false;  // a node of a sampled draft was refused
  bool left_out_ = false;
  bool held_back_ = false;
  bool malformed_ = false;
};

}}  // namespace reprise
