// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "reprise/core/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// A position in a sequence: the number of tokens before it. 2^32 - 1 tokens are the most an index holds; further
/// ones are not indexed.
using Position = std::uint32_t;

/// The order in which earlier occurrences are looked at.
enum class MatchOrder : std::uint8_t { most_recent, earliest };

/// What a lookup may find and how much work it may do.
struct MatchLimits {
  std::uint32_t shortest = 1;     ///< an occurrence agrees with at least this many tokens at the end of the context
  std::uint32_t longest = 16;     ///< agreement is measured up to this many tokens
  std::uint32_t candidates = 16;  ///< at most this many occurrences are looked at
  MatchOrder order = MatchOrder::most_recent;
};

/// An earlier place that ends like the context does: the `length` tokens before `end` equal the last `length`
/// tokens of the context, and tokens()[end] is what came next there.
struct Match {
  Position end = 0;
  std::uint32_t length = 0;
  friend bool operator==(const Match&, const Match&) = default;
};

/// The n-gram lengths that an index is asked for, ascending, without duplicates.
class NgramOrders {
 public:
  static constexpr std::size_t capacity = 8;
  static constexpr std::uint32_t largest = 32;

  constexpr NgramOrders() noexcept = default;
  /// Constants: an order outside 1..largest, or more than `capacity` distinct ones, does not compile.
  consteval NgramOrders(std::initializer_list<std::uint32_t> orders) noexcept {
    for (const std::uint32_t n : orders)
      if (!add(n) && !contains(n)) an_order_is_not_1_to_32_or_there_are_more_than_8();
  }
  /// False, and nothing added, if `n` is not 1..largest, is there already, or `capacity` orders are.
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
  [[nodiscard]] constexpr const std::uint32_t* begin() const noexcept { return orders_.data(); }
  [[nodiscard]] constexpr const std::uint32_t* end() const noexcept { return orders_.data() + size_; }

 private:
  // The compiler names it when a constant breaks the rule.
  static void an_order_is_not_1_to_32_or_there_are_more_than_8() noexcept {}

  std::array<std::uint32_t, capacity> orders_{};
  std::size_t size_ = 0;
};

/// How an index is made. An index uses what concerns it.
struct IndexOptions {
  NgramOrders orders = {1, 3, 8};          ///< the values of MatchLimits::shortest that find() will be asked for
  bool earliest = false;                   ///< find() will also be asked for MatchOrder::earliest
  std::uint64_t key = 0x9e3779b97f4a7c15;  ///< hash key. Secret and random where prompts come from strangers: it
                                           ///< keeps them from making a context that is slow to look up
  std::size_t max_bytes = unlimited;       ///< heap ceiling; beyond it indexing stops, decoding goes on
};

/// Finds earlier occurrences of the end of a growing token sequence. What a compiler cannot check:
///
///  I1  append(tokens) adds tokens at the end; truncate(size) leaves exactly the first `size`, as if no more had
///      ever been appended; clear() leaves none. Cost: proportional to the tokens added or removed, unless the
///      index says otherwise. reserve(size) asks for the memory of `size` tokens in all, so that append() does not
///      allocate up to there; after an error append() still grows as it can.
///  I2  find(limits, out) looks at the first min(limits.candidates, out.size()) earlier occurrences of the last
///      limits.shortest tokens, in limits.order, and writes one Match for each, in that order. Occurrences may
///      overlap the end; the end itself is not one (match.end < tokens().size()). Match::length is the whole
///      agreement up to limits.longest (at least limits.shortest). The answer is the number written.
///  I3  Matches are exact: compared token by token, never by hash alone.
///  I4  find() neither allocates nor changes anything that can be seen. Orders that the index was not made for
///      find nothing.
///  I5  When memory runs out, or the ceiling is reached, indexing stops: exhausted() is true and find() answers
///      0 until clear(), or until truncate() leaves only what is indexed.
///  I6  A copy is a fork. A copy that could not get its memory is exhausted.
///
/// Threads: find() and the other const members may run at the same time; nothing else may.
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

/// Optional: an index that can be asked for tokens which are not the end of the context, such as the end of a draft.
///
///  I7  latest(ngram) is the end of the last occurrence of these tokens, the very end of the context included; 0 if
///      there is none. `ngram` has as many tokens as one of the orders that the index was made for, else 0 is a right
///      answer. As find(), it is exact, does not allocate and changes nothing.
template <class I>
concept NgramIndex = LookupIndex<I> && requires(const I& fixed, TokenSpan ngram) {
  { fixed.latest(ngram) } -> std::same_as<Position>;
};

namespace detail {

/// How many tokens before `a` and before `b` agree, at most `most`. a < b <= tokens.size().
inline std::uint32_t agreement(TokenSpan tokens, std::size_t a, std::size_t b, std::uint32_t most) noexcept {
  std::uint32_t n = 0;
  while (n < most && n < a && tokens[a - 1 - n] == tokens[b - 1 - n]) ++n;
  return n;
}

}  // namespace detail

namespace archetype {

/// The least that models LookupIndex: finds nothing.
struct Index {
  explicit Index(const IndexOptions&) {}
  void append(TokenSpan) {}
  void truncate(std::size_t) {}
  void clear() {}
  [[nodiscard]] std::size_t find(const MatchLimits&, std::span<Match>) const { return 0; }
  [[nodiscard]] TokenSpan tokens() const { return {}; }
  [[nodiscard]] bool exhausted() const { return false; }
  [[nodiscard]] std::size_t memory_bytes() const { return 0; }
  Result<void> reserve(std::size_t) { return {}; }
};
static_assert(LookupIndex<Index>);

/// The least that models NgramIndex.
struct LatestIndex : Index {
  using Index::Index;
  [[nodiscard]] Position latest(TokenSpan) const { return 0; }
};
static_assert(NgramIndex<LatestIndex>);

}  // namespace archetype
}  // namespace reprise
