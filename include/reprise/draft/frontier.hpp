// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/contract.hpp"
#include "reprise/core/probability.hpp"

namespace reprise::detail {

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

}  // namespace reprise::detail
