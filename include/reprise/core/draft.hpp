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

namespace reprise {

/// Index of a node in its draft; `anchor_parent` stands for the anchor, the last committed token.
using NodeIndex = std::int32_t;
inline constexpr NodeIndex anchor_parent = -1;

/// ordered: nodes come in non-increasing path probability, so every prefix is the best smaller draft.
/// sampled: nodes keep the order in which they were drawn from a distribution of the drafter's own; a node's
/// stated probability was fixed before its token was drawn, or cutting on it would bias rejection sampling. Where it
/// ends may depend on earlier tokens only, as well.
enum class DraftKind : std::uint8_t { ordered, sampled };

/// What a draft may look like. A chain has at most one child per node.
enum class DraftShape : std::uint8_t { chain, tree };

/// Where a drafted token came from, for statistics and calibration.
enum class DraftSource : std::uint8_t {
  unknown,
  context,
  memory,
  reference,
  model,
  lookahead,
  recycled,
  external,
  forced,
  padding  ///< no proposal: fills the rows of a pass up to an allowed width, see Capabilities::pad_token
};
inline constexpr std::size_t draft_source_count = 10;

constexpr std::string_view name(DraftSource source) noexcept {
  constexpr std::string_view names[draft_source_count] = {"unknown",   "context",  "memory",   "reference", "model",
                                                          "lookahead", "recycled", "external", "forced",    "padding"};
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

/// How much a strategy may propose. A strategy that writes more is cut, not trusted.
struct DraftBudget {
  std::size_t max_nodes = 32;           ///< nodes in all
  std::size_t max_depth = unlimited;    ///< tokens on one path
  std::size_t max_leaves = unlimited;   ///< paths: nodes without a child
  DraftShape shape = DraftShape::tree;  ///< a ceiling: tree means that it may be one; engines that check chains only
                                        ///< (Capabilities::max_leaves is 1) are never sent more than a chain
  Probability min_path_probability = Probability::zero();  ///< less likely nodes need not be proposed; likewise a hint
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

/// What node i claims given that its parent is right: its path probability over its parent's; one if it is no less
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

/// A draft to write, over memory that the caller owns. Its capacity is fixed, so writing never allocates.
class Draft {
 public:
  explicit Draft(std::span<DraftNode> storage) noexcept : storage_(storage) {}
  Draft(const Draft&) = default;
  Draft& operator=(const Draft&) = delete;  // or a strategy could hand back a draft over memory of its own
  ~Draft() = default;

  void clear(DraftKind kind = DraftKind::ordered) noexcept {
    size_ = 0;
    kind_ = kind;
    left_out_ = false;
    held_back_ = false;
  }
  /// Appends a node. False, and nothing written, when the draft is full.
  bool push(const DraftNode& node) noexcept {
    if (size_ == storage_.size()) return false;
    storage_[size_++] = node;
    return true;
  }
  /// Appends `node` as the child of the last node (of the anchor when the draft is empty).
  bool extend(DraftNode node) noexcept {
    node.parent = size_ == 0 ? anchor_parent : static_cast<NodeIndex>(size_ - 1);
    return push(node);
  }
  void truncate(std::size_t nodes) noexcept { size_ = std::min(size_, nodes); }
  /// Says that something was found that is less likely than the budget asks for: an empty draft then counts as
  /// Cut::unlikely, not as Cut::no_match.
  void leave_out() noexcept { left_out_ = true; }
  [[nodiscard]] bool left_out() const noexcept { return left_out_; }
  /// Says that the strategy has stopped drafting for now: an empty draft then counts as Cut::gated.
  void hold_back() noexcept { held_back_ = true; }
  [[nodiscard]] bool held_back() const noexcept { return held_back_; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return storage_.size(); }
  [[nodiscard]] const DraftNode& operator[](std::size_t i) const noexcept { return storage_[i]; }
  [[nodiscard]] DraftView view() const noexcept { return {storage_.first(size_), kind_}; }

 private:
  std::span<DraftNode> storage_;
  std::size_t size_ = 0;
  DraftKind kind_ = DraftKind::ordered;
  bool left_out_ = false;
  bool held_back_ = false;
};

}  // namespace reprise
