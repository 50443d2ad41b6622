// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/detail/prefetch.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Maps n-grams of one length to the slots where they occurred last: a set-associative table of fixed size, like a CPU
/// cache. A hash selects a set of sixteen entries, the latest first, in one cache line. An entry holds a slot and, in
/// the bits that the slot number does not need, a tag taken from the hash. The tag avoids most useless comparisons. The
/// n-grams themselves are not stored: the caller compares tokens.
///
/// A full set evicts its oldest entry. An n-gram that has used up its share of a set evicts its own oldest entry, so
/// that frequent n-grams do not evict rare ones.
///
/// One thread may write while any number of threads read, because each entry is one atomic word. A reader that runs
/// during an insertion may see an entry twice, or miss one. Cost: one cache line. Memory: 4 bytes per entry with 32-bit
/// slots.
template <class Slot>
class NgramSets {
 public:
  static constexpr std::size_t ways = 16;
  static constexpr Slot nowhere = static_cast<Slot>(-1);

  static constexpr std::size_t bytes_for(std::size_t sets) noexcept { return sets * ways * sizeof(Slot); }

  /// Allocates a table of `sets` sets for slots below `slots`. One n-gram uses at most `share` entries of a set.
  /// Returns false if memory runs out.
  [[nodiscard]] bool allocate(std::size_t sets, std::size_t slots, std::size_t share) noexcept {
    entries_ = new_array<Set>(sets);
    if (entries_ == nullptr) return false;
    sets_ = sets;
    share_ = share;
    slot_bits_ = static_cast<int>(std::bit_width(slots));  // so that no slot has all bits set
    clear();
    return true;
  }
  void clear() noexcept {
    for (std::size_t i = 0; i < sets_; ++i)
      for (std::atomic<Slot>& entry : entries_[i].ways) entry.store(nowhere, std::memory_order_relaxed);
  }

  void prefetch(std::uint64_t hash) const noexcept { reprise::detail::prefetch(&home(hash)); }

  /// Calls visit(Slot) for the slots whose tag is that of `hash`, the latest first, until visit returns false.
  template <class Visit>
  void for_each(std::uint64_t hash, Visit visit) const noexcept {
    for (const std::atomic<Slot>& way : home(hash).ways) {
      const Slot entry = way.load(std::memory_order_relaxed);
      if (entry == nowhere) return;
      if (tag_of(entry) == tag(hash) && !visit(slot_of(entry))) return;
    }
  }

  /// Makes `slot` the latest in the set of `hash`, because the n-gram has just ended at this slot or its entry must
  /// stay longer.
  void insert(std::uint64_t hash, Slot slot) noexcept {
    auto& set = home(hash).ways;
    const auto entry = static_cast<Slot>(tag(hash) << slot_bits_ | slot);
    std::size_t same = 0;
    std::size_t last_same = 0;
    std::size_t evicted = 0;
    for (; evicted < ways - 1; ++evicted) {
      const Slot other = set[evicted].load(std::memory_order_relaxed);
      if (other == nowhere || other == entry) break;
      if (tag_of(other) != tag(hash)) continue;
      last_same = evicted;
      if (++same == share_) break;
    }
    if (same == share_) evicted = last_same;
    for (std::size_t i = evicted; i > 0; --i)
      set[i].store(set[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
    set[0].store(entry, std::memory_order_relaxed);
  }

 private:
  struct alignas(ways * sizeof(Slot)) Set {
    std::array<std::atomic<Slot>, NgramSets::ways> ways;
  };
  [[nodiscard]] Set& home(std::uint64_t hash) const noexcept {
    return entries_[static_cast<std::size_t>((hash >> 32) * static_cast<std::uint64_t>(sets_) >> 32)];
  }
  [[nodiscard]] std::uint64_t tag(std::uint64_t hash) const noexcept {
    return (hash & 0xffffffffU) & (static_cast<std::uint64_t>(nowhere) >> slot_bits_);
  }
  [[nodiscard]] std::uint64_t tag_of(Slot entry) const noexcept { return std::uint64_t{entry} >> slot_bits_; }
  [[nodiscard]] Slot slot_of(Slot entry) const noexcept {
    return static_cast<Slot>(entry & ((std::uint64_t{1} << slot_bits_) - 1));
  }

  OwnedArray<Set> entries_;
  std::size_t sets_ = 0;
  std::size_t share_ = 0;
  int slot_bits_ = 0;
};

}}}  // namespace reprise::detail
