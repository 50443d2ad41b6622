// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "reprise/core/contract.hpp"

namespace reprise::inline v0 {

/// The kind of an error, for programs; the sentence beside it is for people.
///
/// One enum for the whole library, with a section for each layer that returns errors: a Result has one error type, so a
/// caller handles begin(), load_file() and load_history() in one switch. An enum for each layer would need an error
/// type for each, and a template for everything that passes errors on.
enum class ErrorCode : std::uint8_t {
  // core, loop, batch: a sequence and its rounds. Other layers use size_out_of_range, invalid_argument and
  // out_of_memory
  // too.
  empty_context,        ///< begin() with no token: there is no anchor to decode from
  context_too_long,     ///< the context does not fit the limit
  cached_out_of_range,  ///< the cache can hold at most all tokens but the last
  too_many_pending,     ///< more pending tokens than a pass has rows
  size_out_of_range,    ///< a size outside of its bounds, such as truncate() beyond the end, or to nothing
  invalid_argument,     ///< a setting or capability that cannot work
  out_of_memory,        ///< an allocation failed; nothing was changed
  not_begun,            ///< no sequence: call begin() first
  not_proposed,         ///< plan() needs a propose() in the same round
  finished,             ///< a stop rule or limit has ended generation
  bad_ticket,           ///< the ticket is not the open one, was used already, or came out of order
  bad_picks,            ///< the picks or the accepted path handed in cannot belong to this pass
  verifier_failed,      ///< for verifiers without exceptions: the pass could not be run

  // history: the bytes of a snapshot.
  out_of_room,         ///< the caller's bytes are too few for the snapshot
  not_a_snapshot,      ///< the bytes do not begin like a snapshot
  newer_version,       ///< a newer version of the library wrote the snapshot
  other_byte_order,    ///< the snapshot has its highest bytes first
  other_token_width,   ///< the snapshot's tokens have another width
  other_tokenizer,     ///< the snapshot belongs to another tokenizer
  snapshot_truncated,  ///< the snapshot's end is missing
  snapshot_damaged,    ///< a checksum of the snapshot is wrong
  snapshot_forged,     ///< checksums are right, but the snapshot breaks a rule of its format
  token_out_of_range,  ///< a token is outside the vocabulary that was given

  // history: files of snapshots.
  no_such_file,        ///< there is no file of this name
  not_a_regular_file,  ///< a folder, a link or a device where a file is needed
  bad_file_name,       ///< no file can have this name
  file_too_large,      ///< the file is larger than the caller allows
  file_failed,         ///< the operating system refused; `value` is its error number

  // history: tenants.
  tenant_is_open,    ///< the tenant is open already
  too_many_tenants,  ///< all slots for tenants are taken: close one first
};

/// An error as a value: trivially copyable, never allocates, points at a string literal.
struct Error {
  ErrorCode code{};
  std::string_view message;  ///< what was wrong and what to do about it
  std::uint64_t value = 0;   ///< the number that was refused, where there is one
  std::uint64_t limit = 0;   ///< what it was held against
};

/// A value or an Error (std::expected is C++23). Reading the value of an error is a contract breach.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}    // NOLINT(google-explicit-constructor): reads as `return x;`
  Result(Error error) noexcept : error_(error) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() & { return REPRISE_EXPECTS(has_value()), *value_; }
  [[nodiscard]] const T& value() const& { return REPRISE_EXPECTS(has_value()), *value_; }
  [[nodiscard]] T&& value() && { return REPRISE_EXPECTS(has_value()), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  [[nodiscard]] const Error& error() const noexcept { return REPRISE_EXPECTS(!has_value()), error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

/// Success or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() noexcept = default;
  Result(Error error) noexcept : error_(error) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] const Error& error() const noexcept { return REPRISE_EXPECTS(error_.has_value()), *error_; }

 private:
  std::optional<Error> error_;
};

/// True for Result<anything>: generate() accepts verifiers that answer with a Result.
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

}  // namespace reprise
