// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The rows of a pass: how many it may have, which nodes of a draft they verify, and whether a path that an
/// engine walked itself is one of theirs. The answers of control are clamped to the clauses of its contract
/// (core/control.hpp), because control is never trusted, like strategies.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/control.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/loop/detail/sequence.hpp"
#include "reprise/loop/round.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// True if pad rows may fill a pass up to an allowed width.
[[nodiscard]] inline bool pads(const Capabilities& can) noexcept {
  return can.pad_token && !can.allowed_widths.empty();
}
/// True if the next pass must run the accepted tokens again after a rejection.
[[nodiscard]] inline bool replays(const Capabilities& can) noexcept { return can.rollback == Rollback::snapshot; }

/// Returns the maximum number of paths of a draft. It is above 1 only if the caller's limits, the engine and `shape`
/// all allow a tree. `shape` is the argument of Session::propose().
[[nodiscard]] inline std::size_t max_leaves(const Limits& limits, const Capabilities& can, DraftShape shape) noexcept {
  if (shape == DraftShape::chain || limits.draft.shape == DraftShape::chain) return 1;
  return std::max<std::size_t>(1, std::min(limits.draft.max_leaves, can.max_leaves));
}

/// Returns the limits that control gets for a pass with at most `rows` drafted rows.
[[nodiscard]] inline PassLimits pass_limits(const Sequence& sequence, std::size_t rows, std::size_t asked) noexcept {
  const Capabilities& can = sequence.capabilities();
  const PassShape plain{1, sequence.pending().size(), sequence.context().size()};
  return {plain, rows, can.allowed_widths.values(), pads(can), replays(can), asked};
}

/// Returns the maximum number of rows of a pass, pending rows included.
[[nodiscard]] inline std::size_t most_rows(const Limits& limits, const Capabilities& can) noexcept {
  return std::min(limits.max_rows, can.max_rows);
}

/// Adds what ends the generation by `limits`. `output`: the tokens since it began.
inline void add_stops(DraftBudget::Stops& stops, const Limits& limits, TokenSpan output) noexcept {
  if (!limits.eos.empty()) stops.eos = limits.eos;
  if (!limits.more_eos.empty()) stops.more_eos = limits.more_eos;
  if (!limits.stop_ids.empty()) stops.ids = limits.stop_ids;
  if (!limits.stop_sequences.empty()) stops.sequences = limits.stop_sequences;
  stops.output = output;
}

/// Enforces K2: returns `budget`, narrowed to `asked`.
inline DraftBudget clamp_to_contract(DraftBudget budget, const DraftBudget& asked) noexcept {
  budget.max_nodes = std::min(budget.max_nodes, asked.max_nodes);
  budget.max_depth = std::min(budget.max_depth, asked.max_depth);
  budget.max_leaves = std::clamp<std::size_t>(budget.max_leaves, 1, std::max<std::size_t>(asked.max_leaves, 1));
  if (asked.shape == DraftShape::chain) budget.shape = DraftShape::chain;
  budget.min_path_probability = std::max(budget.min_path_probability, asked.min_path_probability);
  budget.stops = asked.stops;
  budget.vocabulary = std::min(budget.vocabulary, asked.vocabulary);
  return budget;
}

/// Enforces K3: limits `choice` to the sendable nodes, to room.nodes and to an allowed width. A width that is not
/// allowed is lowered to the largest allowed width below it. If there is no such width, nothing is drafted.
inline DraftChoice clamp_to_contract(DraftChoice choice, std::size_t sendable, const PassLimits& room) noexcept {
  choice.nodes = std::min({choice.nodes, sendable, room.nodes});
  choice.padding = room.padded ? std::min(choice.padding, room.nodes - choice.nodes) : 0;
  const std::size_t rows = widest(room, choice.nodes + choice.padding);
  if (rows < choice.nodes) {
    choice.nodes = rows;
    choice.cut = Cut::width;
  }
  choice.padding = rows - choice.nodes;
  if (static_cast<std::size_t>(choice.cut) >= cut_count) choice.cut = Cut::none;
  return choice;
}

/// The verdict of a grammar, or of another rule about the next token, on a drafted node.
enum class Constraint : std::uint8_t {
  leaf,     ///< allowed, and no node follows it except auxiliary ones
  inner,    ///< allowed, and at least one node that is not auxiliary follows it
  refused,  ///< neither this node nor its descendants may be sent
};

