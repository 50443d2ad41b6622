// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// Sorts all positions of the sequence by the tokens before them, read backwards: a suffix array of the reversed
/// sequence (Manber and Myers 1993). Positions that share the n tokens before them are adjacent, for every n up to 32
/// at once. find() therefore accepts every n up to NgramOrders::largest, in both match orders, regardless of
/// IndexOptions::orders.
///
/// The index can be searched while the sequence grows. The latest tokens form an unsorted tail that find() scans: at
/// most 256 tokens, or 1/256 of the sorted tokens if that is more. A full tail is merged into the sorted part. Sorting
/// compares at most 32 tokens of two positions, even in repetitive text.
///
/// Cost for N tokens:
///
///  - find(): O(log N), plus time linear in the tail and in all occurrences of the last limits.shortest tokens. A small
///    limits.candidates hardly makes it cheaper: choose this index if occurrences are few, or if you want all of them.
///  - append() of one token: O(1) until the tail is full. Merging a full tail takes O(log N) comparisons per token of
///    the tail and moves up to 4 N bytes. A long append sorts all tokens again: O(N log N).
///  - truncate(): O(1) if it removes only tokens of the tail, O(N) if it also removes sorted tokens.
///
/// Memory: 8 bytes per token, and a further 0.5 bytes per token or 2 KiB, whichever is more. If the index grows token
/// by token, up to a fifth of this memory is unused.
///
/// `max_tokens`: the maximum number of indexed tokens. SuffixArrayIndex has no other limit than that of Position.
template <std::size_t max_tokens>
class BasicSuffixArrayIndex {
 public:
  BasicSuffixArrayIndex() noexcept = default;
  explicit BasicSuffixArrayIndex(const IndexOptions& options) noexcept
      : max_bytes_(options.max_bytes), vocabulary_(options.vocabulary) {}
  BasicSuffixArrayIndex(const BasicSuffixArrayIndex& other) noexcept
      : size_(other.size_),
        max_bytes_(other.max_bytes_),
        vocabulary_(other.vocabulary_),
        tokens_(other.tokens_),
        sorted_(other.sorted_) {
    if (tokens_.size() == other.tokens_.size() && sorted_.size() == other.sorted_.size()) return;
    tokens_.release();
    sorted_.release();
  }
  BasicSuffixArrayIndex(BasicSuffixArrayIndex&& other) noexcept : max_bytes_(other.max_bytes_) { swap(other); }
  BasicSuffixArrayIndex& operator=(BasicSuffixArrayIndex other) noexcept {
    swap(other);
    return *this;
  }
  ~BasicSuffixArrayIndex() = default;

  void swap(BasicSuffixArrayIndex& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(max_bytes_, other.max_bytes_);
    std::swap(vocabulary_, other.vocabulary_);
    tokens_.swap(other.tokens_);
    sorted_.swap(other.sorted_);
    incoming_.swap(other.incoming_);
  }

  /// Appends tokens. Precondition: `tokens` does not point into this index. If there is no memory for all of them, they
  /// are counted, but none of them is stored.
  void append(TokenSpan tokens) noexcept {
    const bool whole = !exhausted();
    size_ += tokens.size();
    if (!whole || !reserve_columns(tokens_.size() + tokens.size(), true)) return;
    for (const Token token : tokens) tokens_.push_reserved(indexed_token(token, tokens_.size(), vocabulary_));
    if (tail() > tail_limit(sorted_.size())) sort_tail();
  }

  void truncate(std::size_t size) noexcept {
    size_ = std::min(size_, size);
    if (size_ >= tokens_.size()) return;
    tokens_.truncate(size_);
    if (sorted_.size() <= size_) return;
    Position* const kept = std::remove_if(sorted_.begin(), sorted_.end(), [this](Position end) { return end > size_; });
    sorted_.truncate(static_cast<std::size_t>(kept - sorted_.begin()));
  }

  /// Forgets all tokens and keeps the memory.
  void clear() noexcept {
    tokens_.clear();
    sorted_.clear();
    size_ = 0;
  }

  /// Reserves memory for `tokens` tokens in total: append() does not allocate up to that size. Errors: out_of_memory,
  /// also if `tokens` is above 2^32 - 1, options.max_bytes is too low or the index is exhausted(). After an error,
  /// append() still grows on demand, unless the index is exhausted().
  Result<void> reserve(std::size_t tokens) noexcept {
    if (exhausted() || !reserve_columns(tokens, false))
      return Error{ErrorCode::out_of_memory,
                   "the index has no room for so many tokens: reserve fewer, or raise max_bytes", tokens, 0};
    return {};
  }

