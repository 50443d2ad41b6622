// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/detail/prefetch.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A fixed number of lines of eight words, one cache line each. A keyed hash of one or two tokens, the context, selects
/// a line and a tag. One thread may write while others read: each word is atomic, lines are not. Move-only.
class ContextLines {
 public:
  static constexpr std::size_t words_per_line = 8;
  static constexpr std::size_t line_bytes = words_per_line * sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, words_per_line>;

  /// The place of a context. Its upper half selects the line, and its lowest 16 bits are the tag.
  class Place {
   public:
    constexpr explicit Place(std::uint64_t hash) noexcept : hash_(hash) {}
    [[nodiscard]] constexpr std::size_t line(std::size_t lines) const noexcept {
      return static_cast<std::size_t>((hash_ >> 32) * static_cast<std::uint64_t>(lines) >> 32);
    }
    [[nodiscard]] constexpr std::uint16_t tag() const noexcept { return static_cast<std::uint16_t>(hash_); }

   private:
    std::uint64_t hash_;
  };

  ContextLines() noexcept = default;  ///< no lines
  ContextLines(ContextLines&& other) noexcept
      : key_(other.key_), lines_(std::exchange(other.lines_, 0)), table_(std::move(other.table_)) {}
  ContextLines& operator=(ContextLines&& other) noexcept {
    key_ = other.key_;
    lines_ = std::exchange(other.lines_, 0);
    table_ = std::move(other.table_);
    return *this;
  }
  ~ContextLines() = default;

  /// The largest memory: a place selects a line with 32 bits.
  static constexpr std::uint64_t most_bytes = (std::uint64_t{1} << 32) * line_bytes;

  /// Allocates as many lines as `max_bytes` has room for, and returns them empty. Errors: out_of_memory;
  /// size_out_of_range if `max_bytes` is too small for one line (`limit`: the bytes needed) or above most_bytes.
  [[nodiscard]] static Result<ContextLines> make(std::size_t max_bytes, std::uint64_t key) noexcept {
    if (std::uint64_t{max_bytes} > most_bytes)
      return Error{ErrorCode::size_out_of_range, "max_bytes of the table is above the limit: pass at most 256 GiB",
                   max_bytes, most_bytes};
    ContextLines made;
    made.key_ = key;
    made.lines_ = max_bytes / line_bytes;
    if (made.lines_ == 0)
      return Error{ErrorCode::size_out_of_range, "max_bytes of the table is too small for one line: increase it",
                   max_bytes, line_bytes};
    made.table_ = new_array<Line>(made.lines_);
    if (made.table_ == nullptr)
      return Error{ErrorCode::out_of_memory, "there is no memory for max_bytes of the table: decrease it", max_bytes,
                   0};
    return made;
  }
  /// Returns lines with the same key and words. Error: out_of_memory.
  [[nodiscard]] Result<ContextLines> copy() const noexcept {
    if (lines_ == 0) return ContextLines();
    auto made = make(lines_ * line_bytes, key_);
    for (std::size_t line = 0; made && line < lines_; ++line) made->store(line, words(line));
    return made;
  }
  /// Succeeds if each context has the same line and tag in `other`. Error: invalid_argument if the keys or the numbers
  /// of lines differ (`value`: lines of `other`, `limit`: lines of this object).
  [[nodiscard]] Result<void> check_mergeable(const ContextLines& other) const noexcept {
    if (other.lines_ == lines_ && other.key_ == key_) return {};
    return Error{ErrorCode::invalid_argument,
                 "only tables with the same key and the same max_bytes can be merged: make both with equal options",
                 other.lines_, lines_};
  }

  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }
  [[nodiscard]] Place place_of(Token last) const noexcept { return Place(token_hash(key_, last)); }
  /// Chained: the complement of the first token's hash is the key of the second token. Without the complement, token 0
  /// has no effect under the key 0, because its hash is 0.
  [[nodiscard]] Place place_of(Token before_last, Token last) const noexcept {
    return Place(token_hash(~token_hash(key_, before_last), last));
  }

  void prefetch(Place place) const noexcept {
    if (lines_ != 0) reprise::detail::prefetch(&table_[place.line(lines_)]);
  }
  /// Returns the words of a line. During a write, they can be a mixture of old and new words.
  [[nodiscard]] Words words(std::size_t line) const noexcept {
    Words words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = table_[line].words[i].load(std::memory_order_relaxed);
    return words;
  }
  /// Stores the words that have changed, each in one step.
  void store(std::size_t line, const Words& changed) noexcept {
    for (std::size_t i = 0; i < changed.size(); ++i) {
      std::atomic<std::uint64_t>& word = table_[line].words[i];
      if (word.load(std::memory_order_relaxed) != changed[i]) word.store(changed[i], std::memory_order_relaxed);
    }
  }

 private:
  struct alignas(line_bytes) Line {
    std::array<std::atomic<std::uint64_t>, words_per_line> words;
  };

  std::uint64_t key_ = 0;
  std::size_t lines_ = 0;
  OwnedArray<Line> table_;
};

}}}  // namespace reprise::detail
