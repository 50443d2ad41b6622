// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/detail/prefetch.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/column.hpp"
#include "reprise/index/detail/ngram_table.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Compares the n tokens before a position with those before `end`.
struct SameNgram {
  const Token* tokens;
  Position end;
  std::uint32_t n;
  bool operator()(Position other) const noexcept {
    return std::equal(tokens + end - n, tokens + end, tokens + other - n);
  }
};

/// The occurrences of the n-grams of one length, linked into chains. N-grams that NgramTable does not store are left
/// out. This class is a part of RollingHashIndex, which owns the tokens and manages the memory limit. As in Match, an
/// occurrence is identified by its end position. The links of the occurrence that ends at e are stored at index e - 1.
/// Each token adds one element, so the links grow and shrink with the tokens.
///
/// A table can grow without a stall: move() enters some n-grams in a larger table, in the order of the text. Lookups
/// use the smaller table until the larger one has the n-grams of all tokens and replaces it. truncate() erases from
/// both.
class NgramChain {
 public:
  /// The maximum number of tokens in a batch.
  static constexpr std::size_t batch_size = 32;
  using Hashes = std::array<std::uint64_t, batch_size>;

  NgramChain() noexcept = default;
  NgramChain(std::uint32_t n, std::uint64_t key, bool forward) noexcept : n_(n), forward_(forward), key_(key) {}

  [[nodiscard]] std::uint32_t n() const noexcept { return n_; }
  [[nodiscard]] const NgramTable& table() const noexcept { return table_; }
  /// Returns true while n-grams move.
  [[nodiscard]] bool moving() const noexcept { return larger_.table.slots() != 0; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return table_.memory_bytes() + larger_.table.memory_bytes() + previous_.memory_bytes() + next_.memory_bytes();
  }
  [[nodiscard]] static constexpr std::size_t link_bytes(bool forward) noexcept {
    return forward ? 2 * sizeof(Position) : sizeof(Position);
  }
  [[nodiscard]] std::size_t link_capacity() const noexcept {
    return forward_ ? std::min(previous_.capacity(), next_.capacity()) : previous_.capacity();
  }
  [[nodiscard]] bool reserve_links(std::size_t tokens) noexcept {
    return previous_.reserve(tokens) && (!forward_ || next_.reserve(tokens));
  }
  /// See Column::move().
  bool move_links(std::size_t batch) noexcept { return previous_.move(batch) || next_.move(batch); }
  /// Returns true if the sizes are equal. For a copy, false means that its allocation failed.
  [[nodiscard]] bool same_size_as(const NgramChain& other) const noexcept {
    return table_.same_size_as(other.table_) && larger_.table.same_size_as(other.larger_.table) &&
           previous_.size() == other.previous_.size() && next_.size() == other.next_.size();
  }

  // Appending a batch, tokens[begin...], takes three steps. Each step prefetches the memory that the next one reads.
  // Only fetch_batch() is optional.

  /// Hashes the n-grams and prefetches their slots.
  void hash_batch(TokenSpan tokens, std::size_t begin, Hashes& hashes) noexcept {
    hash_batch(hash_, table_, tokens, begin, hashes);
  }
  /// Prefetches the tokens of the occurrences that link_batch() will probably compare.
  void fetch_batch(TokenSpan tokens, std::size_t begin, const Hashes& hashes) const noexcept {
    for (std::size_t i = std::max<std::size_t>(begin, n_ - 1); i < tokens.size(); ++i) {
      const Position likely = table_.guess(hashes[i - begin]);
      if (likely != 0) prefetch(tokens.data() + likely - n_);
    }
  }
  /// Links each n-gram to its previous occurrence. An n-gram that the table does not store stays without links.
  /// Precondition: the table and the links have room for them.
  void link_batch(TokenSpan tokens, std::size_t begin, const Hashes& hashes) noexcept {
    for (std::size_t i = begin; i < tokens.size(); ++i) {
      const auto end = static_cast<Position>(i + 1);
      const Position before = end < n_ ? 0 : table_.replace(hashes[i - begin], end, SameNgram{tokens.data(), end, n_});
      previous_.push_reserved(before);
      if (!forward_) continue;
      next_.push_reserved(end);
      if (before != 0) link_forward(before, end);
    }
  }

