// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace reprise { inline namespace v0 { namespace detail {

/// Returns `size` objects of type T that are initialised as by T[size], or null if there is no memory for them. Unlike
/// a new-expression with std::nothrow, it does not throw if the bytes of the array cannot be counted.
template <class T>
[[nodiscard]] std::unique_ptr<T[]> new_array(std::size_t size) noexcept(std::is_nothrow_default_constructible_v<T>) {
  constexpr std::size_t spare = 64;  // for the number of objects, which compilers keep beside some arrays
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() - spare;
  return std::unique_ptr<T[]>(size > most / sizeof(T) ? nullptr : new (std::nothrow) T[size]);
}

}}}  // namespace reprise::detail