  [[nodiscard]] std::size_t find(const MatchLimits& limits, std::span<Match> out) const noexcept {
    const std::size_t n = limits.shortest;
    if (exhausted() || n == 0 || n > NgramOrders::largest || tokens_.size() <= n) return 0;
    out = out.first(std::min<std::size_t>(limits.candidates, out.size()));
    if (out.empty()) return 0;
    const bool recent = limits.order == MatchLimits::Order::most_recent;
    const std::size_t found = recent ? find_recent(n, out) : find_earliest(n, out);
    const auto further = static_cast<std::uint32_t>(std::max<std::size_t>(limits.longest, n) - n);
    for (Match& match : out.first(found)) {
      match.length = limits.shortest + agreement(tokens(), match.end - n, tokens_.size() - n, further);
    }
    return found;
  }

  /// Returns the indexed tokens: all appended tokens, unless exhausted().
  [[nodiscard]] TokenSpan tokens() const noexcept REPRISE_LIFETIMEBOUND { return {tokens_.data(), tokens_.size()}; }
  [[nodiscard]] bool exhausted() const noexcept { return tokens_.size() < size_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return tokens_.memory_bytes() + sorted_.memory_bytes() + incoming_.memory_bytes();
  }

 private:
  static constexpr std::size_t depth = NgramOrders::largest;

  [[nodiscard]] static constexpr std::size_t tail_limit(std::size_t sorted) noexcept {
    return std::max<std::size_t>(256, sorted / 256);
  }
  /// Returns the size of the largest tail that is merged into `sorted` ends. If the tail is larger, sort_tail() sorts
  /// all ends again.
  [[nodiscard]] static constexpr std::size_t scratch_for(std::size_t sorted) noexcept {
    return std::max<std::size_t>(512, sorted / 8);
  }
  /// Returns the number of tokens in the unsorted tail. sorted_ holds exactly the ends 1 ... sorted_.size().
  [[nodiscard]] std::size_t tail() const noexcept { return tokens_.size() - sorted_.size(); }

  /// Compares the tokens before a with those before b, read backwards, at most `most` of each. Returns a number below 0
  /// if a sorts before b, 0 if they are equal, and a number above 0 otherwise. If one text is a proper suffix of the
  /// other, the shorter one sorts first.
  [[nodiscard]] int compare(std::size_t a, std::size_t b, std::size_t most) const noexcept {
    const Token* data = tokens_.data();
    const std::size_t shared = std::min({a, b, most});
    for (std::size_t i = 1; i <= shared; ++i) {
      if (data[a - i] != data[b - i]) return data[a - i] < data[b - i] ? -1 : 1;
    }
    const std::size_t rest_a = std::min(a, most);
    const std::size_t rest_b = std::min(b, most);
    return rest_a == rest_b ? 0 : rest_a < rest_b ? -1 : 1;
  }
  [[nodiscard]] bool comes_before(Position a, Position b) const noexcept {
    const int order = compare(a, b, depth);
    return order != 0 ? order < 0 : a < b;
  }
  [[nodiscard]] bool ends_alike(std::size_t a, std::size_t n) const noexcept {
    return agreement(tokens(), a, tokens_.size(), static_cast<std::uint32_t>(n)) == n;
  }

  /// Returns the sorted positions whose preceding n tokens equal the last n tokens of the sequence.
  [[nodiscard]] std::span<const Position> occurrences(std::size_t n) const noexcept {
    const std::size_t end = tokens_.size();
    const auto low =
        std::partition_point(sorted_.begin(), sorted_.end(), [&](Position at) { return compare(at, end, n) < 0; });
    const auto high = std::partition_point(low, sorted_.end(), [&](Position at) { return compare(at, end, n) <= 0; });
    return {low, high};
  }

  /// Writes the best of the sorted occurrences to `out`, best first, and returns their number. `better` compares two of
  /// them. Uses a heap with the worst occurrence on top.
  template <class Better>
  [[nodiscard]] std::size_t select(std::size_t n, std::span<Match> out, Better better) const noexcept {
    const auto before = [better](const Match& a, const Match& b) { return better(a.end, b.end); };
    std::size_t found = 0;
    for (const Position end : occurrences(n)) {
      if (end == tokens_.size()) continue;
      if (found < out.size()) {
        out[found++].end = end;
        std::push_heap(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(found), before);
      } else if (better(end, out[0].end)) {
        std::pop_heap(out.begin(), out.end(), before);
        out.back().end = end;
        std::push_heap(out.begin(), out.end(), before);
      }
    }
    std::sort_heap(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(found), before);
    return found;
  }

