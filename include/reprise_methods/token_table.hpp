// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "reprise/core/detail/prefetch.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

/// Settings of TokenTable. All have working defaults.
struct TokenTableOptions {
  std::uint32_t ngram = 16;  ///< number of tokens that predict the next one, 1..32
  /// Limit on the heap memory of the table, in bytes. Each n-gram takes 8 bytes. make() refuses more than 128 GiB.
  std::size_t bytes = std::size_t{16} << 20;
  /// Hash key. If the writers do not trust each other, it must be secret, random, and different for each table.
  std::uint64_t key = IndexOptions{}.key;
};

namespace detail {

/// A table of constant size, with lookups in constant time. It maps the hash of the last n tokens to the token that
/// followed them when they were last learned. It is a rolling-hash token memory, as in llama.cpp's ngram-mod (PR 19164)
/// and mlx-lm's PR 1297, but with a key, with fingerprints, and without resets.
///
/// An entry is one 64-bit word: 32 bits of the hash as a fingerprint, and the token. Four entries make a bucket of 32
/// bytes. A learned n-gram moves to the front of its bucket, whether it is new or known. A full bucket evicts the entry
/// that was learned longest ago (counted in Counts::evicted); there is no other ageing. No reset is needed
/// when the table is nearly full: only a table without fingerprints returns tokens of other n-grams as it fills. A
/// reset after low acceptance would be wrong: a run of poor drafts in one sequence says little about the text of the
/// others. Instead, TokenTableDrafter pauses that sequence.
///
/// For an n-gram that was never learned, find() returns a token with a probability of at most 2^-foreign_bits (2^-30)
/// over random keys. This holds however full the table is, because find() compares only four fingerprints of 32 bits.
/// With n <= 32, two given n-grams have the same hash with a probability of at most 2^-33; see token_hash.hpp. Of the
/// n-grams that token 0 follows, one in 2^32 is not stored, because its entry would read as vacant.
///
/// The key prevents writers from targeting the entries of other writers. While the key is secret, n-grams that no other
/// writer has used evict no more entries than random n-grams would. The key does not prevent a writer from learning
/// another writer's n-grams with different next tokens, nor from filling the table. Text that must not be shared needs
/// its own table. The hash is not cryptographic.
///
/// Cost of learn(): one cache line per token, in batches whose misses overlap. Cost of find(): one cache line. Memory:
/// at most TokenTableOptions::bytes; make() writes to all of it.
///
/// Threads: one writer (learn, clear) and any number of readers (the const functions) at the same time. Readers take no
/// locks and write nothing. They never see part of an entry. They may miss an entry that is being moved within its
/// bucket, which costs a draft. The table object must not be moved while other threads use it.
///
/// TokenTable has 32 fingerprint bits. Tests use fewer, so that fingerprints collide.
template <unsigned fingerprint_bits>
class BasicTokenTable {
  static_assert(fingerprint_bits > 2 && fingerprint_bits <= 32);
  using Word = std::atomic<std::uint64_t>;

 public:
  /// Counts of the n-grams that a TokenTable has learned since it was made.
  struct Counts {
    std::uint64_t added = 0;    ///< new to the table
    std::uint64_t renewed = 0;  ///< known, with the same next token
    std::uint64_t changed = 0;  ///< known, with a different next token, which is overwritten
    std::uint64_t evicted = 0;  ///< overwritten by a new n-gram, because the bucket was full
    std::uint64_t cleared = 0;  ///< calls of clear()
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  using Hash = CyclicHash;  ///< hash of n tokens; hash() computes it, advance() moves it forward by one token
  static constexpr std::uint32_t largest_ngram = NgramOrders::largest;
  static constexpr std::size_t ways = 4;  ///< entries per bucket
  static constexpr unsigned foreign_bits = fingerprint_bits - 2;

