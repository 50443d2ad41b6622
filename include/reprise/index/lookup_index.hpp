// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

/// A position in a sequence: the number of tokens before it. An index holds at most 2^32 - 1 tokens; further tokens are
/// not indexed.
using Position = std::uint32_t;

/// The limits of one lookup: which occurrences it may return, and how much work it may do.
struct MatchLimits {
  /// The order in which a lookup visits earlier occurrences.
  enum class Order : std::uint8_t { most_recent, earliest };

  std::uint32_t shortest = 1;     ///< an occurrence agrees with at least this many tokens at the end of the context
  std::uint32_t longest = 16;     ///< agreement is measured up to this many tokens
  std::uint32_t candidates = 16;  ///< at most this many occurrences are returned
  Order order = Order::most_recent;
};

/// An earlier occurrence of the end of the context. The `length` tokens before `end` equal the last `length` tokens of
/// the context; tokens()[end] is the token that followed.
struct Match {
  Position end = 0;
  std::uint32_t length = 0;
  friend bool operator==(const Match&, const Match&) = default;
};

/// A set of n-gram lengths, ascending.
class NgramOrders {
 public:
  static constexpr std::size_t capacity = 8;
  static constexpr std::uint32_t largest = 32;

  constexpr NgramOrders() noexcept = default;
  /// Makes a set from constants. An order outside 1 ... largest does not compile, and neither do more than `capacity`
  /// distinct orders.
  consteval NgramOrders(std::initializer_list<std::uint32_t> orders) noexcept {
    for (const std::uint32_t n : orders)
      if (!add(n) && !contains(n)) an_order_is_not_1_to_32_or_there_are_more_than_8();
  }
  /// Adds an order. Returns false and adds nothing if `n` is outside 1 ... largest or already in the set, or if the set
  /// is full.
  constexpr bool add(std::uint32_t n) noexcept {
    if (n == 0 || n > largest || contains(n) || size_ == capacity) return false;
    std::size_t i = size_++;
    for (; i > 0 && orders_[i - 1] > n; --i) orders_[i] = orders_[i - 1];
    orders_[i] = n;
    return true;
  }
  [[nodiscard]] constexpr bool contains(std::uint32_t n) const noexcept {
    return std::find(begin(), end(), n) != end();
  }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr std::uint32_t operator[](std::size_t i) const noexcept { return orders_[i]; }
  [[nodiscard]] constexpr const std::uint32_t* begin() const noexcept REPRISE_LIFETIMEBOUND { return orders_.data(); }
  [[nodiscard]] constexpr const std::uint32_t* end() const noexcept REPRISE_LIFETIMEBOUND {
    return orders_.data() + size_;
  }

 private:
  // The compiler prints this name when a constant breaks the rule.
  static void an_order_is_not_1_to_32_or_there_are_more_than_8() noexcept {}

  std::array<std::uint32_t, capacity> orders_{};
  std::size_t size_ = 0;
};

/// Settings of an index. An index ignores the settings that do not apply to it.
struct IndexOptions {
  NgramOrders orders = {1, 3, 8};  ///< the values of MatchLimits::shortest to be used with find()
  bool earliest = false;           ///< true if Order::earliest will be used with find()
  /// Hash key. If prompts are untrusted, make it secret and random: otherwise an attacker could construct contexts in
  /// which little is found.
  std::uint64_t key = 0x9e3779b97f4a7c15;
  std::size_t max_bytes = unlimited;  ///< heap memory limit; when it is reached, indexing stops and decoding continues
  /// Number of token ids. Negative ids and those from here on are placeholders, for example of images. A placeholder
  /// equals no other token, so no match contains one.
  std::uint32_t vocabulary = std::uint32_t{1} << 31;
};

