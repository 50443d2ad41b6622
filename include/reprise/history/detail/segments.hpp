// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 { namespace detail {

using SequenceTag = std::uint64_t;  ///< see reprise::SequenceTag

/// Event counts of a history since it was made or cleared.
struct HistoryCounts {
  std::uint64_t stored = 0;      ///< tokens stored
  std::uint64_t duplicates = 0;  ///< tokens not stored, because the history held them already
  std::uint64_t refused = 0;     ///< placeholders: negative, or at least HistoryOptions::vocabulary
  std::uint64_t evicted = 0;     ///< tokens that were evicted to make room for others
  /// Segments that were next in eviction order and were kept because of their uses.
  std::uint64_t second_chances = 0;
  std::uint64_t removed = 0;  ///< tokens removed by remove()
  friend bool operator==(const HistoryCounts&, const HistoryCounts&) = default;
};

/// A stored token and its origin, in 32 bits. Negative tokens and the largest token cannot be stored.
class HistoryWord {
 public:
  constexpr HistoryWord() noexcept = default;  ///< no token
  constexpr HistoryWord(Token token, Origin origin) noexcept
      : bits_(static_cast<std::uint32_t>(token) | (origin == Origin::output ? output : 0)) {}
  static constexpr HistoryWord from_bits(std::uint32_t bits) noexcept {
    HistoryWord word;
    word.bits_ = bits;
    return word;
  }
  static constexpr std::uint32_t most_tokens = 0x7fffffff;  ///< tokens 0 to most_tokens - 1 can be stored

  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == none; }
  [[nodiscard]] constexpr Token token() const noexcept { return static_cast<Token>(bits_ & ~output); }
  [[nodiscard]] constexpr Origin origin() const noexcept {
    return (bits_ & output) != 0 ? Origin::output : Origin::prompt;
  }
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  /// Returns true if the word holds this token; an empty word holds none.
  [[nodiscard]] constexpr bool is(Token token) const noexcept { return !empty() && this->token() == token; }

 private:
  static constexpr std::uint32_t output = std::uint32_t{1} << 31;
  static constexpr std::uint32_t none = 0xffffffff;
  std::uint32_t bits_ = none;
};

/// A match in a history: an occurrence of at least the last token of the looked-up text.
template <class Slot>
struct BasicHistoryMatch {
  Slot next = 0;  ///< the slot of the token after the occurrence
  /// Bit i: the token i + 1 places before `next` is known to equal the token i + 1 places before the end of the
  /// looked-up text.
  std::uint32_t agreements = 0;
  friend bool operator==(const BasicHistoryMatch&, const BasicHistoryMatch&) = default;
};

/// A contiguous piece of stored text. Eviction may have removed text before or after it.
template <class Slot>
struct BasicHistoryRun {
  SequenceTag sequence = 0;
  Slot first = 0;        ///< the slot of the run's first token
  std::size_t size = 0;  ///< tokens
  friend bool operator==(const BasicHistoryRun&, const BasicHistoryRun&) = default;
};

/// The tokens of a history, in segments of a fixed size. Links join segments into sequences, like the pages of a paged
/// KV cache. A slot holds one token and never moves. The segments form a queue in eviction order.
///
/// One thread may write while any number of threads read. Words and links are single atomics: a reader that follows a
/// sequence while it is overwritten may read a different sequence, which is safe. Words are stored with release order
/// and read with acquire order. A reader that has read a new word therefore no longer sees the old links.
template <class Slot, std::size_t Size>
class Segments {
 public:
  static constexpr Slot nowhere = static_cast<Slot>(-1);
  static constexpr std::size_t size = Size;

  /// Everything about a segment except its words.
  struct Info {
    std::atomic<Slot> next = nowhere;         ///< the segment that continues the sequence
    std::atomic<Slot> previous = nowhere;     ///< the segment before this one in the sequence
    std::atomic<std::uint8_t> use_count = 0;  ///< uses and repetitions of the segment's text, halved at second chances

    // For the writer alone.
    std::uint16_t used = 0;  ///< number of words, including breaks; 0: the segment is free
    Slot older = nowhere;    ///< neighbour in the queue
    Slot newer = nowhere;    ///< neighbour in the queue
    SequenceTag sequence = 0;
  };
  static constexpr std::size_t bytes_for(std::size_t segments) noexcept {
    return segments * (Size * sizeof(std::uint32_t) + sizeof(Info));
  }

  /// Allocates `segments` free segments. Call it once. Returns false if memory runs out.
  [[nodiscard]] bool allocate(std::size_t segments) noexcept {
    words_ = new_array<Words>(segments);
    info_ = new_array<Info>(segments);
    if (words_ == nullptr || info_ == nullptr) return false;
    count_ = segments;
    for (std::size_t i = 0; i < segments; ++i) {
      for (std::atomic<std::uint32_t>& word : words_[i].at) word.store(HistoryWord().bits(), std::memory_order_relaxed);
      push_back(static_cast<Slot>(i));
    }
    return true;
  }
  /// Returns the number of segments; 0 after a move.
  [[nodiscard]] std::size_t count() const noexcept { return words_ == nullptr ? 0 : count_; }
  [[nodiscard]] Info& info(std::size_t segment) noexcept { return info_[segment]; }
  [[nodiscard]] const Info& info(std::size_t segment) const noexcept { return info_[segment]; }
  [[nodiscard]] Info& info_of(Slot slot) const noexcept { return info_[slot / Size]; }