  /// Returns an empty table. Errors: invalid_argument if `ngram` is out of range, or `bytes` too small or above its
  /// limit; out_of_memory.
  static Result<BasicTokenTable> make(const TokenTableOptions& options = {}) noexcept {
    if (options.ngram == 0 || options.ngram > largest_ngram)
      return Error{ErrorCode::invalid_argument, "ngram has to be between 1 and 32", options.ngram, largest_ngram};
    if (options.bytes < overhead + bucket_bytes)
      return Error{ErrorCode::invalid_argument, "too few bytes for a single bucket of a TokenTable", options.bytes,
                   overhead + bucket_bytes};
    constexpr std::uint64_t most_bytes =
        (std::uint64_t{1} << 32) * bucket_bytes;  // 32 bits of the hash address a bucket
    if (std::uint64_t{options.bytes} > most_bytes)
      return Error{ErrorCode::invalid_argument, "bytes of a TokenTable is above the limit: pass at most 128 GiB",
                   options.bytes, most_bytes};
    const std::uint64_t buckets = (options.bytes - overhead) / bucket_bytes;
    const auto words = static_cast<std::size_t>(counter_count + buckets * ways);
    std::size_t space = words * sizeof(Word) + alignment;
    Memory memory(::operator new(space, std::nothrow));
    if (memory == nullptr)
      return Error{ErrorCode::out_of_memory, "no memory for a TokenTable of this size", options.bytes, 0};
    BasicTokenTable table(options, buckets, space);
    // Aligned by hand, because few programs that count or limit memory replace the aligned forms of operator new.
    void* first = memory.get();
    auto* begin = static_cast<Word*>(std::align(alignment, words * sizeof(Word), first, space));
    for (std::size_t i = 0; i < words; ++i) ::new (static_cast<void*>(begin + i)) Word(0);
    table.memory_ = std::move(memory);
    table.words_ = begin;
    return table;
  }

  /// For each i >= max(from, n), stores tokens[i] as the token after the n tokens before it. For a growing text, pass
  /// its size at the last call as `from`. Any token value is allowed. Writer only.
  void learn(TokenSpan tokens, std::size_t from = 0) noexcept {
    std::size_t next = std::max<std::size_t>(from, ngram_);
    if (next >= tokens.size()) return;
    Hash hash = this->hash(tokens.first(next));
    Counts counts;
    std::array<std::uint64_t, batch> hashes;  // NOLINT(*-member-init): filled as far as it is read
    while (next < tokens.size()) {
      const std::size_t count = std::min(batch, tokens.size() - next);
      for (std::size_t i = 0; i < count; ++i) {
        hashes[i] = hash.value();
        prefetch(bucket(hashes[i]));
        advance(hash, tokens[next + i], tokens[next + i - ngram_]);
      }
      for (std::size_t i = 0; i < count; ++i) put(hashes[i], tokens[next + i], counts);
      next += count;
    }
    add(counts);
  }

  /// Removes all n-grams. Cost: a write to the whole table. Writer only.
  void clear() noexcept {
    for (std::uint64_t i = 0; i < capacity(); ++i) words_[counter_count + i].store(0, std::memory_order_relaxed);
    bump(cleared_count, 1);
    words_[size_count].store(0, std::memory_order_relaxed);
  }

  /// Returns the token that followed the last n of `tokens` when they were last learned. Returns nullopt if they are
  /// unknown, or if `tokens` has fewer than n tokens.
  [[nodiscard]] std::optional<Token> find(TokenSpan tokens) const noexcept {
    if (tokens.size() < ngram_) return {};
    return find(hash(tokens));
  }
  /// Like find(TokenSpan), for a hash from hash() that advance() moves forward token by token.
  [[nodiscard]] std::optional<Token> find(const Hash& hash) const noexcept {
    const std::uint64_t value = hash.value();
    const Word* const entry = bucket(value);
    for (std::size_t i = 0; i < ways; ++i) {
      // Relaxed: a word holds everything about its n-gram, and nothing else is published with it.
      const std::uint64_t word = entry[i].load(std::memory_order_relaxed);
      if (word >> 32 == fingerprint(value) && word != vacant) return token_of(word);
    }
    return {};
  }
  /// Returns the hash of the last n tokens. Requires at least n tokens.
  [[nodiscard]] Hash hash(TokenSpan tokens) const noexcept {
    Hash hash;
    for (const Token token : tokens.last(ngram_)) hash.advance(token_hash(key_, token));
    return hash;
  }
  /// Advances a hash by one token. `entering` is that token, and `leaving` is the token n places before it.
  void advance(Hash& hash, Token entering, Token leaving) const noexcept {
    hash.advance(token_hash(key_, entering), token_hash(key_, leaving), ngram_);
  }