  /// Forgets all but the first `size` tokens, the last token first. Precondition: `tokens` still holds all of the
  /// tokens.
  void truncate(TokenSpan tokens, std::size_t size) noexcept {
    for (std::size_t i = previous_.size(); i-- > size;) {
      if (i + 1 >= n_) {
        const Position before = previous_[i];
        table_.undo(hash_.value(), static_cast<Position>(i + 1), before);
        if (i < larger_.size) larger_.table.undo(hash_.value(), static_cast<Position>(i + 1), before);
        if (forward_ && before != 0) next_.set(before - 1, next_[i]);
      }
      retreat(tokens, i);
    }
    if (size < larger_.size) {  // the move goes on: if each cut ended it, the table could become full first
      larger_.size = size;
      larger_.hash = hash_;
    }
    previous_.truncate(size);
    next_.truncate(size);
  }

  /// Forgets everything and keeps the memory, except for that of a move.
  void clear(TokenSpan tokens) noexcept {
    larger_ = {};
    // Wiping writes one byte per slot. After a large reserve(), this costs far more than removing a few tokens one by
    // one.
    if (tokens.size() < table_.slots() / 64) return truncate(tokens, 0);
    table_.clear();
    hash_ = {};
    previous_.truncate(0);
    next_.truncate(0);
  }

  /// Forgets everything and releases the memory.
  void release() noexcept { *this = NgramChain(n_, key_, forward_); }

  /// Enters all n-grams in a new table of `slots` slots. Also links n-grams that the old table did not store. Returns
  /// false if memory runs out. In that case the chain has no table. If `tokens` is not empty, the next call that
  /// changes the chain must then be refill() or release().
  [[nodiscard]] bool refill(TokenSpan tokens, std::size_t slots) noexcept {
    const bool complete = table_.slots() != 0 && table_.complete();  // no slots: an earlier refill() failed
    table_.release();
    larger_ = {};
    if (!larger_.table.reset(slots)) return false;
    enter(tokens, tokens.size(), complete);
    return true;
  }

  /// Enters some n-grams in a larger table before `batch` tokens are appended; see to_move(). Returns false if none has
  /// to move or memory runs out.
  bool move(TokenSpan tokens, std::size_t batch) noexcept {
    const std::size_t room = table_.room();
    // The work depends on the tokens. So even a text of few distinct n-grams needs some room, to move in time.
    const std::size_t count = to_move(tokens.size(), room, table_.distinct(), batch, tokens.size() / 64);
    if (count == 0) {
      if (moving()) larger_ = {};  // a truncation has made room: a move that waits would hold memory for long
      return false;
    }
    const std::size_t slots = NgramTable::slots_for(room + std::max(room / 8 * 3, tokens.size() / 32));
    constexpr std::size_t cleared = 32;  // slots cleared in the time in which one token is entered
    if (!larger_.table.prepare(moving() ? larger_.table.slots() : slots, cleared * count)) return moving();
    enter(tokens, count, table_.complete());
    return true;
  }

  [[nodiscard]] std::size_t find(TokenSpan tokens, const MatchLimits& limits, std::span<Match> out) const noexcept {
    const bool recent = limits.order == MatchLimits::Order::most_recent;
    if (tokens.size() < n_ || (!recent && !forward_)) return 0;
    // First follows the chain, because each of its reads depends on the previous one. Prefetches the tokens on the way.
    const auto last = static_cast<Position>(tokens.size());
    const Position* links = recent ? previous_.data() : next_.data();
    const Position stop = recent ? 0 : last;
    const std::size_t most = std::min<std::size_t>(limits.candidates, out.size());
    std::size_t found = 0;
    for (Position end = links[last - 1]; end != stop && found < most; end = links[end - 1]) {
      prefetch(tokens.data() + end - n_);
      out[found++].end = end;
    }
    const std::uint32_t further = std::max(limits.longest, n_) - n_;
    for (Match& match : out.first(found)) {
      match.length = n_ + agreement(tokens, match.end - n_, last - n_, further);
    }
    return found;
  }

