// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "reprise/index/ngram_table.hpp"

namespace reprise::detail {

/// Where n-grams of one length occurred last: a set-associative table of fixed size, as caches have them. A hash leads
/// to a set of sixteen places, the latest first: a cache line. What bits a place has to spare are a tag of the hash, so
/// that few places are looked at in vain; the n-grams themselves are not stored, the caller compares tokens.
///
/// A set that is full forgets its oldest entry; an n-gram that has its share of a set already gives way to itself, so
/// that frequent n-grams do not drive out rare ones.
///
/// One writer and any number of readers: each entry is one atomic word. A reader that meets an insertion may see an
/// entry twice, or miss one. Cost: one cache line. Memory: 4 bytes an entry for places of 32 bits.
template <class Place>
class NgramSets {
 public:
  static constexpr std::size_t ways = 16;
  static constexpr Place nowhere = static_cast<Place>(-1);

  static constexpr std::size_t bytes_for(std::size_t sets) noexcept { return sets * ways * sizeof(Place); }

  /// Tables of `sets` sets, for places below `places`, of which one n-gram has at most `share` in a set. False: out of
  /// memory.
  [[nodiscard]] bool make(std::size_t sets, std::size_t places, std::size_t share) noexcept {
    entries_.reset(new (std::nothrow) Set[sets]);
    if (entries_ == nullptr) return false;
    sets_ = sets;
    share_ = share;
    place_bits_ = static_cast<int>(std::bit_width(places));  // so that all ones is no place
    clear();
    return true;
  }
  void clear() noexcept {
    for (std::size_t i = 0; i < sets_; ++i)
      for (std::atomic<Place>& entry : entries_[i].ways) entry.store(nowhere, std::memory_order_relaxed);
  }

  void prefetch(std::uint64_t hash) const noexcept { detail::prefetch(&home(hash)); }

  /// Calls visit(Place) for the places whose tag agrees, the latest first, until it says false.
  template <class Visit>
  void for_each(std::uint64_t hash, Visit visit) const noexcept {
    for (const std::atomic<Place>& way : home(hash).ways) {
      const Place entry = way.load(std::memory_order_relaxed);
      if (entry == nowhere) return;
      if (tag_of(entry) == tag(hash) && !visit(place_of(entry))) return;
    }
  }

  /// The n-gram occurred there, or did so long ago and has come by again.
  void insert(std::uint64_t hash, Place place) noexcept {
    auto& set = home(hash).ways;
    const auto entry = static_cast<Place>(tag(hash) << place_bits_ | place);
    std::size_t same = 0;
    std::size_t last_same = 0;
    std::size_t gives_way = 0;
    for (; gives_way < ways - 1; ++gives_way) {
      const Place other = set[gives_way].load(std::memory_order_relaxed);
      if (other == nowhere || other == entry) break;
      if (tag_of(other) != tag(hash)) continue;
      last_same = gives_way;
      if (++same == share_) break;
    }
    if (same == share_) gives_way = last_same;
    for (std::size_t i = gives_way; i > 0; --i)
      set[i].store(set[i - 1].load(std::memory_order_relaxed), std::memory_order_relaxed);
    set[0].store(entry, std::memory_order_relaxed);
  }

 private:
  struct alignas(ways * sizeof(Place)) Set {
    std::array<std::atomic<Place>, NgramSets::ways> ways;
  };
  [[nodiscard]] Set& home(std::uint64_t hash) const noexcept {
    return entries_[static_cast<std::size_t>((hash >> 32) * static_cast<std::uint64_t>(sets_) >> 32)];
  }
  [[nodiscard]] std::uint64_t tag(std::uint64_t hash) const noexcept {
    return (hash & 0xffffffffU) & (static_cast<std::uint64_t>(nowhere) >> place_bits_);
  }
  [[nodiscard]] std::uint64_t tag_of(Place entry) const noexcept { return std::uint64_t{entry} >> place_bits_; }
  [[nodiscard]] Place place_of(Place entry) const noexcept {
    return static_cast<Place>(entry & ((std::uint64_t{1} << place_bits_) - 1));
  }

  std::unique_ptr<Set[]> entries_;
  std::size_t sets_ = 0;
  std::size_t share_ = 0;
  int place_bits_ = 0;
};

}  // namespace reprise::detail
