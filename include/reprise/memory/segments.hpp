// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "reprise/core/token.hpp"

namespace reprise::detail {

/// A remembered token and who said it, in 32 bits. Tokens below zero, and the largest of all, have no such word.
class Word {
 public:
  constexpr Word() noexcept = default;  ///< no token
  constexpr Word(Token token, Origin origin) noexcept
      : bits_(static_cast<std::uint32_t>(token) | (origin == Origin::output ? output : 0)) {}
  static constexpr Word from_bits(std::uint32_t bits) noexcept {
    Word word;
    word.bits_ = bits;
    return word;
  }
  static constexpr std::uint32_t most_tokens = 0x7fffffff;  ///< 0 to most_tokens - 1

  [[nodiscard]] constexpr bool empty() const noexcept { return bits_ == none; }
  [[nodiscard]] constexpr Token token() const noexcept { return static_cast<Token>(bits_ & ~output); }
  [[nodiscard]] constexpr Origin origin() const noexcept {
    return (bits_ & output) != 0 ? Origin::output : Origin::prompt;
  }
  [[nodiscard]] constexpr std::uint32_t bits() const noexcept { return bits_; }
  /// It is this token. False for no token.
  [[nodiscard]] constexpr bool is(Token token) const noexcept { return !empty() && this->token() == token; }

 private:
  static constexpr std::uint32_t output = std::uint32_t{1} << 31;
  static constexpr std::uint32_t none = 0xffffffff;
  std::uint32_t bits_ = none;
};

/// The tokens of a memory, in segments of a fixed size that are linked to sequences, as pages of a paged KV cache.
/// Places are those of single tokens; they never move. Segments stand in a queue, in the order in which they give way.
///
/// One writer and any number of readers. Words and links are single atomics: a reader that follows a sequence while it
/// is overwritten comes to read another one, which is never unsafe. Words are stored with release and read with acquire
/// order, so whoever has read a new word sees also that the old links are gone.
template <class Place, std::size_t Size>
class Segments {
 public:
  static constexpr Place nowhere = static_cast<Place>(-1);
  static constexpr std::size_t size = Size;

  /// What is known of a segment besides its words.
  struct Info {
    std::atomic<Place> next = nowhere;      ///< the segment that goes on with the sequence
    std::atomic<Place> previous = nowhere;  ///< the one before
    std::atomic<std::uint8_t> credit = 0;   ///< how often it came by again or was of use; halved when it is spared

    // For the writer alone.
    std::uint16_t used = 0;      ///< words, breaks included; 0: the segment is free
    Place older = nowhere;       ///< in the queue
    Place newer = nowhere;       ///< likewise
    std::uint64_t sequence = 0;  ///< the name of the sequence
  };
  static constexpr std::size_t bytes_for(std::size_t segments) noexcept {
    return segments * (Size * sizeof(std::uint32_t) + sizeof(Info));
  }

  [[nodiscard]] bool make(std::size_t segments) noexcept {
    words_.reset(new (std::nothrow) Words[segments]);
    info_.reset(new (std::nothrow) Info[segments]);
    if (words_ == nullptr || info_ == nullptr) return false;
    count_ = segments;
    for (std::size_t i = 0; i < count_; ++i) {
      for (std::atomic<std::uint32_t>& word : words_[i].at) word.store(Word().bits(), std::memory_order_relaxed);
      push_back(static_cast<Place>(i));
    }
    return true;
  }
  /// 0 after a move.
  [[nodiscard]] std::size_t count() const noexcept { return words_ == nullptr ? 0 : count_; }
  [[nodiscard]] Info& info(std::size_t segment) noexcept { return info_[segment]; }
  [[nodiscard]] const Info& info(std::size_t segment) const noexcept { return info_[segment]; }
  [[nodiscard]] Info& info_of(Place place) const noexcept { return info_[place / Size]; }

