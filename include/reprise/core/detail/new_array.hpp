// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <type_traits>
#include <utility>

namespace reprise { inline namespace v0 { namespace detail {

/// Owns an array on the heap, or none. Move-only. Like std::unique_ptr<T[]>, without the compile time of <memory>.
template <class T>
class OwnedArray {
 public:
  OwnedArray() noexcept = default;
  explicit OwnedArray(T* owned) noexcept : data_(owned) {}
  OwnedArray(OwnedArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  OwnedArray& operator=(OwnedArray&& other) noexcept {
    OwnedArray taken(std::move(other));
    std::swap(data_, taken.data_);
    return *this;
  }
  ~OwnedArray() { delete[] data_; }  // NOLINT(clang-analyzer-cplusplus.NewDelete): it loses track of moves

  [[nodiscard]] T* get() const noexcept { return data_; }
  [[nodiscard]] T& operator[](std::size_t i) const noexcept { return data_[i]; }
  friend bool operator==(const OwnedArray& array, std::nullptr_t) noexcept { return array.data_ == nullptr; }

 private:
  T* data_ = nullptr;
};

/// Returns `size` objects of type T that are initialised as by T[size], or none if there is no memory for them. Unlike
/// a new-expression with std::nothrow, it does not throw if the bytes of the array cannot be counted.
template <class T>
[[nodiscard]] OwnedArray<T> new_array(std::size_t size) noexcept(std::is_nothrow_default_constructible_v<T>) {
  constexpr std::size_t spare = 64;  // for the number of objects, which compilers keep beside some arrays
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() - spare;
  return OwnedArray<T>(size > most / sizeof(T) ? nullptr : new (std::nothrow) T[size]);
}

}}}  // namespace reprise::detail
