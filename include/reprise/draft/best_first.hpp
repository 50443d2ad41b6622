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

/// A queue of the most probable items, best first; equal items keep their order of arrival. It is a sorted array of
/// keys: for a few dozen items, moving some of them costs less than a heap. The last key bounds the items that are
/// worth computing, see bar().
///
/// Item is a small value with a member `path`, its probability. The queue keeps as many items as are still wanted, at
/// most `Most`.
template <class Item, std::size_t Most>
class Frontier {
 public:
  /// Empties the queue; from now on it keeps at most `wanted` items.
  void reset(std::size_t wanted) noexcept {
    REPRISE_EXPECTS(wanted <= Most);
    first_ = size_ = freed_ = fresh_ = 0;
    wanted_ = wanted;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Items at or below this probability are not taken.
  [[nodiscard]] Probability bar() const noexcept {
    if (size_ < wanted_) return Probability::zero();
    return size_ == 0 ? Probability::one() : keys_[first_ + size_ - 1].path;
  }
  /// Takes the item unless enough items that are at least as probable are waiting.
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
  /// Removes and returns the best item; valid until the next push().
  const Item& pop() noexcept {
    REPRISE_EXPECTS(size_ > 0);
    --size_;
    return items_[free_[freed_++] = keys_[first_++].slot];
  }
  /// Lowers the number of wanted items by one. Call it after a popped item was used.
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
  std::array<Slot, Most> free_;  // slots of items that have left
  std::size_t freed_ = 0;
  Slot fresh_ = 0;  // slots from here on were never used
};

/// Grows `draft` best first: the most probable item in `frontier` is always written next. Every prefix of the draft is
/// therefore the best smaller draft. A chain keeps only the best child of each node. Returns the number of nodes;
/// `written[i]` becomes the item of node i.
///
/// An Item has `path`, its path probability, which is at most its parent's. It also has `depth` (1 after the anchor)
/// and `node()`, its DraftNode.
///
/// expand(parent) pushes the items that may follow `parent` to the frontier. It is called for the anchor first, then
/// for each node as soon as that is written. It may skip items at or below `frontier.bar()`. It returns nothing, or
/// false if it cannot expand any further. After false the waiting items are still written, but expand() is not called
/// again.
///
/// The draft enforces the budget. Two limits are also checked here, because they save calls of expand(): a full draft
/// and a node at the greatest depth are not expanded. At the greatest depth, this also keeps the frontier free of items
/// that the draft would refuse.
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
