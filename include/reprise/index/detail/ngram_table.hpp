// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/prefetch.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The distinct n-grams of one length, each with the end of its last occurrence. It is a hash table with open
/// addressing, at most three quarters full.
///
/// A probe does a bounded amount of work for any hashes. It reads at most 8 runs of 16 slots, each run at another place
/// that depends on the hash. It asks at most 32 times whether a slot with a matching tag holds the n-gram. After that
/// it gives up: a new n-gram is not stored, and a lookup finds nothing. Hashes that are not aimed at the table
/// practically never give up (docs/decisions/0003).
///
/// A slot takes 5 bytes, in two arrays. A probe first reads a tag of one byte; the tags mostly stay in the L2 cache.
/// The probe reads the end (4 bytes) only if the tag matches. The table does not store the n-grams themselves: the
/// caller compares tokens.
///
/// There are no tombstones. N-grams are erased in the reverse order of insertion, so no remaining n-gram can have
/// probed past an erased slot. A caller that refills a table must therefore insert in the order of first occurrence.
/// For the same reason, an n-gram that was not stored stays unknown until its first occurrence is erased or the table
/// is refilled.
class NgramTable {
 public:
  static constexpr std::size_t run_length = 16;       ///< the slots of one run
  static constexpr std::size_t most_runs = 8;         ///< the runs of one probe
  static constexpr std::size_t most_equal_tags = 16;  ///< matching tags after the first run at which a probe gives up

  /// Returns the hash that addresses the run after that of `hash`.
  [[nodiscard]] static constexpr std::uint64_t next_run(std::uint64_t hash) noexcept {
    return hash * 0x9e3779b97f4a7c15;
  }

