// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Best-first growth of a draft tree, for strategies that know the probability of each path.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reprise/core/contract.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/probability.hpp"

namespace reprise::inline v0 {

/// The most probable items that are still wanted, best first; equal ones in the order in which they came. A sorted
/// array of keys: with a few dozen of them, moving some costs less than a heap, and the last one tells what is not
/// worth computing any more.
///
/// Item is a small value with a member `path`, its probability. At most `Most` are wanted.
template <class Item, std::size_t Most>
class Frontier {
 public:
  /// Empty, for at most `wanted` items.
  void reset(std::size_t wanted) noexcept {
    REPRISE_EXPECTS(wanted <= Most);
    first_ = size_ = freed_ = fresh_ = 0;
    wanted_ = wanted;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Nothing at or below this probability is taken.
  [[nodiscard]] Probability bar() const noexcept {
    if (size_ < wanted_) return Probability::zero();
    return size_ == 0 ? Probability::one() : keys_[first_ + size_ - 1].path;
  }
  /// Takes the item unless enough better ones are there.
  void push(const Item& item) noexcept {
    if (size_ == wanted_) {
      if (item.path <= bar()) return;
      drop_last();
    }
    const Slot slot = freed_ > 0 ? free_[--freed_] : fresh_++;
    items_[slot] = item;
    if (first_ + size_ == keys_.size()) make_room();
    std::size_t at = first_ + size_++;
    for (; at > first_ && keys_[at - 1].path < item.path; --at) keys_[at] = keys_[at - 1];
    keys_[at] = {item.path, slot};
  }
  /// The best item; valid until the next push().
  const Item& pop() noexcept {
    REPRISE_EXPECTS(size_ > 0);
    --size_;
    return items_[free_[freed_++] = keys_[first_++].slot];
  }
  /// One of the items that were popped was used.
  void want_one_less() noexcept {
    REPRISE_EXPECTS(wanted_ > 0);
    if (size_ == wanted_--) drop_last();
  }

 private:
  using Slot = std::uint16_t;
  struct Key {
    Probability path;
    Slot slot = 0;
  };

  void drop_last() noexcept { free_[freed_++] = keys_[first_ + --size_].slot; }
  void make_room() noexcept {
    std::copy_n(keys_.begin() + static_cast<std::ptrdiff_t>(first_), size_, keys_.begin());
    first_ = 0;
  }

  std::array<Key, 2 * Most> keys_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t wanted_ = 0;
  std::array<Item, Most> items_;
  std::array<Slot, Most> free_;  // slots of items that are not there any more
  std::size_t freed_ = 0;
  Slot fresh_ = 0;  // slots from here on were never used
};

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

}  // namespace reprise