  /// Returns the end of the last occurrence of these n tokens, or 0 if there is none.
  [[nodiscard]] Position latest(TokenSpan tokens, TokenSpan ngram) const noexcept {
    if (table_.slots() == 0) return 0;
    CyclicHash hash;
    for (const Token token : ngram) hash.advance(hash_of(token));
    return table_.last(hash.value(), [data = tokens.data(), ngram](Position end) {
      return std::equal(ngram.begin(), ngram.end(), data + end - ngram.size());
    });
  }

 private:
  /// Makes `end` the next occurrence after `before`, the last one so far.
  void link_forward(Position before, Position end) noexcept {
    next_.set(end - 1, next_[before - 1]);
    next_.set(before - 1, end);
  }
  void hash_batch(CyclicHash& hash, const NgramTable& table, TokenSpan tokens, std::size_t begin,
                  Hashes& hashes) const noexcept {
    for (std::size_t i = begin; i < tokens.size(); ++i) {
      hashes[i - begin] = advance(hash, tokens, i);
      table.prefetch_home(hashes[i - begin]);
    }
  }
  /// Enters up to `count` more tokens in the larger table. Once it has all tokens, it replaces the current one.
  /// `complete`: the current table has stored all n-grams.
  void enter(TokenSpan tokens, std::size_t count, bool complete) noexcept {
    Hashes hashes;
    const std::size_t until = larger_.size + std::min(count, tokens.size() - larger_.size);
    while (larger_.size < until) {
      const std::size_t begin = std::exchange(larger_.size, std::min(until, larger_.size + batch_size));
      hash_batch(larger_.hash, larger_.table, tokens.first(larger_.size), begin, hashes);
      const std::size_t from = std::max<std::size_t>(begin, n_ - 1);
      if (complete) {
        for (std::size_t i = from; i < larger_.size; ++i)
          larger_.table.restore(hashes[i - begin], static_cast<Position>(i + 1), previous_[i]);
      } else {
        for (std::size_t i = from; i < larger_.size; ++i)
          relink(tokens, hashes[i - begin], static_cast<Position>(i + 1));
      }
    }
    if (larger_.size == tokens.size()) table_ = std::exchange(larger_, {}).table;
  }
  /// Enters the n-gram that ends at `end` in the larger table. The current table may not have stored it.
  void relink(TokenSpan tokens, std::uint64_t hash, Position end) noexcept {
    const Position known = previous_[end - 1];
    if (known != 0) return larger_.table.restore(hash, end, known);
    const Position before = larger_.table.replace(hash, end, SameNgram{tokens.data(), end, n_});
    if (before == 0) return;
    previous_.set(end - 1, before);
    if (forward_) link_forward(before, end);
  }

  [[nodiscard]] std::uint64_t hash_of(Token token) const noexcept { return token_hash(key_, token); }

  std::uint64_t advance(CyclicHash& hash, TokenSpan tokens, std::size_t i) const noexcept {
    if (i < n_) {
      hash.advance(hash_of(tokens[i]));
    } else {
      hash.advance(hash_of(tokens[i]), hash_of(tokens[i - n_]), n_);
    }
    return hash.value();
  }
  void retreat(TokenSpan tokens, std::size_t i) noexcept {
    if (i < n_) {
      hash_.retreat(hash_of(tokens[i]));
    } else {
      hash_.retreat(hash_of(tokens[i]), hash_of(tokens[i - n_]), n_);
    }
  }

  /// A table of the n-grams of the first `size` tokens.
  struct Larger {
    NgramTable table;
    CyclicHash hash;  // hash of the last n of these tokens
    std::size_t size = 0;
  };

  std::uint32_t n_ = 1;
  bool forward_ = false;  // next_ is maintained
  std::uint64_t key_ = 0;
  CyclicHash hash_;            // hash of the last n tokens
  NgramTable table_;           // the distinct n-grams, each with the end of its last occurrence
  Larger larger_;              // has slots while n-grams move
  Column<Position> previous_;  // the end of the previous occurrence; 0: none
  Column<Position> next_;      // the end of the next occurrence; the last one links to the first
};

}}}  // namespace reprise::detail
