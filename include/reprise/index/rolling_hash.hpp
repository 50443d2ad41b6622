// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/column.hpp"
#include "reprise/index/detail/ngram_chain.hpp"
#include "reprise/index/detail/ngram_table.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// Links every position to the previous occurrence of the same n tokens, for each order n in IndexOptions::orders.
/// append() finds that occurrence in a hash table of the distinct n-grams. find() therefore needs no hashing: it
/// follows the links from the end of the context, and every link leads to an exact occurrence.
///
/// Cost per order n: append() and truncate() touch one table entry and one earlier position per token. find() visits at
/// most limits.candidates occurrences and compares at most limits.longest tokens of each, regardless of the length of
/// the context.
///
/// Growth: shortly before a table or an array is full, appends move it to larger memory in parts. One append then takes
/// some tens of microseconds more, and once also the time to free the old memory. Growth in one step takes time linear
/// in the context. It remains for appends of more than 32 tokens, with max_bytes, at the end of a reservation, and in
/// the first append to a copy. An append of more than 32 tokens also ends the moves that are due, so that the next
/// short append has a part to move, never a whole table. reserve() avoids all growth.
///
/// Memory per token: 4 bytes. Each order adds 4 bytes (8 with options.earliest), and normally 6.7 to 10 bytes per
/// distinct n-gram. reserve() or a long append() can make a table larger. If the index grows token by token, up to a
/// fifth of the per-token part is unused. While a table or an array moves, its old memory counts too: up to 7 bytes per
/// distinct n-gram of one order, or 4 bytes per token.
///
/// Work is bounded, also for text that is constructed to collide under a known key. One table operation reads at most
/// 128 slots and compares at most 32 n-grams. After that it gives up, and the occurrences of that n-gram are not found
/// until the table is rebuilt. Text that is not constructed for the key practically never reaches this bound
/// (docs/decisions/0003). A secret key prevents the misses, but the hash is not cryptographic.
///
/// Method: prompt lookup (Saxena 2023) over hash chains like those of LZ77 compressors (zlib), but with one chain per
/// distinct n-gram.
///
/// `max_tokens`: the maximum number of indexed tokens. RollingHashIndex has no other limit than that of Position.
template <std::size_t max_tokens>
class BasicRollingHashIndex {
 public:
  BasicRollingHashIndex() noexcept : BasicRollingHashIndex(IndexOptions{}) {}
  REPRISE_COLD explicit BasicRollingHashIndex(const IndexOptions& options) noexcept : options_(options) {
    for (std::size_t i = 0; i < options.orders.size(); ++i) {
      chains_[i] = NgramChain(options.orders[i], options.key, options.earliest);
    }
  }
  REPRISE_COLD BasicRollingHashIndex(const BasicRollingHashIndex& other) noexcept
      : options_(other.options_), size_(other.size_), tokens_(other.tokens_), chains_(other.chains_) {
    bool complete = tokens_.size() == other.tokens_.size();
    for (std::size_t i = 0; i < chains_.size(); ++i) complete &= chains_[i].same_size_as(other.chains_[i]);
    if (!complete) forget();
  }
  BasicRollingHashIndex(BasicRollingHashIndex&& other) noexcept : BasicRollingHashIndex(other.options_) { swap(other); }
  BasicRollingHashIndex& operator=(BasicRollingHashIndex other) noexcept {
    swap(other);
    return *this;
  }
  ~BasicRollingHashIndex() = default;

  void swap(BasicRollingHashIndex& other) noexcept {
    std::swap(options_, other.options_);
    std::swap(size_, other.size_);
    std::swap(reserved_, other.reserved_);
    std::swap(tokens_, other.tokens_);
    std::swap(chains_, other.chains_);
  }

  /// Appends tokens. One call with many tokens is cheaper than one call per token, because cache misses overlap.
  /// Precondition: `tokens` does not point into this index. Tokens that do not fit are counted but not stored.
  void append(TokenSpan tokens) noexcept {
    const bool whole = !exhausted();
    size_ += tokens.size();
    if (!whole) return;
    tokens = tokens.first(std::min(tokens.size(), max_tokens - tokens_.size()));
    const bool long_append = tokens.size() > NgramChain::batch_size;
    if (!long_append) move(tokens.size());
    if (!reserve_columns(tokens_.size() + tokens.size(), true)) return;
    while (!tokens.empty()) {
      const TokenSpan batch = tokens.first(std::min(tokens.size(), NgramChain::batch_size));
      for (NgramChain& chain : chains()) {
        const NgramTable& table = chain.table();
        if (table.room() < table.distinct() + batch.size() && !grow(chain, batch.size(), tokens.size())) return;
      }
      append_batch(batch);
      tokens = tokens.subspan(batch.size());
    }
    // So much room is free afterwards that short appends can move everything in parts.
    while (long_append && tokens_.size() > reserved_ && options_.max_bytes == unlimited && move_part(unlimited)) {
    }
  }