  [[nodiscard]] Word word(Place place) const noexcept {
    return Word::from_bits(stored(place).load(std::memory_order_acquire));
  }
  [[nodiscard]] const void* address(Place place) const noexcept { return &stored(place); }
  /// The place behind this one in its sequence, or `nowhere`. It may hold no token.
  [[nodiscard]] Place after(Place place) const noexcept {
    if ((place + std::size_t{1}) % Size != 0) return static_cast<Place>(place + 1);
    const Place segment = info_of(place).next.load(std::memory_order_relaxed);
    return segment == nowhere ? nowhere : static_cast<Place>(segment * Size);
  }
  /// The place before this one in its sequence, or `nowhere`. It may hold no token.
  [[nodiscard]] Place before(Place place) const noexcept {
    if (place % Size != 0) return static_cast<Place>(place - 1);
    const Place segment = info_of(place).previous.load(std::memory_order_relaxed);
    return segment == nowhere ? nowhere : static_cast<Place>(segment * Size + Size - 1);
  }

  // For the writer alone.

  void set(Place place, Word word) noexcept { stored(place).store(word.bits(), std::memory_order_release); }
  void link(Place from, Place to) noexcept {
    info_[from].next.store(to, std::memory_order_relaxed);
    info_[to].previous.store(from, std::memory_order_relaxed);
  }
  /// Forgets a segment, which is next in the queue then. Answers how many tokens it held.
  std::size_t free(Place segment) noexcept {
    Info& gone = info_[segment];
    if (const Place next = gone.next.exchange(nowhere, std::memory_order_relaxed); next != nowhere)
      info_[next].previous.store(nowhere, std::memory_order_relaxed);
    if (const Place previous = gone.previous.exchange(nowhere, std::memory_order_relaxed); previous != nowhere)
      info_[previous].next.store(nowhere, std::memory_order_relaxed);
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < gone.used; ++i) {
      const auto place = static_cast<Place>(segment * Size + i);
      tokens += word(place).empty() ? 0 : 1;
      set(place, Word());
    }
    gone.credit.store(0, std::memory_order_relaxed);
    gone.used = 0;
    gone.sequence = 0;
    unqueue(segment);
    gone.newer = oldest_;
    (oldest_ == nowhere ? newest_ : info_[oldest_].older) = segment;
    oldest_ = segment;
    return tokens;
  }
  /// The next one to give way; then info().newer leads on.
  [[nodiscard]] Place oldest() const noexcept { return oldest_; }
  /// A segment becomes the last one to give way.
  void make_newest(Place segment) noexcept {
    unqueue(segment);
    push_back(segment);
  }

 private:
  static_assert(std::has_single_bit(Size));
  /// In as few cache lines as possible.
  struct alignas(Size < 32 ? Size * sizeof(std::uint32_t) : 128) Words {
    std::array<std::atomic<std::uint32_t>, Size> at;
  };
  [[nodiscard]] std::atomic<std::uint32_t>& stored(Place place) const noexcept {
    return words_[place / Size].at[place % Size];
  }
  void push_back(Place segment) noexcept {
    info_[segment].older = newest_;
    (newest_ == nowhere ? oldest_ : info_[newest_].newer) = segment;
    newest_ = segment;
  }
  void unqueue(Place segment) noexcept {
    Info& info = info_[segment];
    (info.older == nowhere ? oldest_ : info_[info.older].newer) = info.newer;
    (info.newer == nowhere ? newest_ : info_[info.newer].older) = info.older;
    info.older = nowhere;
    info.newer = nowhere;
  }

  std::unique_ptr<Words[]> words_;
  std::unique_ptr<Info[]> info_;
  std::size_t count_ = 0;
  Place oldest_ = nowhere;
  Place newest_ = nowhere;
};

/// Counts up to 255. For more than one thread: counts that meet may be lost.
inline void count_up(std::atomic<std::uint8_t>& count) noexcept {
  const std::uint8_t now = count.load(std::memory_order_relaxed);
  if (now != 255) count.store(static_cast<std::uint8_t>(now + 1), std::memory_order_relaxed);
}
inline void halve(std::atomic<std::uint8_t>& count) noexcept {
  count.store(static_cast<std::uint8_t>(count.load(std::memory_order_relaxed) / 2), std::memory_order_relaxed);
}

}  // namespace reprise::detail