/// Checks a draft against a rule and writes one verdict for each node to `constraints`. `allowed(path)` returns how
/// many leading tokens of `path`, which begins after the anchor, may follow the committed tokens. It is called at most
/// once for each path, not for each token: advancing a grammar engine is cheap, rolling it back is expensive. Auxiliary
/// nodes are not checked, because they are never committed.
///
/// Requires room for draft.size() tokens in `path`, a scratch buffer. Cost: one walk to the anchor and at most one call
/// of `allowed` for each leaf. Exceptions from `allowed` pass through.
template <class Allowed>
void constrain(DraftView draft, Allowed&& allowed, std::span<Constraint> constraints, std::span<Token> path) {
  const auto at = [](NodeIndex node) { return static_cast<std::size_t>(node); };
  const auto precedes = [](NodeIndex parent, std::size_t node) {
    return parent >= 0 && static_cast<std::size_t>(parent) < node;
  };
  for (std::size_t i = 0; i < draft.size(); ++i) {
    constraints[i] = Constraint::leaf;
    if (precedes(draft[i].parent, i) && !draft[i].auxiliary) constraints[at(draft[i].parent)] = Constraint::inner;
  }
  for (std::size_t leaf = 0; leaf < draft.size(); ++leaf) {
    if (draft[leaf].auxiliary || constraints[leaf] != Constraint::leaf) continue;
    std::size_t depth = 0;
    std::size_t node = leaf;
    bool reachable = true;  // malformed nodes and descendants of refused or auxiliary nodes are never sent
    for (;;) {
      reachable = reachable && constraints[node] != Constraint::refused && !draft[node].auxiliary;
      path[path.size() - ++depth] = draft[node].token;
      if (!precedes(draft[node].parent, node)) break;
      node = at(draft[node].parent);
    }
    if (!reachable || draft[node].parent != anchor_parent) continue;
    const std::size_t most = allowed(TokenSpan(path.last(depth)));
    for (node = leaf; depth > most; --depth) {
      constraints[node] = Constraint::refused;
      node = at(draft[node].parent);
    }
  }
}

/// The rows of a draft in a pass, in order: three output arrays of equal size.
struct DraftRows {
  std::span<NodeIndex> nodes;       ///< the index of the row's node in the draft
  std::span<NodeIndex> parents;     ///< the row that this row follows, or anchor_parent
  std::span<std::uint32_t> depths;  ///< distance from the anchor in tokens, from 1
};

/// The result of select_nodes().
struct SelectedNodes {
  std::size_t nodes = 0;   ///< rows written; every prefix of them is a valid draft
  bool too_deep = false;   ///< a node was left out because it is too deep
  bool refused = false;    ///< a node was left out because a constraint refused it
  bool auxiliary = false;  ///< at least one written node is auxiliary
};

/// Writes to `rows` the nodes of `draft` that the pass can verify, in draft order. Returns their number and why nodes
/// were left out. A node is left out if it is deeper than `max_depth`, if `constraints` refuse it, or if its parent was
/// left out. Nodes that do not fit into `rows` are left out too. `constraints` has one element per node; if it is
/// empty, no node is refused. Form and budget are not checked, because Draft::push() enforces them. Cost: linear; up to
/// quadratic for a tree if nodes are left out.
inline SelectedNodes select_nodes(DraftView draft, std::size_t max_depth, const DraftRows& rows,
                                  std::span<const Constraint> constraints = {}) noexcept {
  SelectedNodes found;
  for (std::size_t i = 0; i < draft.size() && found.nodes < rows.nodes.size(); ++i) {
    const DraftNode& node = draft[i];
    // The parent's row is its index minus the number of earlier nodes that were left out.
    auto parent = std::min(node.parent, static_cast<NodeIndex>(found.nodes) - 1);
    while (parent != anchor_parent && rows.nodes[static_cast<std::size_t>(parent)] > node.parent) --parent;
    if (node.parent != (parent == anchor_parent ? anchor_parent : rows.nodes[static_cast<std::size_t>(parent)]))
      continue;
    if (!constraints.empty() && constraints[i] == Constraint::refused) {
      found.refused = true;
      continue;
    }
    const std::uint32_t depth = parent == anchor_parent ? 1 : rows.depths[static_cast<std::size_t>(parent)] + 1;
    if (depth > max_depth) {
      found.too_deep = true;
      continue;
    }
    found.auxiliary = found.auxiliary || node.auxiliary;
    rows.nodes[found.nodes] = static_cast<NodeIndex>(i);
    rows.parents[found.nodes] = parent;
    rows.depths[found.nodes] = depth;
    ++found.nodes;
  }
  return found;
}

/// True if `accepted` is a path of the pass. The path must begin at the anchor's row. Each further row must follow the
/// previous row and hold the token that was picked after the previous row.
///
/// The path may pass through an auxiliary row, because the engine does not know which rows are auxiliary. In that case,
/// walk() ends before that row, or takes a sibling row with the same token.
[[nodiscard]] inline bool is_path(const Pass& pass, const Accepted& accepted) noexcept {
  if (accepted.rows.empty() || accepted.rows.size() != accepted.tokens.size()) return false;
  if (accepted.rows[0] != pass.pending - 1) return false;
  for (std::size_t i = 1; i < accepted.rows.size(); ++i) {
    const std::size_t row = accepted.rows[i];
    if (row < pass.pending || row >= pass.batch.size() || pass.batch[row] != accepted.tokens[i - 1]) return false;
    // Drafted rows are counted from the first one after the anchor.
    const auto before = static_cast<NodeIndex>(accepted.rows[i - 1]) - static_cast<NodeIndex>(pass.pending);
    if (pass.parents[row - pass.pending] != before) return false;
  }
  return true;
}

/// The picks along such a path, in reading order. Each access returns the next pick; the index is ignored.
struct PathPicks {
  TokenSpan tokens;
  std::size_t read = 0;
  Token operator[](std::size_t) noexcept { return tokens[read++]; }
};

}}}  // namespace reprise::detail
