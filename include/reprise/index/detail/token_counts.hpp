// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Counts how often each token of a sequence has occurred, and lists the most frequent tokens.
///
/// Cost: add() and remove() touch about one slot of a hash table per token. Whatever the tokens are, a probe reads at
/// most 128 slots, in 8 runs at different places. A token that finds no slot there is not counted. In practice this
/// happens only to tokens that are chosen for the key. A full table is rebuilt at twice its size; reserve() avoids
/// that. If remove() affects a listed token, it searches for the most frequent tokens again. For this search, each
/// block of 512 slots has an upper bound. The search reads all bounds and about 30 blocks. It reads one more block for
/// each removed token that was the most frequent one in its block.
///
/// Memory: 11 to 21 bytes per distinct token. If memory runs out, tokens that are not in the table yet are not counted.
/// Threads: many threads may call const members at once; no other member may run at the same time as any call.
class TokenCounts {
 public:
  struct Entry {
    Token token = 0;
    std::uint32_t count = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// The maximum number of tokens that frequent() returns.
  static constexpr std::size_t most_frequent = 24;

  explicit TokenCounts(std::uint64_t key = 0) noexcept : key_(key) {}

  void add(Token token) noexcept {
    if (table_.empty() && !resize(smallest)) return;
    std::size_t slot = slot_of(token);
    if (!holds(slot)) {
      if (4 * (used_ + 1) > 3 * (mask_ + 1)) {
        if (!resize(2 * (mask_ + 1))) return;
        slot = slot_of(token);
      }
      if (emptied_ != 0) slot = reuse(token, slot);
      if (slot == nowhere) return;
      if (table_[slot].count == 0) ++emptied_;
      table_[slot] = {token, 1};
    }
    if (++table_[slot].count == 2) {
      ++used_;
      --emptied_;
    }
    ++total_;
    raise_bound(slot);
    promote(entry(slot));
  }
  /// Removes one occurrence per token. Precondition: these occurrences were added and have not been removed since.
  void remove(TokenSpan tokens) noexcept {
    bool listed = false;
    for (const Token token : tokens) {
      if (count(token) == 0) continue;
      const std::size_t slot = slot_of(token);
      // The list still holds the old counts, so this finds the first listed token that loses an occurrence.
      listed = listed || !before(list_[listed_ - 1], entry(slot));
      --total_;
      if (--table_[slot].count == 1) {
        --used_;
        ++emptied_;
      }
    }
    looked_at_ = 0;
    if (listed) list_again();
  }
  /// Forgets all counts and keeps the memory.
  void clear() noexcept {
    std::fill(table_.begin(), table_.end(), Entry{});
    used_ = emptied_ = listed_ = 0;
    total_ = 0;
  }
  /// Reserves memory for `distinct` distinct tokens. Errors: out_of_memory; in that case nothing changes.
  Result<void> reserve(std::size_t distinct) noexcept {
    const Error no_memory{ErrorCode::out_of_memory, "no memory to count so many distinct tokens: reserve fewer",
                          distinct, 0};
    if (distinct > unlimited / 8) return no_memory;
    std::size_t wanted = smallest;
    while (3 * wanted < 4 * distinct) wanted *= 2;
    if (wanted > slots() && !resize(wanted)) return no_memory;
    return {};
  }

  [[nodiscard]] std::uint32_t count(Token token) const noexcept {
    if (table_.empty()) return 0;
    const std::size_t slot = slot_of(token);
    return holds(slot) ? table_[slot].count - 1 : 0;
  }
  /// Returns the number of all counted occurrences.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// Returns the most frequent tokens by descending count. Among equal counts, the smaller token is first.
  [[nodiscard]] std::span<const Entry> frequent() const noexcept { return std::span(list_).first(listed_); }
  /// Returns the number of slots and bounds that the last remove() read in its search for the most frequent tokens. For
  /// tests.
  [[nodiscard]] std::size_t looked_at() const noexcept { return looked_at_; }
  /// Returns the number of slots that count(token) reads. For tests.
  [[nodiscard]] std::size_t slots_read(Token token) const noexcept {
    std::size_t read = 0;
    if (table_.empty()) return read;
    static_cast<void>(probe(token, [&](std::size_t slot) { return ++read, ends_probe(slot, token); }));
    return read;
  }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return table_.memory_bytes(); }

 private:
  static constexpr std::size_t smallest = 64;
  static constexpr std::size_t block = 512;
  static constexpr std::size_t run_length = 16;  // the slots of one run
  static constexpr std::size_t most_runs = 8;    // the runs of one probe
  static constexpr std::size_t nowhere = unlimited;

  static bool before(const Entry& a, const Entry& b) noexcept {
    return a.count != b.count ? a.count > b.count : a.token < b.token;
  }
  [[nodiscard]] std::size_t slots() const noexcept { return table_.empty() ? 0 : mask_ + 1; }
  [[nodiscard]] std::span<Entry> bounds() noexcept {
    return std::span(table_.begin(), table_.end()).subspan(mask_ + 1);
  }
  /// True if the slot holds a token, perhaps one that does not occur any more.
  [[nodiscard]] bool holds(std::size_t slot) const noexcept { return slot != nowhere && table_[slot].count != 0; }
  [[nodiscard]] Entry entry(std::size_t slot) const noexcept { return {table_[slot].token, table_[slot].count - 1}; }

