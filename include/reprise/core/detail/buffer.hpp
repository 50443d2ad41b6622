// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/contract.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A growing array of trivially copyable elements. If an allocation fails, its functions return false and leave the
/// contents unchanged. std::vector throws instead, and an exception between the verifier's commit and the session's
/// would leave the two out of step.
///
/// The capacity grows by a quarter. The arrays hold a whole context, so doubling could waste as much memory as they
/// use. A copy that runs out of memory is empty; compare sizes to detect it.
template <class T>
class Buffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);

 public:
  Buffer() noexcept = default;
  Buffer(const Buffer& other) noexcept { static_cast<void>(append(other)); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { ::operator delete(data_); }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return capacity_ * sizeof(T); }

  [[nodiscard]] T* data() noexcept REPRISE_LIFETIMEBOUND { return data_; }
  [[nodiscard]] const T* data() const noexcept REPRISE_LIFETIMEBOUND { return data_; }
  [[nodiscard]] T* begin() noexcept REPRISE_LIFETIMEBOUND { return data_; }
  [[nodiscard]] const T* begin() const noexcept REPRISE_LIFETIMEBOUND { return data_; }
  [[nodiscard]] T* end() noexcept REPRISE_LIFETIMEBOUND { return data_ + size_; }
  [[nodiscard]] const T* end() const noexcept REPRISE_LIFETIMEBOUND { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return REPRISE_EXPECTS(i < capacity_), data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return REPRISE_EXPECTS(i < capacity_), data_[i]; }

  /// Allocates memory for exactly `wanted` elements, unless the capacity suffices. Returns false and changes nothing if
  /// memory runs out.
  [[nodiscard]] bool reserve(std::size_t wanted) noexcept { return wanted <= capacity_ || reallocate(wanted); }

  /// Reserves memory for `extra` more elements; grows geometrically. Returns false and changes nothing if memory runs
  /// out.
  [[nodiscard]] bool reserve_extra(std::size_t extra) noexcept { return extra <= capacity_ - size_ || grow(extra); }

  /// Appends `values`, which may be part of this buffer. Returns false and changes nothing if memory runs out.
  [[nodiscard]] bool append(std::span<const T> values) noexcept {
    const T* from = values.data();
    if (values.size() > capacity_ - size_) {
      const auto at = [](const T* place) { return reinterpret_cast<std::uintptr_t>(place); };
      const bool own = at(begin()) <= at(from) && at(from) < at(end());
      const std::ptrdiff_t offset = own ? from - data_ : 0;
      if (!reserve_extra(values.size())) return false;
      if (own) from = data_ + offset;  // the reallocation moved the values
    }
    // memmove: after clear(), `values` may lie in this buffer's own memory.
    if (!values.empty()) std::memmove(data_ + size_, from, values.size() * sizeof(T));
    size_ += values.size();
    return true;
  }

  /// Replaces the contents with `values`, which must not lie in this buffer. Returns false and changes nothing if
  /// memory runs out.
  [[nodiscard]] bool assign(std::span<const T> values) noexcept {
    if (!reserve(values.size())) return false;
    size_ = 0;
    return append(values);
  }

  /// Changes the size; new elements equal `value`. Returns false and changes nothing if memory runs out.
  [[nodiscard]] bool resize(std::size_t size, T value) noexcept {
    if (size > size_ && !reserve_extra(size - size_)) return false;
    if (size > size_) std::fill(data_ + size_, data_ + size, value);
    size_ = size;
    return true;
  }

  /// Appends one element. Precondition: memory for the element is reserved.
  void push_reserved(T value) noexcept {
    REPRISE_EXPECTS(size_ < capacity_);
    data_[size_++] = value;
  }

  void truncate(std::size_t size) noexcept { size_ = std::min(size_, size); }
  void clear() noexcept { size_ = 0; }
  /// Empties the buffer and frees its memory.
  void release() noexcept { Buffer().swap(*this); }

 private:
  [[nodiscard]] REPRISE_COLD bool reallocate(std::size_t wanted) noexcept {
    if (wanted > std::numeric_limits<std::size_t>::max() / sizeof(T)) return false;
    auto* fresh = static_cast<T*>(::operator new(wanted * sizeof(T), std::nothrow));
    if (fresh == nullptr) return false;
    if (size_ != 0) std::memcpy(fresh, data_, size_ * sizeof(T));
    ::operator delete(data_);
    data_ = fresh;
    capacity_ = wanted;
    return true;
  }
  [[nodiscard]] bool grow(std::size_t extra) noexcept {
    if (extra > std::numeric_limits<std::size_t>::max() - size_) return false;
    constexpr std::size_t smallest = 16;
    return reserve(std::max({size_ + extra, capacity_ + capacity_ / 4, smallest})) || reserve(size_ + extra);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}}}  // namespace reprise::detail
