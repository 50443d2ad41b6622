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
/// array: with a few dozen items, moving some of them costs less than a heap, and the worst one tells what is not
/// worth computing any more.
///
/// Item is a small value with a member `path`, its probability. Capacity is at most `Most`.
template <class Item, std::size_t Most>
class Frontier {
 public:
  /// Empty, for at most `capacity` items.
  void reset(std::size_t capacity) noexcept {
    REPRISE_EXPECTS(capacity <= Most);
    first_ = size_ = 0;
    capacity_ = capacity;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// The least probability that is taken; nothing at or below it is.
  [[nodiscard]] Probability bar() const noexcept {
    if (size_ < capacity_) return Probability::zero();
    return size_ == 0 ? Probability::one() : items_[first_ + size_ - 1].path;
  }
  /// Takes the item unless enough better ones are there.
  void push(const Item& item) noexcept {
    if (size_ == capacity_) {
      if (item.path <= bar()) return;
      --size_;
    }
    if (first_ + size_ == items_.size()) make_room();
    std::size_t at = first_ + size_++;
    for (; at > first_ && items_[at - 1].path < item.path; --at) items_[at] = items_[at - 1];
    items_[at] = item;
  }
  /// The best item.
  Item pop() noexcept {
    REPRISE_EXPECTS(size_ > 0);
    --size_;
    return items_[first_++];
  }
  /// One of the items that were popped was used.
  void want_one_less() noexcept {
    REPRISE_EXPECTS(capacity_ > 0);
    size_ = std::min(size_, --capacity_);
  }

 private:
  void make_room() noexcept {
    for (std::size_t i = 0; i < size_; ++i) items_[i] = items_[first_ + i];
    first_ = 0;
  }

  std::array<Item, 2 * Most> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace reprise::detail
