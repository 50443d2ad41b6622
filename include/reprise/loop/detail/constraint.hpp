// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

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

}  // namespace reprise
