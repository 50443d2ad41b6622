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

/// The distinct n-grams of one length, each with the end of its last occurrence: a hash table with open addressing
/// and linear probing, at most three quarters full.
///
/// 5 bytes a slot in two arrays: a tag of one byte, which a probe reads first and which mostly stay in the L2
/// cache, and the end (4 bytes), read where the tag agrees. The n-grams themselves are not stored; the caller
/// compares tokens.
///
/// No tombstones: n-grams are erased in the reverse of the order in which they were inserted, so no later one can
/// have probed past an erased slot. Whoever refills a table must therefore insert in the order of first
/// occurrence.
class NgramTable {
 public:
  [[nodiscard]] std::size_t slots() const noexcept { return tags_.size(); }
  [[nodiscard]] std::size_t distinct() const noexcept { return distinct_; }
  /// Distinct n-grams that fit.
  [[nodiscard]] std::size_t room() const noexcept { return slots() - (slots() + 3) / 4; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return tags_.memory_bytes() + ends_.memory_bytes(); }

  /// The slots that `distinct` n-grams need.
  static constexpr std::size_t slots_for(std::size_t distinct) noexcept { return distinct + distinct / 3 + 2; }
  static constexpr std::size_t bytes_for(std::size_t slots) noexcept {
    return slots * (sizeof(std::uint8_t) + sizeof(Position));
  }
  /// A home slot is made of 32 bits of the hash.
  static constexpr std::size_t most_slots = std::numeric_limits<std::uint32_t>::max();

  /// An empty table of `slots` slots. The old arrays are given back first: the caller refills the table from the
  /// tokens anyhow, and holding both would set the peak of memory. False: out of memory, and no slots at all.
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
  /// Forgets all n-grams and keeps the slots. Cost: one byte a slot.
  void clear() noexcept {
    std::fill(tags_.begin(), tags_.end(), vacant);
    distinct_ = 0;
  }
  /// False for a copy that did not get its memory.
  [[nodiscard]] bool same_size_as(const NgramTable& other) const noexcept {
    return tags_.size() == other.tags_.size() && ends_.size() == other.ends_.size();
  }

  void prefetch_home(std::uint64_t hash) const noexcept {
    const std::size_t slot = home(hash);
    prefetch(tags_.data() + slot);
    prefetch(ends_.data() + slot);
  }

  /// The end held by the first slot whose tag agrees, 0 if there is none: a guess, to prefetch its tokens.
  [[nodiscard]] Position guess(std::uint64_t hash) const noexcept {
    const std::size_t slot = probe(hash, [](Position) { return true; });
    return tags_[slot] == vacant ? 0 : ends_[slot];
  }

  /// The last occurrence of an n-gram, 0 if there is none. `equal` as in replace().
  template <class Equal>
  [[nodiscard]] Position last(std::uint64_t hash, Equal equal) const noexcept {
    const std::size_t slot = probe(hash, equal);
    return tags_[slot] == vacant ? 0 : ends_[slot];
  }

  /// Makes `end` the last occurrence of its n-gram. `equal(e)` says whether the n-gram that ends at e is the same.
  /// The answer is the occurrence before it, 0 if it is the first; then room for it must have been there.
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

  /// As replace(), where the occurrence before is known (0: the first). Reads no tokens.
  void restore(std::uint64_t hash, Position end, Position before) noexcept {
    static_cast<void>(replace(hash, end, [before](Position held) { return held == before; }));
  }

  /// Undoes the last replace() of this table that is not undone: `end` gives way to `before`.
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
  /// A multiplication and a shift instead of a remainder (Lemire 2019): any number of slots will do, so tables can
  /// grow by less than a factor of two.
  [[nodiscard]] std::size_t home(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(((hash >> 32) * static_cast<std::uint64_t>(slots())) >> 32);
  }
  [[nodiscard]] std::size_t after(std::size_t slot) const noexcept { return slot + 1 == slots() ? 0 : slot + 1; }

  /// The first slot whose tag agrees and whose end is accepted, otherwise the vacant slot where the probe ends.
  ///
  /// Tag by tag: comparing eight at once was measured and is faster for text without repetition only. Text that
  /// repeats mostly ends at its home slot, and it was slower there.
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
