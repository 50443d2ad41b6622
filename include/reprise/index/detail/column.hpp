// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "reprise/core/buffer.hpp"

namespace reprise::inline v0::detail {

/// A Buffer that can also grow without a stall: it copies its elements to a larger array, some with each call of
/// move(). Reads always use the smaller array, until the larger one has all elements and replaces it.
template <class T>
class Column {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return current_.size(); }
  [[nodiscard]] bool empty() const noexcept { return current_.empty(); }
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
  void truncate(std::size_t size) noexcept {
    current_.truncate(size);
    larger_.truncate(size);
  }
  /// Empties the column and keeps the memory, except for that of a move.
  void clear() noexcept {
    current_.clear();
    larger_.release();
  }
  /// Empties the column and frees its memory.
  void release() noexcept { *this = Column(); }
  void swap(Column& other) noexcept { std::swap(*this, other); }

  /// Like Buffer::reserve().
  [[nodiscard]] bool reserve(std::size_t wanted) noexcept {
    if (wanted <= capacity()) return true;
    larger_.release();
    return current_.reserve(wanted);
  }
  /// Copies up to `count` more elements to an array for `wanted` elements. Does nothing if the capacity suffices or
  /// memory runs out. Precondition: `wanted` stays the same until the capacity suffices.
  void move(std::size_t wanted, std::size_t count) noexcept {
    if (wanted <= capacity() || !larger_.reserve(wanted)) return;
    const std::span<const T> all(current_.data(), current_.size());
    const std::span<const T> left = all.subspan(larger_.size());
    static_cast<void>(larger_.append(left.first(std::min(left.size(), count))));
    if (larger_.size() == current_.size()) current_ = std::exchange(larger_, {});
  }

 private:
  Buffer<T> current_;
  Buffer<T> larger_;  // the first elements, if a move has begun
};

}  // namespace reprise::detail