  /// Returns the number of slots at which a run can begin.
  [[nodiscard]] std::size_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::size_t distinct() const noexcept { return distinct_; }
  /// Returns the maximum number of distinct n-grams.
  [[nodiscard]] std::size_t room() const noexcept { return slots() - (slots() + 3) / 4; }
  /// Returns false if an n-gram was not stored since the last reset() or clear().
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return tags_.memory_bytes() + ends_.memory_bytes(); }

  /// Returns the number of slots needed for `distinct` n-grams.
  static constexpr std::size_t slots_for(std::size_t distinct) noexcept { return distinct + distinct / 3 + 2; }
  static constexpr std::size_t bytes_for(std::size_t slots) noexcept {
    return slots == 0 ? 0 : (slots + run_length - 1) * (sizeof(std::uint8_t) + sizeof(Position));
  }
  /// The maximum number of slots: home() computes a slot from 32 bits of the hash.
  static constexpr std::size_t most_slots = std::numeric_limits<std::uint32_t>::max();

  /// Makes an empty table of `slots` slots. Releases the old arrays first, because two tables at once would determine
  /// the peak memory use. The caller refills the table from the tokens anyway. Returns false if memory runs out or
  /// `slots` is above most_slots; in that case there are no slots.
  [[nodiscard]] bool reset(std::size_t slots) noexcept {
    release();
    return slots == 0 || prepare(slots, slots + run_length);
  }
  /// Does a part of reset(): clears up to `most` more slots. Returns true once all are cleared; before that, there is
  /// no table. Returns false with no slots if memory runs out. Precondition: `slots` is that of the first part.
  [[nodiscard]] bool prepare(std::size_t slots, std::size_t most) noexcept {
    const std::size_t all = slots + run_length - 1;  // the last run needs no wrap
    if (slots > most_slots || !tags_.reserve(all) || !ends_.reserve(all)) {
      release();
      return false;
    }
    slots_ = slots;
    const std::size_t cleared = tags_.size() + std::min(most, all - tags_.size());
    return tags_.resize(cleared, vacant) && ends_.resize(cleared, 0) && cleared == all;
  }
  void release() noexcept { *this = NgramTable(); }
  /// Forgets all n-grams and keeps the slots. Cost: one byte per slot.
  void clear() noexcept {
    std::fill(tags_.begin(), tags_.end(), vacant);
    distinct_ = 0;
    complete_ = true;
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
    return last(hash, [](Position) { return true; });
  }

  /// Returns the end of the last occurrence of an n-gram, or 0 if there is none or the probe gives up. `equal`: see
  /// replace(). Calls `read()` for each slot that it reads, so that tests can count them.
  template <class Equal, class Read>
  [[nodiscard]] Position last(std::uint64_t hash, Equal equal, Read read) const noexcept {
    return probe(hash, equal, read).end;
  }
  template <class Equal>
  [[nodiscard]] Position last(std::uint64_t hash, Equal equal) const noexcept {
    return last(hash, equal, [] {});
  }

  /// Makes `end` the last occurrence of its n-gram. `equal(e)` returns true if the n-gram that ends at e is the same.
  /// Returns the end of the previous occurrence, or 0 if there is none. Does not store a new n-gram if the probe gives
  /// up or distinct() is room().
  template <class Equal>
  Position replace(std::uint64_t hash, Position end, Equal equal) noexcept {
    const Found found = probe(hash, equal, [] {});
    if (found.end != 0) {
      ends_[found.slot] = end;
    } else {
      store(found.slot, hash, end);
    }
    return found.end;
  }

  /// Like replace(), but the caller knows the previous occurrence `before` (0: none), so no tokens are read.
  void restore(std::uint64_t hash, Position end, Position before) noexcept {
    static_cast<void>(replace(hash, end, [before](Position held) { return held == before; }));
  }

  /// Undoes the latest replace() that has not been undone. Makes `before` the last occurrence instead of `end`; if
  /// `before` is 0, removes the n-gram. Changes nothing if that call did not store its n-gram.
  void undo(std::uint64_t hash, Position end, Position before) noexcept {
    const Found found = probe(
        hash, [end](Position other) { return other == end; }, [] {});
    if (found.end == 0) return;
    if (before != 0) {
      ends_[found.slot] = before;
    } else {
      tags_[found.slot] = vacant;
      --distinct_;
    }
  }

 private:
  static constexpr std::uint8_t vacant = 0;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  /// Where a probe has ended.
  struct Found {
    std::size_t slot;
    Position end;
  };

  [[nodiscard]] static std::uint8_t tag(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(std::max<std::uint64_t>(hash & 0xff, 1));
  }
  /// Returns the slot at which probes for a hash begin. Uses a multiplication and a shift instead of a remainder
  /// (Lemire 2019). This works for any number of slots, so tables can grow by less than a factor of two.
  [[nodiscard]] std::size_t home(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>(((hash >> 32) * static_cast<std::uint64_t>(slots())) >> 32);
  }
  /// Returns the first slot whose tag matches and whose end is accepted. If there is none, returns the vacant slot at
  /// which the probe ends, or `nowhere` if it gives up, with the end 0.
  ///
  /// It compares one tag at a time. Comparing eight at once was measured: it is faster only for text without
  /// repetition. In repetitive text most probes end at the home slot, where comparing eight was slower.
  template <class Accept, class Read>
  [[nodiscard]] Found probe(std::uint64_t hash, Accept accept, Read read) const noexcept {
    const std::uint8_t wanted = tag(hash);
    const std::size_t begin = home(hash);
    for (std::size_t slot = begin; slot != begin + run_length; ++slot) {
      read();
      if (tags_[slot] == vacant) return {slot, 0};
      if (tags_[slot] == wanted && accept(ends_[slot])) return {slot, ends_[slot]};
    }
    return probe_elsewhere(hash, accept, read);
  }
  /// Continues a probe after its first run.
  template <class Accept, class Read>
  [[nodiscard]] Found probe_elsewhere(std::uint64_t hash, Accept accept, Read read) const noexcept {
    const std::uint8_t wanted = tag(hash);
    std::size_t equal_tags = 0;
    for (std::size_t run = 1; run < most_runs; ++run) {
      hash = next_run(hash);
      const std::size_t begin = home(hash);
      for (std::size_t slot = begin; slot != begin + run_length; ++slot) {
        read();
        if (tags_[slot] == vacant) return {slot, 0};
        if (tags_[slot] != wanted) continue;
        if (accept(ends_[slot])) return {slot, ends_[slot]};
        if (++equal_tags == most_equal_tags) return {nowhere, 0};
      }
    }
    return {nowhere, 0};
  }
  /// Stores a new n-gram in a vacant slot, if there is one and there is room.
  void store(std::size_t slot, std::uint64_t hash, Position end) noexcept {
    if (slot == nowhere || distinct_ == room()) {
      complete_ = false;
      return;
    }
    tags_[slot] = tag(hash);
    ends_[slot] = end;
    ++distinct_;
  }

  Buffer<std::uint8_t> tags_;
  Buffer<Position> ends_;
  std::size_t slots_ = 0;  // without the last run_length - 1
  std::size_t distinct_ = 0;
  bool complete_ = true;
};

}}}  // namespace reprise::detail
