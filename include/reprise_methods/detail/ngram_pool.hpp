// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Stores the latest n-grams by their first token, in a table of fixed size. Each token maps to one place in the table,
/// which it may share with other tokens. A full place evicts the n-gram that was added longest ago. Lookups compare the
/// token itself, so n-grams of other tokens are never returned.
///
/// Cost: add() and find() read one place, that is, at most most_ways n-grams. Memory: 48 bytes per n-gram. Only
/// prepare() allocates. Without memory, nothing is stored or found. Threads: one at a time.
class NgramPool {
 public:
  static constexpr std::size_t most_following = 7;  ///< maximum number of tokens after the first
  static constexpr std::size_t most_ways = 16;
  static constexpr std::size_t most_places = std::size_t{1} << 24;

  struct Ngram {
    std::uint64_t added = 0;  ///< serial number of this n-gram's latest addition; 0: vacant
    Token first = 0;
    std::uint32_t times = 0;  ///< number of additions since this n-gram entered the pool
    std::array<Token, most_following> following{};
  };

  /// `following`: number of tokens after the first, 1 to most_following. `ways`: number of n-grams per place, 1 to
  /// most_ways. `ngrams`: maximum number of n-grams in the pool, `ways` to most_places x `ways`.
  NgramPool(std::size_t following, std::size_t ways, std::size_t ngrams, std::uint64_t key) noexcept
      : following_(following), ways_(ways), places_(std::bit_floor(ngrams / ways)), key_(key) {
    REPRISE_EXPECTS(following >= 1 && following <= most_following && ways >= 1 && ways <= most_ways && places_ >= 1 &&
                    ngrams <= most_places * ways);
  }

  /// Empties the pool. The first call also allocates its memory.
  void prepare() noexcept {
    static_cast<void>(table_.resize(places_ * ways_, Ngram{}));
    std::fill(table_.begin(), table_.end(), Ngram{});
    clock_ = 0;
  }
  /// Adds the n-gram of `first` and `following`. Does nothing unless `following` has the length that the pool keeps.
  void add(Token first, TokenSpan following) noexcept {
    if (table_.empty() || following.size() != following_) return;
    const std::span<Ngram> place = place_of(first);
    Ngram* oldest = place.data();
    for (Ngram& ngram : place) {
      if (ngram.added != 0 && ngram.first == first &&
          std::equal(following.begin(), following.end(), ngram.following.begin())) {
        ngram.added = ++clock_;
        ++ngram.times;
        return;
      }
      if (ngram.added < oldest->added) oldest = &ngram;
    }
    *oldest = {.added = ++clock_, .first = first, .times = 1};
    std::copy(following.begin(), following.end(), oldest->following.begin());
  }
  /// Writes pointers to the n-grams that begin with `first`, latest first, as far as `out` has room. Returns their
  /// number. The pointers are valid until add() or prepare().
  std::size_t find(Token first, std::span<const Ngram*> out) noexcept {
    if (table_.empty()) return 0;
    std::array<const Ngram*, most_ways> found{};
    std::size_t count = 0;
    for (const Ngram& ngram : place_of(first)) {
      if (ngram.added == 0 || ngram.first != first) continue;
      std::size_t at = count++;
      for (; at > 0 && found[at - 1]->added < ngram.added; --at) found[at] = found[at - 1];
      found[at] = &ngram;
    }
    count = std::min(count, out.size());
    std::copy_n(found.begin(), count, out.begin());
    return count;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return places_ * ways_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return table_.memory_bytes(); }

 private:
  [[nodiscard]] std::span<Ngram> place_of(Token first) noexcept {
    const std::size_t place = static_cast<std::size_t>(token_hash(key_, first)) & (places_ - 1);
    return {table_.data() + place * ways_, ways_};
  }

  std::size_t following_;
  std::size_t ways_;
  std::size_t places_;
  std::uint64_t key_;
  std::uint64_t clock_ = 0;
  Buffer<Ngram> table_;
};

}}}  // namespace reprise::detail