  // All ends in the tail are more recent than all sorted ends.

  [[nodiscard]] std::size_t find_recent(std::size_t n, std::span<Match> out) const noexcept {
    std::size_t found = 0;
    for (std::size_t at = tokens_.size(); at-- > std::max(sorted_.size() + 1, n) && found < out.size();) {
      if (ends_alike(at, n)) out[found++].end = static_cast<Position>(at);
    }
    if (found == out.size()) return found;
    return found + select(n, out.subspan(found), [](Position a, Position b) { return a > b; });
  }

  [[nodiscard]] std::size_t find_earliest(std::size_t n, std::span<Match> out) const noexcept {
    std::size_t found = select(n, out, [](Position a, Position b) { return a < b; });
    for (std::size_t at = std::max(sorted_.size() + 1, n); at < tokens_.size() && found < out.size(); ++at) {
      if (ends_alike(at, n)) out[found++].end = static_cast<Position>(at);
    }
    return found;
  }

  void sort_tail() noexcept {
    const auto before = [this](Position a, Position b) { return comes_before(a, b); };
    const std::size_t old = sorted_.size();
    const std::size_t added = tail();
    // For so many ends, sorting everything again is cheaper than merging.
    const bool again = added > scratch_for(old);
    detail::Buffer<Position>& target = again ? sorted_ : incoming_;
    for (std::size_t end = old + 1; end <= tokens_.size(); ++end) target.push_reserved(static_cast<Position>(end));
    std::sort(target.begin(), target.end(), before);
    if (again) return;

    // Inserts the ends from the greatest down. The ends after an insertion point move right by the number of ends still
    // to insert.
    static_cast<void>(sorted_.resize(old + added, 0));
    Position* const data = sorted_.data();
    std::size_t open = old;
    for (std::size_t left = added; left > 0; --left) {
      const Position entering = incoming_[left - 1];
      const auto place = static_cast<std::size_t>(std::upper_bound(data, data + open, entering, before) - data);
      if (place < open) std::memmove(data + place + left, data + place, (open - place) * sizeof(Position));
      data[place + left - 1] = entering;
      open = place;
    }
    incoming_.clear();
  }

  /// Reserves memory for `wanted` tokens, their sorted ends, and the scratch of sort_tail(). If `growing`, tries to
  /// reserve a quarter more than before. Returns false if memory runs out, or if max_bytes or max_tokens does not allow
  /// it.
  [[nodiscard]] bool reserve_columns(std::size_t wanted, bool growing) noexcept {
    const std::size_t capacity = std::min(tokens_.capacity(), sorted_.capacity());
    if (wanted <= capacity && incoming_.capacity() >= scratch_for(wanted)) return true;
    const std::size_t generous = growing ? std::max<std::size_t>({wanted, capacity + capacity / 4, 16}) : wanted;
    for (const std::size_t size : {generous, wanted}) {
      const std::size_t scratch = scratch_for(size);
      if (size > max_tokens || size * (sizeof(Token) + sizeof(Position)) + scratch * sizeof(Position) > max_bytes_) {
        continue;
      }
      if (tokens_.reserve(size) && sorted_.reserve(size) && incoming_.reserve(scratch)) return true;
    }
    return false;
  }

  std::size_t size_ = 0;  // tokens appended, including dropped ones
  std::size_t max_bytes_ = unlimited;
  std::uint32_t vocabulary_ = IndexOptions{}.vocabulary;
  detail::Buffer<Token> tokens_;
  detail::Buffer<Position>
      sorted_;  // the ends 1 ... sorted_.size(), ordered by the 32 tokens before them, then by position
  detail::Buffer<Position> incoming_;  // the tail while it is merged; empty otherwise
};

}  // namespace detail

/// An index for every n at once; see detail::BasicSuffixArrayIndex for its method, cost and memory.
using SuffixArrayIndex = detail::BasicSuffixArrayIndex<std::numeric_limits<Position>::max()>;

static_assert(LookupIndex<SuffixArrayIndex>);

}}  // namespace reprise
