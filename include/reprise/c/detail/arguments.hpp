// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "reprise/c/detail/errors.hpp"
#include "reprise/c/reprise.h"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

/// \file Checks the arguments of the C interface and converts them.
namespace reprise::inline v0::c {

/// The size of a struct in the first version of the C interface. Callers that were compiled with a smaller struct than
/// this do not exist. Before adding a member to a struct, specialise this constant with the old size. A new member must
/// begin at or after that size, because the padding of old callers holds any bytes.
template <class Struct>
inline constexpr std::size_t first_size = sizeof(Struct);

/// Returns the first `size` bytes of a struct, with 0 for members that the caller does not know. Bytes that this
/// library does not know are ignored. A null pointer is a struct of zeros.
template <class Struct>
[[nodiscard]] Result<Struct> read_struct(const Struct* in) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>);
  Struct known{};
  if (in == nullptr) return known;
  if (in->size < first_size<Struct>)
    return refused("the member `size` of a struct is too small: set it to sizeof the struct", in->size,
                   first_size<Struct>);
  std::memcpy(&known, in, std::min(in->size, sizeof(Struct)));
  return known;
}

/// Writes as much of `value` as the caller's struct has room for, except `size`.
template <class Struct>
void write_struct(Struct& out, Struct value) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>);
  value.size = out.size;
  std::memcpy(&out, &value, std::min(out.size, sizeof(Struct)));
}

/// Sets a struct that the library will write to zeros.
template <class Struct>
[[nodiscard]] Result<void> clear_struct(Struct* out) noexcept {
  if (out == nullptr) return refused("a pointer to a result is null: pass the address of a struct");
  if (out->size < first_size<Struct>)
    return refused("the member `size` of a struct is too small: set it to sizeof the struct", out->size,
                   first_size<Struct>);
  write_struct(*out, Struct{});
  return {};
}

/// Sets results to 0, if there are any. Returns an error if a pointer is null.
template <class... Values>
[[nodiscard]] Result<void> clear(Values*... out) noexcept {
  const auto clear_one = [](auto* one) {
    if (one != nullptr) *one = {};
    return one != nullptr;
  };
  if ((static_cast<int>(clear_one(out)) & ...) == 0)
    return refused("a pointer to a result is null: pass the address of a variable");
  return {};
}

/// Returns a view of the caller's array. Only the pointer and the count can be checked.
template <class T>
[[nodiscard]] Result<std::span<const T>> array_of(const T* values, std::size_t count) noexcept {
  constexpr std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T);
  if (values == nullptr && count != 0) return refused("an array is null, but its count is not 0", count);
  if (count > most) return refused("the count of an array is too large", count, most);
  return std::span<const T>(values, count);
}

/// Returns a view of the caller's buffer.
[[nodiscard]] inline Result<std::span<std::byte>> buffer_of(void* buffer, std::size_t room) noexcept {
  if (buffer == nullptr && room != 0) return refused("a buffer is null, but its size is not 0", room);
  return std::span(static_cast<std::byte*>(buffer), room);
}

/// Returns the name of an engine. Reads at most `most` + 1 bytes.
[[nodiscard]] inline Result<std::string_view> name_of(const char* name, std::size_t most) noexcept {
  if (name == nullptr) return refused("the name of the engine is null: pass a string");
  std::size_t size = 0;
  while (size <= most && name[size] != 0) ++size;
  if (size > most) return refused("the name of the engine is too long: shorten it", size, most);
  return std::string_view(name, size);
}

/// Returns nullopt for "all tokens except the last".
[[nodiscard]] inline std::optional<std::size_t> cached_of(std::size_t cached) noexcept {
  return cached == REPRISE_UNLIMITED ? std::nullopt : std::optional(cached);
}
/// Returns the limit, or `otherwise` if it is 0.
[[nodiscard]] constexpr std::size_t limit_of(std::size_t limit, std::size_t otherwise = unlimited) noexcept {
  return limit == 0 ? otherwise : limit;
}

/// Returns the capabilities that a struct describes.
[[nodiscard]] inline Result<Capabilities> capabilities_of(const reprise_capabilities* in) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  const auto widths = array_of(read->widths, read->width_count);
  if (!widths) return widths.error();
  Capabilities can;
  can.max_rows = limit_of(read->max_rows);
  can.max_context = limit_of(read->max_context);
  can.max_depth = limit_of(read->max_depth);
  can.max_leaves = limit_of(read->max_leaves, 1);
  can.max_rollback = limit_of(read->max_rollback);
  for (const std::size_t width : *widths)
    if (!can.allowed_widths.add(width))
      return refused("a width is 0, or there are more than 96 different widths: leave out some", width,
                     AllowedWidths::capacity);
  constexpr std::array kinds = {Rollback::trim, Rollback::snapshot, Rollback::per_row};
  if (read->rollback < 0 || static_cast<std::size_t>(read->rollback) >= kinds.size())
    return refused("reprise_capabilities.rollback is none of REPRISE_ROLLBACK_...: set one of them",
                   static_cast<std::uint64_t>(read->rollback), kinds.size() - 1);
  can.rollback = kinds[static_cast<std::size_t>(read->rollback)];
  if (read->has_pad_token != 0 && read->has_pad_token != 1)
    return refused("reprise_capabilities.has_pad_token is neither 0 nor 1",
                   static_cast<std::uint64_t>(read->has_pad_token), 1);
  if (read->has_pad_token == 1) can.pad_token = read->pad_token;
  return can;
}

}  // namespace reprise