  void truncate(std::size_t size) noexcept {
    size_ = std::min(size_, size);
    if (size_ >= tokens_.size()) return;
    for (NgramChain& chain : chains()) chain.truncate(this->tokens(), size_);
    tokens_.truncate(size_);
  }

  /// Forgets all tokens. Keeps the memory unless max_bytes is set: with a limit, memory kept from one sequence could
  /// leave too little for the next.
  void clear() noexcept {
    if (options_.max_bytes != unlimited) {
      forget();
      size_ = 0;
      return;
    }
    for (NgramChain& chain : chains()) chain.clear(this->tokens());
    tokens_.truncate(0);
    size_ = 0;
  }

  /// Reserves memory for `tokens` tokens in total, even if none of their n-grams repeats: append() does not allocate up
  /// to that size. Errors: out_of_memory, also if `tokens` is above 2^32 - 1, options.max_bytes is too low or the index
  /// is exhausted(). After an error, append() still grows on demand, unless the index is exhausted().
  REPRISE_COLD Result<void> reserve(std::size_t tokens) noexcept {
    const Error no_room{ErrorCode::out_of_memory,
                        "the index has no room for so many tokens: reserve fewer, or raise max_bytes", tokens, 0};
    if (exhausted() || tokens > max_tokens || !affordable(tokens) || !reserve_columns(tokens, false)) return no_room;
    for (NgramChain& chain : chains()) {
      if (chain.table().room() < tokens && !resize_table(chain, {tokens})) return no_room;
    }
    reserved_ = std::max(reserved_, tokens);
    return {};
  }

  [[nodiscard]] std::size_t find(const MatchLimits& limits, std::span<Match> out) const noexcept {
    if (exhausted()) return 0;
    for (const NgramChain& chain : chains()) {
      if (chain.n() == limits.shortest) return chain.find(tokens(), limits, out);
    }
    return 0;
  }

  /// See I7 of NgramIndex.
  [[nodiscard]] Position latest(TokenSpan ngram) const noexcept {
    if (exhausted()) return 0;
    for (const NgramChain& chain : chains()) {
      if (chain.n() == ngram.size()) return chain.latest(tokens(), ngram);
    }
    return 0;
  }

  /// Returns the indexed tokens: all appended tokens, unless exhausted().
  [[nodiscard]] TokenSpan tokens() const noexcept REPRISE_LIFETIMEBOUND { return {tokens_.data(), tokens_.size()}; }
  [[nodiscard]] bool exhausted() const noexcept { return tokens_.size() < size_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    std::size_t bytes = tokens_.memory_bytes();
    for (const NgramChain& chain : chains()) bytes += chain.memory_bytes();
    return bytes;
  }

 private:
  [[nodiscard]] std::span<NgramChain> chains() noexcept { return {chains_.data(), options_.orders.size()}; }
  [[nodiscard]] std::span<const NgramChain> chains() const noexcept { return {chains_.data(), options_.orders.size()}; }

  void append_batch(TokenSpan batch) noexcept {
    const std::size_t begin = tokens_.size();
    for (const Token token : batch) tokens_.push_reserved(indexed_token(token, tokens_.size(), options_.vocabulary));
    // Each step runs over all orders, so that the cache misses of the orders overlap even for a single token.
    std::array<NgramChain::Hashes, NgramOrders::capacity> hashes;
    const std::size_t count = options_.orders.size();
    for (std::size_t i = 0; i < count; ++i) chains_[i].hash_batch(tokens(), begin, hashes[i]);
    for (std::size_t i = 0; i < count; ++i) chains_[i].fetch_batch(tokens(), begin, hashes[i]);
    for (std::size_t i = 0; i < count; ++i) chains_[i].link_batch(tokens(), begin, hashes[i]);
  }

  /// Moves a part of a table or an array with little free room, before `more` tokens are appended. Only one moves at a
  /// time, so that little memory is used twice. Does this for every eighth token, because the checks take time.
  void move(std::size_t more) noexcept {
    const std::size_t size = tokens_.size();
    const std::size_t batch = (size + more) / 8 * 8 - size / 8 * 8;
    if (batch == 0 || size + more <= reserved_ || options_.max_bytes != unlimited) return;
    static_cast<void>(move_part(batch));
  }

  /// Moves a part before `batch` tokens are appended; see to_move(). Returns false if nothing has to move or memory
  /// runs out.
  bool move_part(std::size_t batch) noexcept {
    for (NgramChain& chain : chains())
      if (chain.moving() && chain.move(tokens(), batch)) return true;
    if (tokens_.move(batch)) return true;
    for (NgramChain& chain : chains())
      if (chain.move_links(batch)) return true;
    for (NgramChain& chain : chains())
      if (chain.move(tokens(), batch)) return true;
    return false;
  }

