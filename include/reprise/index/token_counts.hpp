// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/token_hash.hpp"

namespace reprise::inline v0 {

/// Counts how often each token of a sequence has occurred, and lists the most frequent tokens.
///
/// Cost: add() and remove() touch about one slot of a hash table per token. A full table is rebuilt at twice its size;
/// reserve() avoids that. If remove() affects a listed token, it searches for the most frequent tokens again. For this
/// search, each block of 512 slots has an upper bound. The search reads all bounds and about 30 blocks. It reads one
/// more block for each removed token that was the most frequent one in its block.
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
    if (table_[slot].count == 0) {
      if (4 * (used_ + 1) > 3 * (mask_ + 1)) {
        if (!resize(2 * (mask_ + 1))) return;
        slot = slot_of(token);
      }
      ++used_;
      table_[slot].token = token;
    }
    ++table_[slot].count;
    ++total_;
    raise_bound(slot);
    promote(table_[slot]);
  }
  /// Removes one occurrence per token. Precondition: these occurrences were added and have not been removed since.
  void remove(TokenSpan tokens) noexcept {
    bool listed = false;
    for (const Token token : tokens) {
      if (count(token) == 0) continue;
      const std::size_t slot = slot_of(token);
      // The list still holds the old counts, so this finds the first listed token that loses an occurrence.
      listed = listed || !before(list_[listed_ - 1], table_[slot]);
      --total_;
      if (--table_[slot].count == 0) vacate(slot);
    }
    looked_at_ = 0;
    if (listed) list_again();
  }
  /// Forgets all counts and keeps the memory.
  void clear() noexcept {
    std::fill(table_.begin(), table_.end(), Entry{});
    used_ = listed_ = 0;
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
    return table_.empty() ? 0 : table_[slot_of(token)].count;
  }
  /// Returns the number of all counted occurrences.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// Returns the most frequent tokens by descending count. Among equal counts, the smaller token is first.
  [[nodiscard]] std::span<const Entry> frequent() const noexcept { return std::span(list_).first(listed_); }
  /// Returns the number of slots and bounds that the last remove() read in its search for the most frequent tokens. For
  /// tests.
  [[nodiscard]] std::size_t looked_at() const noexcept { return looked_at_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return table_.memory_bytes(); }

 private:
  static constexpr std::size_t smallest = 64;
  static constexpr std::size_t block = 512;

  static bool before(const Entry& a, const Entry& b) noexcept {
    return a.count != b.count ? a.count > b.count : a.token < b.token;
  }
  [[nodiscard]] std::size_t slots() const noexcept { return table_.empty() ? 0 : mask_ + 1; }
  [[nodiscard]] std::span<Entry> bounds() noexcept {
    return std::span(table_.begin(), table_.end()).subspan(mask_ + 1);
  }
  [[nodiscard]] std::size_t home(Token token) const noexcept {
    return static_cast<std::size_t>(detail::token_hash(key_, token)) & mask_;
  }
  /// Returns the slot of the token, or the slot where it would be inserted.
  [[nodiscard]] std::size_t slot_of(Token token) const noexcept {
    std::size_t slot = home(token);
    while (table_[slot].count != 0 && table_[slot].token != token) slot = (slot + 1) & mask_;
    return slot;
  }
  /// Empties a slot and moves later tokens up, so that no search for them ends at the empty slot.
  void vacate(std::size_t slot) noexcept {
    --used_;
    for (std::size_t other = (slot + 1) & mask_; table_[other].count != 0; other = (other + 1) & mask_) {
      if (((other - home(table_[other].token)) & mask_) < ((other - slot) & mask_)) continue;
      table_[slot] = table_[other];
      raise_bound(slot);
      slot = other;
    }
    table_[slot] = {};
  }
  [[nodiscard]] bool resize(std::size_t wanted) noexcept {
    Buffer<Entry> old;
    const std::size_t size = wanted + (wanted + block - 1) / block;
    if (!old.reserve(size) || !old.resize(size, Entry{})) return false;
    old.swap(table_);
    const std::size_t old_slots = old.empty() ? 0 : mask_ + 1;
    mask_ = wanted - 1;
    for (const Entry& entry : std::span(old.data(), old_slots)) {
      if (entry.count == 0) continue;
      const std::size_t slot = slot_of(entry.token);
      table_[slot] = entry;
      raise_bound(slot);
    }
    return true;
  }
  /// Keeps the invariant that no entry of a block ranks above the block's bound. remove() need not lower a bound,
  /// because the bound also holds for smaller counts.
  void raise_bound(std::size_t slot) noexcept {
    Entry& bound = table_[mask_ + 1 + slot / block];
    if (before(table_[slot], bound)) bound = table_[slot];
  }
  /// Rebuilds the list of the most frequent tokens. Most of the tokens listed so far still belong in the list. Once
  /// they are back in it, few blocks have a bound that ranks above the list's last entry.
  void list_again() noexcept {
    const std::array<Entry, most_frequent> old = list_;
    const std::size_t count = std::exchange(listed_, 0);
    for (const Entry& entry : std::span(old).first(count))
      if (const Entry& now = table_[slot_of(entry.token)]; now.count != 0) promote(now);
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
      if (table_[slot].count == 0) continue;
      if (before(table_[slot], best)) best = table_[slot];
      promote(table_[slot]);
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
  Buffer<Entry> table_;   // the slots, then the bounds: a copy that runs out of memory has both or neither
  std::size_t mask_ = 0;  // number of slots - 1, if there are any
  std::size_t used_ = 0;
  std::uint64_t total_ = 0;
  std::array<Entry, most_frequent> list_{};
  std::size_t listed_ = 0;
  std::size_t looked_at_ = 0;
};

}  // namespace reprise
