// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Finds the nodes of a draft that a pass can verify.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0::detail {

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
      if (depth > 1) node = at(draft[node].parent);
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

}  // namespace reprise::detail
