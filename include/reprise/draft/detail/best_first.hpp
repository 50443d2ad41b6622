// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Best-first growth of a draft tree, for strategies that know the probability of each path.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A queue of the most probable items, best first; equal items keep their order of arrival. It is a sorted array of
/// keys: for a few dozen items, moving keys costs less than a heap. Items at or below bar() need not be computed.
///
/// Item is a small value with a member `path`, its probability. The queue keeps only the items that are still wanted,
/// at most `Most`.
///
/// Use it as a local variable: the storage stays uninitialised, so unused elements cost nothing.
template <class Item, std::size_t Most>
class Frontier {
 public:
  Frontier() noexcept {}  // NOLINT(modernize-use-equals-default): the unions need it

  /// Empties the queue; from now on it keeps at most `wanted` items.
  void reset(std::size_t wanted) noexcept {
    REPRISE_EXPECTS(wanted <= Most);
    first_ = size_ = freed_ = fresh_ = 0;
    wanted_ = wanted;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Returns the lowest probability in a full queue, which a new item must exceed. Returns zero if the queue is not
  /// full, and one if no items are wanted.
  [[nodiscard]] Probability bar() const noexcept {
    if (size_ < wanted_) return Probability::zero();
    return size_ == 0 ? Probability::one() : keys_[first_ + size_ - 1].path;
  }
  /// Adds the item, unless the queue is full of items that are at least as probable. A full queue drops its last item.
  void push(const Item& item) noexcept {
    push(item.path, [&item] { return item; });
  }
  /// The same for the item that `make` returns. It is made in place.
  template <class Make>
  void push(Probability path, Make&& make) noexcept {
    if (size_ == wanted_) {
      if (path <= bar()) return;
      drop_last();
    }
    const Slot slot = freed_ > 0 ? free_[--freed_] : fresh_++;
    ::new (static_cast<void*>(items_.data() + slot)) Item(make());
    if (first_ + size_ == keys_.size()) make_room();
    std::size_t at = first_ + size_++;
    for (; at > first_ && keys_[at - 1].path < path; --at) keys_[at] = keys_[at - 1];
    keys_[at] = {path, slot};
  }
  /// Removes and returns the best item. Precondition: !empty(). The reference is valid until the next push().
  const Item& pop() noexcept {
    REPRISE_EXPECTS(size_ > 0);
    --size_;
    return items_[free_[freed_++] = keys_[first_++].slot];
  }
  /// Lowers the number of wanted items by one; a full queue drops its last item. Call it after a popped item has been
  /// used.
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

  // clang-tidy takes the members of a private union for public ones.
  union {
    std::array<Key, 2 * Most> keys_;  // NOLINT(readability-identifier-naming)
  };
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t wanted_ = 0;
  union {
    std::array<Item, Most> items_;  // NOLINT(readability-identifier-naming)
  };
  std::array<Slot, Most> free_;  // slots of removed items
  std::size_t freed_ = 0;
  Slot fresh_ = 0;  // the first slot that was never used
};

/// Grows `draft` best first: the most probable item of a frontier is always written next. Every prefix of the draft is
/// therefore the best smaller draft. A chain keeps only the best child of each node. Returns the number of nodes, at
/// most `Most`; `written[i]` becomes the item of node i.
///
/// An Item has `path`, its path probability, which is at most that of its parent. It also has `depth` (1: directly
/// after the anchor) and `node()`, which returns its DraftNode.
///
/// expand(parent, frontier) adds to the frontier the items that may follow `parent`. It is called first for the anchor,
/// and then for each node as soon as the node is written. It may skip items at or below `frontier.bar()`.
///
/// The draft enforces the budget. Two limits are also checked here to save calls of expand(): a full draft and a node
/// at the maximum depth are not expanded. The depth check also keeps the frontier free of items that the draft would
/// refuse.
///
/// Precondition: `draft` is empty and ordered.
template <class Item, std::size_t Most, class Expand>
std::size_t grow_best_first(std::array<Item, Most>& written, Draft& draft, Expand&& expand) {
  const std::size_t most = std::min(draft.budget().max_nodes, Most);
  const std::size_t max_depth = draft.budget().max_depth;
  const bool chain = draft.chain();
  if (most == 0 || max_depth == 0) return 0;

  Frontier<Item, Most> frontier;
  frontier.reset(chain ? 1 : most);
  expand(anchor_parent, frontier);
  std::size_t size = 0;
  while (!frontier.empty()) {
    const Item& item = written[size] = frontier.pop();
    if (!draft.push(item.node())) continue;
    if (++size == most) break;
    if (chain)
      frontier.reset(1);
    else
      frontier.want_one_less();
    if (item.depth < max_depth && !draft.ends(static_cast<NodeIndex>(size - 1)))
      expand(static_cast<NodeIndex>(size - 1), frontier);
  }
  return size;
}

}}}  // namespace reprise::detail
