// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/contract.hpp"

namespace reprise { inline namespace v0 {

/// The kind of an error, for programs. Error::message is for people.
///
/// The whole library has one enum, in sections. Every Result therefore has the same error type, and a caller can handle
/// begin(), load_file() and load_history() in one switch. With an enum for each layer, each layer would need its own
/// error type. Every function that forwards errors would have to be a template.
enum class ErrorCode : std::uint8_t {
  // core, loop, batch: a sequence and its rounds. Other layers also use size_out_of_range, invalid_argument and
  // out_of_memory.
  empty_context,        ///< begin() without tokens: there is no anchor to decode from
  context_too_long,     ///< the context does not fit the limit
  cached_out_of_range,  ///< more cached tokens than the context has before its last token
  too_many_pending,     ///< more pending tokens than a pass has rows
  size_out_of_range,    ///< a size outside its bounds, for example truncate() to 0 tokens or beyond the end
  invalid_argument,     ///< a setting or capability that cannot work
  /// An allocation failed, or a memory limit does not allow it. Committed tokens are unchanged, but an open round may
  /// be closed.
  out_of_memory,
  not_begun,        ///< there is no sequence: call begin() first
  not_proposed,     ///< plan() or offer() without a propose() in the same round
  finished,         ///< generation has ended: a stop rule, a limit or the caller ended it
  bad_ticket,       ///< the ticket is not the open one, was already used, or is out of order
  bad_picks,        ///< the picks or the accepted path cannot belong to this pass
  verifier_failed,  ///< the pass could not be run or used; verifiers may return it instead of throwing

  // history: the bytes of a snapshot.
  out_of_room,         ///< the caller's buffer is too small for the snapshot
  not_a_snapshot,      ///< the bytes do not begin like a snapshot
  newer_version,       ///< a newer version of the library wrote the snapshot
  other_byte_order,    ///< the snapshot has its most significant bytes first
  other_token_width,   ///< the snapshot's tokens have a different width
  other_tokenizer,     ///< the snapshot belongs to a different tokenizer
  snapshot_truncated,  ///< the snapshot's end is missing
  snapshot_damaged,    ///< a checksum of the snapshot is wrong
  snapshot_forged,     ///< the checksums are right, but the snapshot breaks a rule of its format
  token_out_of_range,  ///< a token is outside the given vocabulary
  no_such_section,     ///< the snapshot has no section of the kind that was asked for
  other_engine,        ///< the pass costs in the snapshot were saved under a different engine name
  other_table,         ///< the table of next tokens in the snapshot has a different key or size

  // history: files of snapshots.
  no_such_file,        ///< no file has this name
  not_a_regular_file,  ///< a folder, a link or a device instead of a regular file
  bad_file_name,       ///< no file can have this name
  file_too_large,      ///< the file is larger than the caller allows
  file_failed,         ///< the operating system reported an error; `value` is its number

  // corpus. A corpus also uses newer_version, other_tokenizer, token_out_of_range and the errors of files.
  not_a_corpus,      ///< the bytes do not begin like a corpus
  corpus_truncated,  ///< the corpus' end is missing
  corpus_damaged,    ///< a checksum of the corpus is wrong
  corpus_forged,     ///< the checksums are right, but the corpus breaks a rule of its format
  other_vocabulary,  ///< the corpus is for a vocabulary of a different size
};

/// An error as a value. It is trivially copyable and never allocates, because the message is a string literal.
struct Error {
  ErrorCode code{};
  std::string_view message;  ///< the problem and its remedy; message.data() is null-terminated
  std::uint64_t value = 0;   ///< the refused number, or the number that the function documents; 0: none
  std::uint64_t limit = 0;   ///< the limit that this number violates; 0: none
};

/// A value or an Error (std::expected is C++23). Reading the value if there is an error is a contract breach, and so is
/// reading the error if there is a value.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  // Two constructors, because nvcc 13.0 does not move a local variable into a parameter of type T.
  Result(T&& value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor): allows `return x;`
  Result(const T& value)                           // NOLINT(google-explicit-constructor)
      requires std::is_copy_constructible_v<T> : value_(value) {}
  Result(Error error) noexcept : error_(error) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }

  [[nodiscard]] T& value() & REPRISE_LIFETIMEBOUND { return REPRISE_EXPECTS(has_value()), *value_; }
  [[nodiscard]] const T& value() const& REPRISE_LIFETIMEBOUND { return REPRISE_EXPECTS(has_value()), *value_; }
  [[nodiscard]] T&& value() && REPRISE_LIFETIMEBOUND { return REPRISE_EXPECTS(has_value()), std::move(*value_); }
  T& operator*() & REPRISE_LIFETIMEBOUND { return value(); }
  const T& operator*() const& REPRISE_LIFETIMEBOUND { return value(); }
  T&& operator*() && REPRISE_LIFETIMEBOUND { return std::move(*this).value(); }
  T* operator->() REPRISE_LIFETIMEBOUND { return &value(); }
  const T* operator->() const REPRISE_LIFETIMEBOUND { return &value(); }

  [[nodiscard]] const Error& error() const noexcept REPRISE_LIFETIMEBOUND {
    return REPRISE_EXPECTS(!has_value()), error_;
  }

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
  [[nodiscard]] const Error& error() const noexcept REPRISE_LIFETIMEBOUND {
    return REPRISE_EXPECTS(error_.has_value()), *error_;
  }

 private:
  std::optional<Error> error_;
};

/// True if T is a Result: generate() accepts verifiers that return one.
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;

}}  // namespace reprise