  /// Returns true if `tokens` tokens with their links and tables fit in max_bytes. Check this before the first
  /// allocation, because the first allocation could leave too little memory for the last one.
  [[nodiscard]] bool affordable(std::size_t tokens) const noexcept {
    const std::size_t links = chains().size() * NgramChain::link_bytes(options_.earliest);
    const std::size_t tables = chains().size() * NgramTable::bytes_for(NgramTable::slots_for(tokens));
    return tokens * (sizeof(Token) + links) + tables <= options_.max_bytes;
  }

  /// Reserves memory for `wanted` tokens and their links. If `growing`, tries to reserve a quarter more than before.
  /// Returns false if memory runs out or max_bytes does not allow it.
  [[nodiscard]] REPRISE_COLD bool reserve_columns(std::size_t wanted, bool growing) noexcept {
    std::size_t capacity = tokens_.capacity();
    std::size_t tables = 0;
    for (const NgramChain& chain : chains()) {
      capacity = std::min(capacity, chain.link_capacity());
      tables += chain.table().memory_bytes();
    }
    if (wanted <= capacity) return true;
    const std::size_t bytes = sizeof(Token) + chains().size() * NgramChain::link_bytes(options_.earliest);
    const std::size_t most = tables > options_.max_bytes ? 0 : (options_.max_bytes - tables) / bytes;
    const std::size_t generous =
        growing ? std::max<std::size_t>({wanted + spare_room(wanted), capacity + capacity / 4, 16}) : wanted;
    for (const std::size_t size : {generous, wanted}) {
      if (size > most) continue;
      bool done = tokens_.reserve(size);
      for (NgramChain& chain : chains()) done = done && chain.reserve_links(size);
      if (done) return true;
    }
    return false;
  }

  /// Enlarges a table so that at least `batch` more n-grams fit. Returns false if memory runs out or max_bytes does not
  /// allow it. `remaining`: number of tokens that this append() still has to add.
  [[nodiscard]] bool grow(NgramChain& chain, std::size_t batch, std::size_t remaining) noexcept {
    const std::size_t distinct = chain.table().distinct();
    const std::size_t room = chain.table().room();
    // Assumes that the share of distinct n-grams stays the same, so that a long append rebuilds its tables only a few
    // times. Some room is left for moving the table afterwards.
    const std::size_t all = tokens_.size() + remaining;
    const std::uint64_t expected =
        (tokens().empty() ? all : std::uint64_t{all} * distinct / tokens_.size()) + spare_room(all);
    const auto leap =
        static_cast<std::size_t>(std::min<std::uint64_t>(expected, std::max<std::size_t>(4 * room, 4096)));
    return resize_table(
        chain, {std::max<std::size_t>({distinct + batch, room + room / 2, leap, 32}), distinct + batch + distinct / 8});
  }

  /// Rebuilds a table with the first size in `choices` that can be allocated within max_bytes; sizes are numbers of
  /// n-grams. Returns false if none can. In that case it restores the old table; if that fails too, it drops all
  /// indexed tokens.
  [[nodiscard]] REPRISE_COLD bool resize_table(NgramChain& chain, std::initializer_list<std::size_t> choices) noexcept {
    const std::size_t old_slots = chain.table().slots();
    const std::size_t others = memory_bytes() - chain.table().memory_bytes();
    bool replaced = false;
    for (const std::size_t room : choices) {
      const std::size_t slots = NgramTable::slots_for(room);
      if (others + NgramTable::bytes_for(slots) > options_.max_bytes) continue;
      if (chain.refill(tokens(), slots)) return true;
      replaced = true;
    }
    if (replaced && old_slots != 0 && !chain.refill(tokens(), old_slots)) forget();
    return false;
  }

  /// Drops all indexed tokens and releases the memory. `size_` does not change, so the index is exhausted() unless it
  /// was empty.
  void forget() noexcept {
    for (NgramChain& chain : chains()) chain.release();
    tokens_ = {};
    reserved_ = 0;
  }

  IndexOptions options_;
  std::size_t size_ = 0;      // tokens appended, including dropped ones
  std::size_t reserved_ = 0;  // see reserve(); a copy has no reservation
  Column<Token> tokens_;
  std::array<NgramChain, NgramOrders::capacity> chains_;
};

}  // namespace detail

/// The default index; see detail::BasicRollingHashIndex for its method, cost and memory.
using RollingHashIndex = detail::BasicRollingHashIndex<std::numeric_limits<Position>::max()>;

static_assert(NgramIndex<RollingHashIndex>);

}}  // namespace reprise