/// Finds earlier occurrences of the end of a growing token sequence. Requirements that a compiler cannot check:
///
///  I1  append(tokens) adds tokens at the end. truncate(size) leaves exactly the first `size` tokens, as if no more had
///      ever been appended; clear() leaves none. Cost: proportional to the tokens added or removed, unless the index
///      documents otherwise. After reserve(size) succeeds, append() does not allocate until the index holds more than
///      `size` tokens, or until a clear() that releases memory. If reserve() fails, append() still grows on demand,
///      unless the index is exhausted().
///  I2  find(limits, out) visits earlier occurrences of the last limits.shortest tokens, in limits.order. It writes one
///      Match for each of the first min(limits.candidates, out.size()) of them, in that order, and returns their
///      number. Occurrences may overlap the end of the context; the end itself does not count as one (match.end <
///      tokens().size()). Match::length is the full length of the agreement, limited to limits.longest but never below
///      limits.shortest.
///  I3  Matches are exact: they are compared token by token, never by hash alone.
///  I4  find() neither allocates nor changes observable state. It returns 0 for a limits.shortest or a limits.order
///      that the index was not made for.
///  I5  When memory runs out, max_bytes is reached or there are more than 2^32 - 1 tokens, indexing stops. exhausted()
///      is then true and find() returns 0 until clear(), or until truncate() leaves only indexed tokens.
///      An index may also bound its work per token. It then documents the bound, and a lookup that reaches it may miss
///      occurrences: find() returns fewer matches and latest() an earlier occurrence or 0. Matches stay exact.
///  I6  A copy is a fork. A copy whose allocation failed is exhausted.
///  I8  tokens() has a negative number of its own for each placeholder; see IndexOptions::vocabulary.
///
/// Threads: many threads may call const members at once; no other member may run at the same time as any call.
template <class I>
concept LookupIndex = std::copyable<I> && std::constructible_from<I, const IndexOptions&> &&
    requires(I& index, const I& fixed, TokenSpan tokens, std::size_t size, const MatchLimits& limits,
             std::span<Match> out) {
  index.append(tokens);
  index.truncate(size);
  index.clear();
  { fixed.find(limits, out) } -> std::same_as<std::size_t>;
  { fixed.tokens() } -> std::convertible_to<TokenSpan>;
  { fixed.exhausted() } -> std::convertible_to<bool>;
  { fixed.memory_bytes() } -> std::convertible_to<std::size_t>;
  { index.reserve(size) } -> std::same_as<Result<void>>;
};

/// Optional: an index that can also look up tokens other than the end of the context, such as the end of a draft.
///
///  I7  latest(ngram) returns the end of the last occurrence of these tokens, or 0 if there is none. The end of the
///      context counts as an occurrence. It may return 0 if ngram.size() is not an order that the index was made for,
///      or if the index is exhausted(). Like find(), it is exact, does not allocate and changes nothing.
template <class I>
concept NgramIndex = LookupIndex<I> && requires(const I& fixed, TokenSpan ngram) {
  { fixed.latest(ngram) } -> std::same_as<Position>;
};

namespace detail {

/// Returns what an index stores for `token` at `position`: for a placeholder, a negative number of its own, so that it
/// equals no other token.
inline Token indexed_token(Token token, std::size_t position, std::uint32_t vocabulary) noexcept {
  const bool placeholder = static_cast<std::uint32_t>(token) >= vocabulary;
  return placeholder ? static_cast<Token>(~static_cast<std::uint32_t>(position) | std::uint32_t{1} << 31) : token;
}

/// Returns how many consecutive tokens directly before `a` and directly before `b` are equal, at most `most`.
/// Precondition: a < b <= tokens.size().
inline std::uint32_t agreement(TokenSpan tokens, std::size_t a, std::size_t b, std::uint32_t most) noexcept {
  std::uint32_t n = 0;
  while (n < most && n < a && tokens[a - 1 - n] == tokens[b - 1 - n]) ++n;
  return n;
}

}  // namespace detail

}}  // namespace reprise