  /// Calls done(slot) for the slots of the probe, in order, until it returns true. Returns that slot, or `nowhere`.
  template <class Done>
  [[nodiscard]] std::size_t probe(Token token, Done done) const noexcept {
    std::uint64_t hash = token_hash(key_, token);
    for (std::size_t run = 0; run < most_runs; ++run, hash = spread(hash)) {
      std::size_t slot = static_cast<std::size_t>(hash) & mask_;
      for (std::size_t left = run_length; left > 0; --left, slot = (slot + 1) & mask_)
        if (done(slot)) return slot;
    }
    return nowhere;
  }
  [[nodiscard]] bool ends_probe(std::size_t slot, Token token) const noexcept {
    return table_[slot].count == 0 || table_[slot].token == token;
  }
  /// Returns the slot of the token, or the vacant slot at which the probe for it ends. Returns `nowhere` if the probe
  /// gives up.
  [[nodiscard]] std::size_t slot_of(Token token) const noexcept {
    return probe(token, [this, token](std::size_t slot) { return ends_probe(slot, token); });
  }
  /// Returns the first slot on the way to `vacant` whose token does not occur any more, or else `vacant`. remove()
  /// never makes a slot vacant, because a probe for another token may have passed it.
  [[nodiscard]] std::size_t reuse(Token token, std::size_t vacant) const noexcept {
    return probe(token, [this, vacant](std::size_t slot) { return slot == vacant || table_[slot].count == 1; });
  }
  [[nodiscard]] bool resize(std::size_t wanted) noexcept {
    Buffer<Entry> old;
    const std::size_t size = wanted + (wanted + block - 1) / block;
    if (!old.reserve(size) || !old.resize(size, Entry{})) return false;
    old.swap(table_);
    const std::size_t old_slots = old.empty() ? 0 : mask_ + 1;
    mask_ = wanted - 1;
    emptied_ = 0;
    bool lost = false;
    for (const Entry& moved : std::span(old.data(), old_slots)) {
      if (moved.count <= 1) continue;
      const std::size_t slot = slot_of(moved.token);
      if (slot == nowhere) {
        --used_;
        total_ -= moved.count - 1;
        lost = true;
        continue;
      }
      table_[slot] = moved;
      raise_bound(slot);
    }
    if (lost) list_again();
    return true;
  }
  /// Keeps the invariant that no entry of a block ranks above the block's bound. remove() need not lower a bound,
  /// because the bound also holds for smaller counts.
  void raise_bound(std::size_t slot) noexcept {
    Entry& bound = table_[mask_ + 1 + slot / block];
    if (before(entry(slot), bound)) bound = entry(slot);
  }
  /// Rebuilds the list of the most frequent tokens. Most of the tokens listed so far still belong in the list. Once
  /// they are back in it, few blocks have a bound that ranks above the list's last entry.
  void list_again() noexcept {
    const std::array<Entry, most_frequent> old = list_;
    const std::size_t count = std::exchange(listed_, 0);
    for (const Entry& listed : std::span(old).first(count))
      if (const std::uint32_t now = this->count(listed.token); now != 0) promote({listed.token, now});
    const std::span<Entry> all = bounds();
    looked_at_ = all.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].count != 0 && (listed_ < most_frequent || before(all[i], list_[listed_ - 1]))) list_block(i);
  }
  /// Offers the entries of a block to the list, and lowers the block's bound to its best entry.
  void list_block(std::size_t i) noexcept {
    Entry best{};
    const std::size_t end = std::min(mask_ + 1, (i + 1) * block);
    for (std::size_t slot = i * block; slot < end; ++slot) {
      if (table_[slot].count <= 1) continue;
      if (before(entry(slot), best)) best = entry(slot);
      promote(entry(slot));
    }
    bounds()[i] = best;
    looked_at_ += end - i * block;
  }
  /// Inserts an entry into the list, or moves it up to its rank after its count has grown. Does nothing if it ranks too
  /// low.
  void promote(const Entry& entry) noexcept {
    if (listed_ == most_frequent && !before(entry, list_[listed_ - 1])) return;
    std::size_t at = 0;
    while (at < listed_ && list_[at].token != entry.token) ++at;
    if (at == listed_) at = listed_ < most_frequent ? listed_++ : listed_ - 1;
    for (; at > 0 && before(entry, list_[at - 1]); --at) list_[at] = list_[at - 1];
    list_[at] = entry;
  }

  std::uint64_t key_;
  // The slots, then the bounds: a copy that runs out of memory has both or neither. A slot holds one more than the
  // count of its token, 0 if it is vacant.
  Buffer<Entry> table_;
  std::size_t mask_ = 0;     // number of slots - 1, if there are any
  std::size_t used_ = 0;     // number of tokens that occur
  std::size_t emptied_ = 0;  // number of slots whose token does not occur any more
  std::uint64_t total_ = 0;
  std::array<Entry, most_frequent> list_{};
  std::size_t listed_ = 0;
  std::size_t looked_at_ = 0;
};

}}}  // namespace reprise::detail
