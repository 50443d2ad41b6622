// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace reprise::detail {

/// What files hold: whole numbers of a fixed width.
template <class T>
concept StoredNumber = std::integral<T> && !std::same_as<T, bool>;

/// Reads a number whose lowest byte comes first, on every machine and from any address.
template <StoredNumber T>
constexpr T load_little(const std::byte* from) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
}

template <StoredNumber T>
constexpr void store_little(T value, std::byte* to) noexcept {
  const auto bits = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(bits >> (8 * i) & 255);
}

}  // namespace reprise::detail
