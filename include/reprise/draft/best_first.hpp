// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "reprise/core/draft.hpp"
#include "reprise/draft/frontier.hpp"

namespace reprise::detail {

/// Writes `draft` best first: the most probable item that waits in `frontier` is always written next, so every prefix
/// of the draft is the best smaller draft. A chain keeps only the best child of each node.
///
/// An Item has `path`, its path probability, which is at most its parent's; `depth`, 1 after the anchor; and `node()`,
/// its DraftNode. `written[i]` becomes the item of node i. Returns the number of nodes.
///
/// expand(parent) pushes the items that may follow `parent` to the frontier: first those after the anchor, then those
/// after a node as soon as it is written. It may skip an item at or below `frontier.bar()`. It returns nothing, or
/// false to say that it cannot expand any further; then the waiting items are written and no more are asked for.
///
/// The draft enforces the budget. Two limits are looked at here too, because they save the work of expand(): nothing
/// is expanded when the draft is full, nor at the greatest depth. The latter also keeps items that cannot be
/// written from taking the place of others in the frontier.
///
/// Precondition: `draft` is empty and ordered.
template <class Item, std::size_t Most, class Expand>
std::size_t grow_best_first(Frontier<Item, Most>& frontier, std::array<Item, Most>& written, Draft& draft,
                            Expand&& expand) noexcept(noexcept(expand(anchor_parent))) {
  const std::size_t most = std::min(draft.budget().max_nodes, Most);
  const std::size_t max_depth = draft.budget().max_depth;
  const bool chain = draft.chain();
  if (most == 0 || max_depth == 0) return 0;
  bool able = true;
  const auto expand_after = [&](NodeIndex parent) {
    if constexpr (std::is_void_v<decltype(expand(parent))>)
      expand(parent);
    else
      able = expand(parent);
  };

  frontier.reset(chain ? 1 : most);
  expand_after(anchor_parent);
  std::size_t size = 0;
  while (!frontier.empty()) {
    const Item& item = written[size] = frontier.pop();
    if (!draft.push(item.node())) continue;
    if (++size == most) break;
    if (chain)
      frontier.reset(1);
    else
      frontier.want_one_less();
    if (able && item.depth < max_depth) expand_after(static_cast<NodeIndex>(size - 1));
  }
  return size;
}

}  // namespace reprise::detail
