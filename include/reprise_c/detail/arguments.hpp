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

#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise_c/reprise.h"

/// \file Checks the arguments of the C interface, and converts arguments and errors.
namespace reprise { inline namespace v0 { namespace c {

/// Returns the status code of an error. An error code that no function of the C interface should meet is
/// REPRISE_INTERNAL.
[[nodiscard]] constexpr reprise_status status_of(ErrorCode code) noexcept {
  struct Status {
    ErrorCode code;
    reprise_status status;
  };
  constexpr Status all[] = {
      {ErrorCode::empty_context, REPRISE_EMPTY_CONTEXT},
      {ErrorCode::context_too_long, REPRISE_CONTEXT_TOO_LONG},
      {ErrorCode::cached_out_of_range, REPRISE_CACHED_OUT_OF_RANGE},
      {ErrorCode::too_many_pending, REPRISE_TOO_MANY_PENDING},
      {ErrorCode::size_out_of_range, REPRISE_SIZE_OUT_OF_RANGE},
      {ErrorCode::invalid_argument, REPRISE_INVALID_ARGUMENT},
      {ErrorCode::out_of_memory, REPRISE_OUT_OF_MEMORY},
      {ErrorCode::not_begun, REPRISE_NOT_BEGUN},
      {ErrorCode::not_proposed, REPRISE_NOT_PLANNED},
      {ErrorCode::bad_ticket, REPRISE_NOT_PLANNED},
      {ErrorCode::finished, REPRISE_FINISHED},
      {ErrorCode::bad_picks, REPRISE_BAD_PICKS},
      {ErrorCode::out_of_room, REPRISE_OUT_OF_ROOM},
      {ErrorCode::not_a_snapshot, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::newer_version, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::other_byte_order, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::other_token_width, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::other_tokenizer, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::snapshot_truncated, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::snapshot_damaged, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::snapshot_forged, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::no_such_section, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::other_engine, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::other_table, REPRISE_BAD_SNAPSHOT},
      {ErrorCode::token_out_of_range, REPRISE_TOKEN_OUT_OF_RANGE},
  };
  for (const Status& known : all)
    if (known.code == code) return known.status;
  return REPRISE_INTERNAL;
}

/// Returns the error for a C program. The message is a string literal, so it is null-terminated.
[[nodiscard]] inline reprise_error to_c(const Error& error) noexcept {
  return {status_of(error.code), error.message.data(), error.value, error.limit};
}

inline constexpr reprise_error no_error = {REPRISE_OK, "", 0, 0};
inline constexpr reprise_error null_handle = {
    REPRISE_INVALID_ARGUMENT, "the handle is null: pass the handle that the create function returned", 0, 0};

/// Returns an error of an argument.
[[nodiscard]] constexpr Error refused(std::string_view message, std::uint64_t value = 0,
                                      std::uint64_t limit = 0) noexcept {
  return {ErrorCode::invalid_argument, message, value, limit};
}
/// Returns the error of an object that cannot be allocated.
[[nodiscard]] constexpr Error no_memory(std::uint64_t bytes) noexcept {
  return {ErrorCode::out_of_memory, "there is no memory for the handle: free some", bytes, 0};
}

/// The last error of a handle.
class LastError {
 public:
  /// Stores an error and returns its status.
  reprise_status set(const Error& error) noexcept {
    error_ = to_c(error);
    return error_.status;
  }
  /// Stores the error of a result, if it has one. Returns its status, or REPRISE_OK.
  template <class T>
  reprise_status status(const Result<T>& result) noexcept {
    return result ? REPRISE_OK : set(result.error());
  }
  [[nodiscard]] const reprise_error* get() const noexcept { return &error_; }

 private:
  reprise_error error_ = no_error;
};

/// Describes the result of a create function in `*out`, unless `out` is null. Returns its status.
inline reprise_status created(reprise_error* out, const Result<void>& result) noexcept {
  const reprise_error error = result ? no_error : to_c(result.error());
  if (out != nullptr) *out = error;
  return error.status;
}

/// The size of a struct in the first version of the C interface. Callers that were compiled with a smaller struct than
/// this do not exist. Before adding a member to a struct, specialise this constant with the old size. A new member must
/// begin at or after that size, because the padding of old callers holds any bytes.
template <class Struct>
inline constexpr std::size_t first_size = sizeof(Struct);

/// Refuses a struct that is smaller than in the first version.
template <class Struct>
[[nodiscard]] Result<void> check_size(const Struct& given) noexcept {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (given.size >= first_size<Struct>) return {};
  return refused("the member `size` of a struct is too small: set it to sizeof the struct", given.size,
                 first_size<Struct>);
}

/// Returns the first `size` bytes of a struct, with 0 for members that the caller does not know. Bytes that this
/// library does not know are ignored. A null pointer is a struct of zeros.
template <class Struct>
[[nodiscard]] Result<Struct> read_struct(const Struct* in) noexcept {
  Struct known{};
  if (in == nullptr) return known;
  if (const auto good = check_size(*in); !good) return good.error();
  std::memcpy(&known, in, std::min(in->size, sizeof(Struct)));
  return known;
}

/// Writes as much of `value` as the caller's struct has room for, except `size`.
template <class Struct>
void write_struct(Struct& out, Struct value) noexcept {
  value.size = out.size;
  std::memcpy(&out, &value, std::min(out.size, sizeof(Struct)));
}

/// Sets a struct that the library will write to zeros.
template <class Struct>
[[nodiscard]] Result<void> clear_struct(Struct* out) noexcept {
  if (out == nullptr) return refused("a pointer to a result is null: pass the address of a struct");
  if (auto good = check_size(*out); !good) return good;
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

/// Returns a view of the caller's array or buffer. Only the pointer and the count can be checked.
template <class T>
[[nodiscard]] Result<std::span<T>> array_of(T* values, std::size_t count) noexcept {
  constexpr std::size_t most = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) / sizeof(T);
  if (values == nullptr && count != 0) return refused("an array or a buffer is null, but its size is not 0", count);
  if (count > most) return refused("the size of an array or a buffer is too large", count, most);
  return std::span<T>(values, count);
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
/// Returns nullopt for 0, which means "unknown".
[[nodiscard]] constexpr std::optional<std::uint64_t> number_of(std::uint64_t number) noexcept {
  return number == 0 ? std::nullopt : std::optional(number);
}
[[nodiscard]] constexpr std::optional<Duration> time_of(std::int64_t ns) noexcept {
  return ns == 0 ? std::nullopt : std::optional(Duration(ns));
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

}}}  // namespace reprise
