// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/core/buffer.hpp"
#include "reprise/core/contract.hpp"
#include "reprise/core/prefetch.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise::inline v0::detail {

/// The distinct n-grams of one length, each with the end of its last occurrence. It is a hash table with open
/// addressing and linear probing, at most three quarters full.
///
/// A slot takes 5 bytes, in two arrays. A probe first reads a tag of one byte; the tags mostly stay in the L2 cache.
/// The probe reads the end (4 bytes) only if the tag matches. The table does not store the n-grams themselves: the
/// caller compares tokens.
///
/// There are no tombstones. N-grams are erased in the reverse order of insertion, so no remaining n-gram can have
/// probed past an erased slot. A caller that refills a table must therefore insert in the order of first occurrence.
class NgramTable {
 public:
  [[nodiscard]] std::size_t slots() const noexcept { return tags_.size(); }
  [[nodiscard]] std::size_t distinct() const noexcept { return distinct_; }
  /// Returns the maximum number of distinct n-grams.
  [[nodiscard]] std::size_t room() const noexcept { return slots() - (slots() + 3) / 4; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return tags_.memory_bytes() + ends_.memory_bytes(); }

  /// Returns the number of slots needed for `distinct` n-grams.
  static constexpr std::size_t slots_for(std::size_t distinct) noexcept { return distinct + distinct / 3 + 2; }
  static constexpr std::size_t bytes_for(std::size_t slots) noexcept {
    return slots * (sizeof(std::uint8_t) + sizeof(Position));
  }
  /// The maximum number of slots: home() computes a slot from 32 bits of the hash.
  static constexpr std::size_t most_slots = std::numeric_limits<std::uint32_t>::max();

  /// Makes an empty table of `slots` slots. Releases the old arrays first, because two tables at once would determine
  /// the peak memory use. The caller refills the table from the tokens anyway. Returns false if memory runs out or
  /// `slots` is above most_slots; in that case there are no slots.
  [[nodiscard]] bool reset(std::size_t slots) noexcept {
    release();
    if (slots > most_slots) return false;
    if (tags_.reserve(slots) && ends_.reserve(slots) && tags_.resize(slots, vacant) && ends_.resize(slots, 0))
      return true;
    release();
    return false;
  }
  void release() noexcept {
    tags_.release();
    ends_.release();
    distinct_ = 0;
  }
  /// Forgets all n-grams and keeps the slots. Cost: one byte per slot.
  void clear() noexcept {
    std::fill(tags_.begin(), tags_.end(), vacant);
    distinct_ = 0;
  }
  /// Returns true if the sizes are equal. For a copy, false means that its allocation failed.
  [[nodiscard]] bool same_size_as(const NgramTable& other) const noexcept {
    return tags_.size() == other.tags_.size() && ends_.size() == other.ends_.size();
  }

  void prefetch_home(std::uint64_t hash) const noexcept {
    const std::size_t slot = home(hash);
    prefetch(tags_.data() + slot);
    prefetch(ends_.data() + slot);
  }

  /// Returns the end in the first slot whose tag matches, or 0 if there is none. The slot may belong to a different
  /// n-gram, so use the result for prefetching only.
  [[nodiscard]] Position guess(std::uint64_t hash) const noexcept {
    const std::size_t slot = probe(hash, [](Position) { return true; });
    return tags_[slot] == vacant ? 0 : ends_[slot];
  }

  /// Returns the end of the last occurrence of an n-gram, or 0 if there is none. `equal`: see replace().
  template <class Equal>
  [[nodiscard]] Position last(std::uint64_t hash, Equal equal) const noexcept {
    const std::size_t slot = probe(hash, equal);
    return tags_[slot] == vacant ? 0 : ends_[slot];
  }

  /// Makes `end` the last occurrence of its n-gram. `equal(e)` returns true if the n-gram that ends at e is the same.
  /// Returns the end of the previous occurrence, or 0 if there is none. Precondition for a new n-gram: distinct() <
  /// room().
  template <class Equal>
  Position replace(std::uint64_t hash, Position end, Equal equal) noexcept {
    const std::size_t slot = probe(hash, equal);
    const Position before = tags_[slot] == vacant ? 0 : ends_[slot];
    if (before == 0) {
      REPRISE_EXPECTS(distinct_ < room());
      tags_[slot] = tag(hash);
      ++distinct_;
    }
    ends_[slot] = end;
    return before;
  }

  /// Like replace(), but the caller knows the previous occurrence `before` (0: none), so no tokens are read.
  void restore(std::uint64_t hash, Position end, Position before) noexcept {
    static_cast<void>(replace(hash, end, [before](Position held) { return held == before; }));
  }

  /// Undoes the latest replace() that has not been undone. Makes `before` the last occurrence instead of `end`; if
  /// `before` is 0, removes the n-gram.
  void undo(std::uint64_t hash, Position end, Position before) noexcept {
    const std::size_t slot = probe(hash, [end](Position held) { return held == end; });
    REPRISE_EXPECTS(tags_[slot] != vacant);
    if (before != 0) {
      ends_[slot] = before;
    } else {
      tags_[slot] = vacant;
      --distinct_;
    }
  }

 private:
  static constexpr std::uint8_t vacant = 0;

  [[nodiscard]] static std::uint8_t tag(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(std::max<std::uint64_t>(hash & 0xff, 1));
  }
  /// Returns the slot at which probes for a hash begin. Uses a multiplication and a shift instead of a remainder
  /// (Lemire 2019). This works for any number of slots, so tables can grow by less than a factor of two.
  [[nodiscard]] std::size_t home(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(((hash >> 32) * static_cast<std::uint64_t>(slots())) >> 32);
  }
  [[nodiscard]] std::size_t after(std::size_t slot) const noexcept { return slot + 1 == slots() ? 0 : slot + 1; }

  /// Returns the first slot whose tag matches and whose end is accepted, or else the vacant slot at which the probe
  /// ends.
  ///
  /// It compares one tag at a time. Comparing eight at once was measured: it is faster only for text without
  /// repetition. In repetitive text most probes end at the home slot, where comparing eight was slower.
  template <class Accept>
  [[nodiscard]] std::size_t probe(std::uint64_t hash, Accept accept) const noexcept {
    const std::uint8_t wanted = tag(hash);
    std::size_t slot = home(hash);
    while (tags_[slot] != vacant && !(tags_[slot] == wanted && accept(ends_[slot]))) slot = after(slot);
    return slot;
  }

  Buffer<std::uint8_t> tags_;
  Buffer<Position> ends_;
  std::size_t distinct_ = 0;
};

}  // namespace reprise::detail