  [[nodiscard]] std::uint32_t ngram() const noexcept { return ngram_; }
  /// Returns the maximum number of stored n-grams. Evictions begin before the table is full: after `capacity()`
  /// different n-grams, about a fifth of them have been evicted.
  [[nodiscard]] std::uint64_t capacity() const noexcept { return buckets_ * ways; }
  /// Returns the number of stored n-grams.
  [[nodiscard]] std::uint64_t size() const noexcept { return read(size_count); }
  /// Returns the counts since the table was made. Each count is correct; during a write, they may be from different
  /// moments.
  [[nodiscard]] Counts counts() const noexcept {
    return {read(added_count), read(renewed_count), read(changed_count), read(evicted_count), read(cleared_count)};
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t alignment = 64;  // size of a cache line, so that no bucket spans two lines
  static constexpr std::size_t bucket_bytes = ways * sizeof(std::uint64_t);
  static constexpr std::size_t batch = 16;  // number of cache misses that overlap
  static constexpr std::uint64_t vacant = 0;
  // The first words are counters, in a cache line that readers of entries never touch.
  enum Counter : std::size_t { added_count, renewed_count, changed_count, evicted_count, cleared_count, size_count };
  static constexpr std::size_t counter_count = alignment / sizeof(std::uint64_t);
  static constexpr std::size_t overhead = 2 * alignment;

  struct Release {
    void operator()(void* memory) const noexcept { ::operator delete(memory); }
  };
  using Memory = std::unique_ptr<void, Release>;

  BasicTokenTable(const TokenTableOptions& options, std::uint64_t buckets, std::size_t bytes) noexcept
      : key_(options.key), buckets_(buckets), bytes_(bytes), ngram_(options.ngram) {}

  // Bucket and fingerprint use different bits of the hash.
  [[nodiscard]] std::size_t bucket_begin(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(((hash >> 32) * buckets_) >> 32) * ways;
  }
  [[nodiscard]] Word* bucket(std::uint64_t hash) const noexcept { return words_ + counter_count + bucket_begin(hash); }
  static constexpr std::uint64_t fingerprint(std::uint64_t hash) noexcept {
    return hash & ((std::uint64_t{1} << fingerprint_bits) - 1);
  }
  static constexpr Token token_of(std::uint64_t word) noexcept {
    return static_cast<Token>(static_cast<std::uint32_t>(word));
  }

  void put(std::uint64_t hash, Token token, Counts& counts) noexcept {
    const std::uint64_t fresh = fingerprint(hash) << 32 | static_cast<std::uint32_t>(token);
    if (fresh == vacant) return;
    Word* const entry = bucket(hash);
    std::uint64_t old = vacant;
    std::size_t i = 0;
    for (; i < ways; ++i) {
      old = entry[i].load(std::memory_order_relaxed);
      if (old == vacant || old >> 32 == fingerprint(hash)) break;
    }
    if (old == fresh) {
      ++counts.renewed;
      if (i == 0) return;  // keeps the readers' cached copies of this line valid
    } else if (i < ways && old != vacant) {
      ++counts.changed;
    } else {
      ++counts.added;
      counts.evicted += i == ways ? 1 : 0;
    }
    // Shifts entries from the back, within one cache line. Readers search from the front, so they seldom miss a shifted
    // entry.
    for (i = std::min(i, ways - 1); i > 0; --i)
      entry[i].store(entry[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
    entry[0].store(fresh, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t read(Counter counter) const noexcept {
    return words_[counter].load(std::memory_order_relaxed);
  }
  // No fetch_add is needed, because there is only one writer.
  void bump(Counter counter, std::uint64_t by) noexcept {
    words_[counter].store(read(counter) + by, std::memory_order_relaxed);
  }
  void add(const Counts& counts) noexcept {
    bump(added_count, counts.added);
    bump(renewed_count, counts.renewed);
    bump(changed_count, counts.changed);
    bump(evicted_count, counts.evicted);
    bump(size_count, counts.added - counts.evicted);
  }

  Memory memory_;
  Word* words_ = nullptr;
  std::uint64_t key_;
  std::uint64_t buckets_;
  std::size_t bytes_;
  std::uint32_t ngram_;
};

}  // namespace detail

/// A table with 32-bit fingerprints; see detail::BasicTokenTable.
using TokenTable = detail::BasicTokenTable<32>;

}}  // namespace reprise
