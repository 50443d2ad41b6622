// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reprise/c/reprise.h"
#include "reprise/core/result.hpp"

/// \file The errors of the C interface.
namespace reprise::inline v0::c {

/// Returns the status code of an error. An error code that no function of the C interface should meet is
/// REPRISE_INTERNAL.
[[nodiscard]] constexpr reprise_status status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::empty_context:
      return REPRISE_EMPTY_CONTEXT;
    case ErrorCode::context_too_long:
      return REPRISE_CONTEXT_TOO_LONG;
    case ErrorCode::cached_out_of_range:
      return REPRISE_CACHED_OUT_OF_RANGE;
    case ErrorCode::too_many_pending:
      return REPRISE_TOO_MANY_PENDING;
    case ErrorCode::size_out_of_range:
      return REPRISE_SIZE_OUT_OF_RANGE;
    case ErrorCode::invalid_argument:
      return REPRISE_INVALID_ARGUMENT;
    case ErrorCode::out_of_memory:
      return REPRISE_OUT_OF_MEMORY;
    case ErrorCode::not_begun:
      return REPRISE_NOT_BEGUN;
    case ErrorCode::not_proposed:
    case ErrorCode::bad_ticket:
      return REPRISE_NOT_PLANNED;
    case ErrorCode::finished:
      return REPRISE_FINISHED;
    case ErrorCode::bad_picks:
      return REPRISE_BAD_PICKS;
    case ErrorCode::out_of_room:
      return REPRISE_OUT_OF_ROOM;
    case ErrorCode::not_a_snapshot:
    case ErrorCode::newer_version:
    case ErrorCode::other_byte_order:
    case ErrorCode::other_token_width:
    case ErrorCode::other_tokenizer:
    case ErrorCode::snapshot_truncated:
    case ErrorCode::snapshot_damaged:
    case ErrorCode::snapshot_forged:
    case ErrorCode::no_such_section:
    case ErrorCode::other_engine:
    case ErrorCode::other_table:
      return REPRISE_BAD_SNAPSHOT;
    case ErrorCode::token_out_of_range:
      return REPRISE_TOKEN_OUT_OF_RANGE;
    default:
      return REPRISE_INTERNAL;
  }
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

}  // namespace reprise
