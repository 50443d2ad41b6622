// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// What a grammar, or another rule of what may follow what, makes of a drafted node.
enum class Constraint : std::uint8_t {
  leaf,     ///< allowed, and no other node follows it
  inner,    ///< allowed
  refused,  ///< it, and what follows it, may not be sent
};

/// Holds a draft against a rule: `allowed(path)` answers how many tokens of a run that begins behind the anchor may
/// follow the committed ones; it is called once for each path, not for each token, because grammar engines advance
/// cheaply and come back at a price. Auxiliary nodes are no text, and are not asked about.
///
/// `constraints`: one for each node, to write. `path`: room for as many tokens as there are nodes.
/// Cost: a call and a walk for each leaf. Throws what `allowed` throws.
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
    bool reachable = true;  // malformed nodes, and those behind a refused or auxiliary one, are not sent anyway
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
