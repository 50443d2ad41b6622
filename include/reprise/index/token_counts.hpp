// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/token_hash.hpp"

namespace reprise {

/// How often each token of a sequence has occurred, and which ones most.
///
/// Cost: add() and remove() touch one slot of a hash table for each token; a remove() that takes from the most frequent
/// tokens looks at all slots once. Memory: 11 to 21 bytes for each distinct token. When memory runs out, tokens that
/// were not seen before are not counted. Threads: const members may run at the same time; nothing else may.
class TokenCounts {
 public:
  struct Entry {
    Token token = 0;
    std::uint32_t count = 0;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  /// Tokens that frequent() tells at most.
  static constexpr std::size_t most_frequent = 24;

  explicit TokenCounts(std::uint64_t key = 0) noexcept : key_(key) {}

  void add(Token token) noexcept {
    if (slots_.empty() && !resize(smallest)) return;
    Entry* entry = &slots_[slot_of(token)];
    if (entry->count == 0) {
      if (4 * (used_ + 1) > 3 * slots_.size()) {
        if (!resize(2 * slots_.size())) return;
        entry = &slots_[slot_of(token)];
      }
      ++used_;
      entry->token = token;
    }
    ++entry->count;
    ++total_;
    promote(*entry);
  }
  /// Takes occurrences back: tokens that have been added and not been removed since.
  void remove(TokenSpan tokens) noexcept {
    bool listed = false;
    for (const Token token : tokens) {
      if (count(token) == 0) continue;
      const std::size_t slot = slot_of(token);
      listed |= slots_[slot].count >= least_listed();
      --total_;
      if (--slots_[slot].count == 0) vacate(slot);
    }
    if (!listed) return;
    listed_ = 0;
    for (const Entry& entry : slots_)
      if (entry.count != 0) promote(entry);
  }
  /// Keeps the memory.
  void clear() noexcept {
    std::fill(slots_.begin(), slots_.end(), Entry{});
    used_ = listed_ = 0;
    total_ = 0;
  }
  [[nodiscard]] bool reserve(std::size_t distinct) noexcept {
    if (distinct > unlimited / 8) return false;
    std::size_t slots = smallest;
    while (3 * slots < 4 * distinct) slots *= 2;
    return slots <= slots_.size() || resize(slots);
  }

  [[nodiscard]] std::uint32_t count(Token token) const noexcept {
    return slots_.empty() ? 0 : slots_[slot_of(token)].count;
  }
  /// All occurrences that were counted.
  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  /// The most frequent tokens: by count, the smaller token first where counts are equal.
  [[nodiscard]] std::span<const Entry> frequent() const noexcept { return std::span(list_).first(listed_); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return slots_.memory_bytes(); }

 private:
  static constexpr std::size_t smallest = 64;

  static bool before(const Entry& a, const Entry& b) noexcept {
    return a.count != b.count ? a.count > b.count : a.token < b.token;
  }
  [[nodiscard]] std::uint32_t least_listed() const noexcept { return listed_ == 0 ? 0 : list_[listed_ - 1].count; }
  [[nodiscard]] std::size_t home(Token token) const noexcept {
    return static_cast<std::size_t>(detail::token_hash(key_, token)) & (slots_.size() - 1);
  }
  /// Where the token is, or where it would be put.
  [[nodiscard]] std::size_t slot_of(Token token) const noexcept {
    std::size_t slot = home(token);
    while (slots_[slot].count != 0 && slots_[slot].token != token) slot = (slot + 1) & (slots_.size() - 1);
    return slot;
  }
  /// Moves later tokens up, so that no search for them ends at the empty slot.
  void vacate(std::size_t slot) noexcept {
    --used_;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t other = (slot + 1) & mask; slots_[other].count != 0; other = (other + 1) & mask) {
      if (((other - home(slots_[other].token)) & mask) < ((other - slot) & mask)) continue;
      slots_[slot] = slots_[other];
      slot = other;
    }
    slots_[slot] = {};
  }
  [[nodiscard]] bool resize(std::size_t slots) noexcept {
    Buffer<Entry> old;
    if (!old.resize(slots, Entry{})) return false;
    old.swap(slots_);
    for (const Entry& entry : old)
      if (entry.count != 0) slots_[slot_of(entry.token)] = entry;
    return true;
  }
  /// A token that has become more frequent finds its place in the list.
  void promote(const Entry& entry) noexcept {
    if (listed_ == most_frequent && !before(entry, list_[listed_ - 1])) return;
    std::size_t at = 0;
    while (at < listed_ && list_[at].token != entry.token) ++at;
    if (at == listed_) at = listed_ < most_frequent ? listed_++ : listed_ - 1;
    for (; at > 0 && before(entry, list_[at - 1]); --at) list_[at] = list_[at - 1];
    list_[at] = entry;
  }

  std::uint64_t key_;
  Buffer<Entry> slots_;
  std::size_t used_ = 0;
  std::uint64_t total_ = 0;
  std::array<Entry, most_frequent> list_{};
  std::size_t listed_ = 0;
};

}  // namespace reprise
