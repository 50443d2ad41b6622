// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Returns how many of `elements` elements to move to larger memory before `batch` tokens are appended: none while more
/// than room / 32 + `early` + 128 of the room is free, then a share that grows as the free room shrinks. So all have
/// moved long before the room is used up. Few elements do not move, nor do any that would all move at once: growth in
/// one step serves them as well. If `batch` is `unlimited`, returns all elements in place of a share.
inline std::size_t to_move(std::size_t elements, std::size_t room, std::size_t used, std::size_t batch,
                           std::size_t early) noexcept {
  const std::size_t free = room - used;
  if (free > room / 32 + early + 128 || elements < 2048) return 0;
  if (batch == unlimited) return elements;
  if (free < batch) return 0;
  return elements / std::max<std::size_t>(free / (4 * batch), 1);
}

/// Returns the room to leave after `elements` elements, so that they do not have to move at once; see to_move().
inline std::size_t spare_room(std::size_t elements) noexcept {
  return elements / 16 + std::min<std::size_t>(elements / 16, 128);
}

/// A Buffer that can also grow without a stall: move() copies some elements to a larger array. Reads use the smaller
/// array until the larger one has all elements and replaces it.
template <class T>
class Column {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return current_.size(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return current_.capacity(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return current_.memory_bytes() + larger_.memory_bytes(); }
  [[nodiscard]] const T* data() const noexcept { return current_.data(); }
  const T& operator[](std::size_t i) const noexcept { return current_[i]; }

  void set(std::size_t i, T value) noexcept {
    current_[i] = value;
    if (i < larger_.size()) larger_[i] = value;
  }
  /// Precondition: memory for the element is reserved.
  void push_reserved(T value) noexcept { current_.push_reserved(value); }
  /// Keeps the memory, except for that of a move if nothing is left. Otherwise the move goes on: if each cut ended it,
  /// the array could become full first.
  void truncate(std::size_t size) noexcept {
    current_.truncate(size);
    larger_.truncate(size);
    if (size == 0) larger_.release();
  }
  /// Like Buffer::reserve().
  [[nodiscard]] bool reserve(std::size_t wanted) noexcept {
    if (wanted > capacity()) larger_.release();
    return current_.reserve(wanted);
  }
  /// Moves some elements before `batch` more are pushed; see to_move(). Returns false if none has to move or memory
  /// runs out.
  bool move(std::size_t batch) noexcept {
    constexpr std::size_t faster = 4;  // elements copied in the time in which one is entered in a table
    const std::size_t count = to_move(faster * size(), capacity(), size(), batch, 0);
    if (count == 0) larger_.release();  // see NgramChain::move()
    if (count == 0 || !larger_.reserve(capacity() + capacity() / 8)) return false;
    const std::span<const T> left = std::span<const T>(current_).subspan(larger_.size());
    static_cast<void>(larger_.append(left.first(std::min(left.size(), count))));
    if (larger_.size() == size()) current_ = std::exchange(larger_, {});
    return true;
  }

 private:
  Buffer<T> current_;
  Buffer<T> larger_;  // the first elements, while they move
};

}}}  // namespace reprise::detail