  [[nodiscard]] HistoryWord word(Slot slot) const noexcept {
    return HistoryWord::from_bits(stored(slot).load(std::memory_order_acquire));
  }
  [[nodiscard]] const void* address(Slot slot) const noexcept { return &stored(slot); }
  /// Returns the slot after this one in its sequence, or `nowhere`. The returned slot may be empty.
  [[nodiscard]] Slot after(Slot slot) const noexcept {
    if ((slot + std::size_t{1}) % Size != 0) return static_cast<Slot>(slot + 1);
    const Slot segment = info_of(slot).next.load(std::memory_order_relaxed);
    return segment == nowhere ? nowhere : static_cast<Slot>(segment * Size);
  }
  /// Returns the slot before this one in its sequence, or `nowhere`. The returned slot may be empty.
  [[nodiscard]] Slot before(Slot slot) const noexcept {
    if (slot % Size != 0) return static_cast<Slot>(slot - 1);
    const Slot segment = info_of(slot).previous.load(std::memory_order_relaxed);
    return segment == nowhere ? nowhere : static_cast<Slot>(segment * Size + Size - 1);
  }

  // For the writer alone.

  void set(Slot slot, HistoryWord word) noexcept { stored(slot).store(word.bits(), std::memory_order_release); }
  void link(Slot from, Slot to) noexcept {
    info_[from].next.store(to, std::memory_order_relaxed);
    info_[to].previous.store(from, std::memory_order_relaxed);
  }
  /// Empties a segment and puts it first in eviction order. Returns the number of tokens it held.
  std::size_t free(Slot segment) noexcept {
    Info& gone = info_[segment];
    if (const Slot next = gone.next.load(std::memory_order_relaxed); next != nowhere)
      info_[next].previous.store(nowhere, std::memory_order_relaxed);
    if (const Slot previous = gone.previous.load(std::memory_order_relaxed); previous != nowhere)
      info_[previous].next.store(nowhere, std::memory_order_relaxed);
    // No exchange: there is only one writer, and on some machines an exchange of small words needs a library.
    gone.next.store(nowhere, std::memory_order_relaxed);
    gone.previous.store(nowhere, std::memory_order_relaxed);
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < gone.used; ++i) {
      const auto slot = static_cast<Slot>(segment * Size + i);
      tokens += word(slot).empty() ? 0 : 1;
      set(slot, HistoryWord());
    }
    gone.use_count.store(0, std::memory_order_relaxed);
    gone.used = 0;
    gone.sequence = 0;
    unqueue(segment);
    gone.newer = oldest_;
    (oldest_ == nowhere ? newest_ : info_[oldest_].older) = segment;
    oldest_ = segment;
    return tokens;
  }
  /// Returns the first segment in eviction order; info().newer is the next one.
  [[nodiscard]] Slot oldest() const noexcept { return oldest_; }
  /// Moves a segment to the end of the eviction order.
  void make_newest(Slot segment) noexcept {
    unqueue(segment);
    push_back(segment);
  }

 private:
  static_assert(std::has_single_bit(Size));
  /// The words of a segment, aligned so that they span as few cache lines as possible.
  struct alignas(Size < 32 ? Size * sizeof(std::uint32_t) : 128) Words {
    std::array<std::atomic<std::uint32_t>, Size> at;
  };
  [[nodiscard]] std::atomic<std::uint32_t>& stored(Slot slot) const noexcept {
    return words_[slot / Size].at[slot % Size];
  }
  void push_back(Slot segment) noexcept {
    info_[segment].older = newest_;
    (newest_ == nowhere ? oldest_ : info_[newest_].newer) = segment;
    newest_ = segment;
  }
  void unqueue(Slot segment) noexcept {
    Info& info = info_[segment];
    (info.older == nowhere ? oldest_ : info_[info.older].newer) = info.newer;
    (info.newer == nowhere ? newest_ : info_[info.newer].older) = info.older;
    info.older = nowhere;
    info.newer = nowhere;
  }

  OwnedArray<Words> words_;
  OwnedArray<Info> info_;
  std::size_t count_ = 0;
  Slot oldest_ = nowhere;
  Slot newest_ = nowhere;
};

/// Increments a count, up to 255. Concurrent increments may be lost.
inline void count_up(std::atomic<std::uint8_t>& count) noexcept {
  const std::uint8_t now = count.load(std::memory_order_relaxed);
  if (now != 255) count.store(static_cast<std::uint8_t>(now + 1), std::memory_order_relaxed);
}
inline void halve(std::atomic<std::uint8_t>& count) noexcept {
  count.store(static_cast<std::uint8_t>(count.load(std::memory_order_relaxed) / 2), std::memory_order_relaxed);
}

}}}  // namespace reprise::detail
