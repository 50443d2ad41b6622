// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/prefetch.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/ngram_sets.hpp"
#include "reprise/history/detail/segments.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// A fixed number of segments and an index over their n-grams. New text evicts the oldest segments; segments that have
/// been used stay longer.
///
/// A sequence is stored in runs. If the next run begins in the same segment, an empty word (the break) separates the
/// two runs.
///
/// One thread may write while any number of threads read, see Segments and NgramSets.
template <class Slot, std::size_t Size>
class IndexedSegments {
 public:
  using Match = BasicHistoryMatch<Slot>;
  static constexpr Slot nowhere = static_cast<Slot>(-1);
  static constexpr std::array<std::uint32_t, 4> orders = {8, 4, 2, 1};  ///< lengths of the n-grams, longest first
  static constexpr std::size_t most_matches = 12;
  /// The maximum number of tokens compared for one match.
  static constexpr std::size_t most_compared = 32;
  static constexpr std::size_t most_segments = std::numeric_limits<Slot>::max() / 4 / Size;  ///< leaves bits for a tag

  static constexpr std::size_t bytes_for(std::size_t segments) noexcept {
    std::size_t bytes = Text::bytes_for(segments);
    for (const std::uint32_t order : orders) bytes += Sets::bytes_for(sets_for(order, segments));
    return bytes;
  }

  /// Allocates `segments` free segments. Call it once. Returns false if memory runs out.
  [[nodiscard]] bool allocate(std::size_t segments, std::uint64_t key) noexcept {
    key_ = key;
    bool done = text_.allocate(segments);
    for (std::size_t i = 0; i < orders.size(); ++i)
      done = done && index_[i].allocate(sets_for(orders[i], segments), segments * Size, orders[i] == 1 ? 4 : 12);
    return done;
  }
  [[nodiscard]] std::size_t count() const noexcept { return text_.count(); }

  // For readers.

  [[nodiscard]] HistoryWord word(Slot slot) const noexcept { return text_.word(slot); }
  [[nodiscard]] Slot after(Slot slot) const noexcept { return text_.after(slot); }
  /// Returns the use count of the segment that contains this slot.
  [[nodiscard]] std::atomic<std::uint8_t>& use_count(Slot slot) const noexcept { return text_.info_of(slot).use_count; }

  /// Writes matches to `out` and returns their number. A match is the slot after an occurrence of at least the last
  /// token of `end`. Longer n-grams come first; within one length, the latest match comes first. `Found` is constructed
  /// from a slot and its agreements.
  template <class Found>
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<Found> out) const noexcept {
    if (count() == 0) return 0;
    const Hashes hashes = hashes_of(end);
    for (std::size_t i = 0; i < orders.size(); ++i)
      if (end.size() >= orders[i]) index_[i].prefetch(hashes[i]);
    std::array<Slot, most_matches> slots;
    std::size_t candidates = 0;
    for (std::size_t i = 0; i < orders.size() && candidates < slots.size(); ++i) {
      if (end.size() < orders[i]) continue;
      index_[i].for_each(hashes[i], [&](Slot slot) {
        const auto known = slots.begin() + static_cast<std::ptrdiff_t>(candidates);
        if (std::find(slots.begin(), known, slot) != known) return true;
        prefetch(text_.address(slot));
        slots[candidates++] = slot;
        return candidates < slots.size();
      });
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < candidates && found < out.size(); ++i) {
      const Slot next = text_.after(slots[i]);
      if (next == nowhere || text_.word(next).empty()) continue;
      const std::uint32_t agreements = agreements_before(slots[i], end);
      if ((agreements & 1) != 0) out[found++] = {next, agreements};
    }
    return found;
  }

  // For the writer alone.

  /// Returns the latest slot at which this n-gram ends and after which the text continues, or `nowhere` if there is
  /// none. Ignores the slot stored last.
  [[nodiscard]] Slot find_latest(std::span<const Token, orders[0]> ngram) const noexcept {
    Slot latest = nowhere;
    index_[0].for_each(hashes_of(ngram)[0], [&](Slot slot) {
      if (slot == last_) return true;
      const Slot next = text_.after(slot);
      if (next == nowhere || text_.word(next).empty()) return true;
      if (std::countr_one(agreements_before(slot, ngram)) < static_cast<int>(orders[0])) return true;
      latest = slot;
      return false;
    });
    return latest;
  }
  /// Returns the slot `back` tokens before this one, in the same run. Requires that the run has these tokens.
  [[nodiscard]] Slot before(Slot slot, std::size_t back) const noexcept {
    for (; back > 0; --back) slot = text_.before(slot);
    return slot;
  }

  /// Stores a token after the last one. Takes a new segment if necessary, which may evict text.
  void store(HistoryWord word, SequenceTag sequence) noexcept {
    if (segment_ != nowhere && text_.info(segment_).sequence != sequence) segment_ = nowhere;
    if (segment_ == nowhere || text_.info(segment_).used == Size) {
      const Slot next = take_segment(sequence);
      if (segment_ != nowhere && run_size_ > 0) text_.link(segment_, next);
      segment_ = next;
    }
    last_ = static_cast<Slot>(segment_ * Size + text_.info(segment_).used++);
    text_.set(last_, word);
    ++counts_.stored;
    std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
    recent_.back() = word.token();
    index(recent_, ++run_size_, last_);
  }
  /// Ends the run: the next stored token begins a new run.
  void end_run() noexcept {
    if (run_size_ == 0) return;
    run_size_ = 0;
    last_ = nowhere;
    recent_.fill(0);
    std::uint16_t& used = text_.info(segment_).used;
    if (used + std::size_t{2} > Size)
      segment_ = nowhere;
    else
      ++used;  // a break
  }
  /// Returns the number of tokens in the run so far.
  [[nodiscard]] std::size_t run_size() const noexcept { return run_size_; }
  /// Returns the last tokens of the run. Only the last run_size() of them are meaningful.
  [[nodiscard]] std::span<const Token, orders[0]> recent() const noexcept { return recent_; }

  /// Counts a use of this segment, because its text was written again, and makes its n-grams the latest in the index.
  void touch(Slot segment) noexcept {
    count_up(text_.info(segment).use_count);
    index_again(segment);
  }
  /// Raises the use count of the current segment to `least` if it is lower.
  void raise_use_count(std::uint8_t least) noexcept {
    auto& now = text_.info(segment_).use_count;
    now.store(std::max(least, now.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }

  void remove(SequenceTag sequence) noexcept {
    for (std::size_t i = 0; i < count(); ++i) {
      const auto segment = static_cast<Slot>(i);
      if (text_.info(segment).used == 0 || text_.info(segment).sequence != sequence) continue;
      if (segment == segment_) forget_run();
      counts_.removed += text_.free(segment);
    }
  }
  void clear() noexcept {
    if (count() == 0) return;
    forget_run();
    for (std::size_t i = count(); i-- > 0;) text_.free(static_cast<Slot>(i));
    for (Sets& sets : index_) sets.clear();
    counts_ = {};
  }

  /// Calls visit(BasicHistoryRun) for all runs, in the eviction order of their first segments.
  template <class Visit>
  void for_each_run(Visit visit) const {
    if (count() == 0) return;
    for (Slot first = text_.oldest(); first != nowhere; first = text_.info(first).newer) {
      const auto& info = text_.info(first);
      if (info.used == 0 || info.previous.load(std::memory_order_relaxed) != nowhere) continue;
      BasicHistoryRun<Slot> run = {info.sequence, 0, 0};
      const auto end = [&] {
        if (run.size > 0) visit(run);
        run.size = 0;
      };
      for (Slot segment = first; segment != nowhere;
           segment = text_.info(segment).next.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < text_.info(segment).used; ++i) {
          const auto slot = static_cast<Slot>(segment * Size + i);
          if (text_.word(slot).empty()) {
            end();
          } else if (run.size++ == 0) {
            run.first = slot;
          }
        }
      }
      end();
    }
  }

  [[nodiscard]] HistoryCounts& counts() noexcept { return counts_; }
  [[nodiscard]] const HistoryCounts& counts() const noexcept { return counts_; }

 private:
  using Text = Segments<Slot, Size>;
  using Sets = NgramSets<Slot>;
  using Hashes = std::array<std::uint64_t, orders.size()>;
  static constexpr std::size_t most_considered = 32;  // maximum number of segments considered for one eviction
  static_assert(Size >= 2 && Size < 65536);

  /// Returns the number of sets for one n-gram length. There is one entry for each slot, or a quarter as many for
  /// single tokens, because few of them are distinct.
  static constexpr std::size_t sets_for(std::uint32_t order, std::size_t segments) noexcept {
    return std::max<std::size_t>(1, segments * Size / (order == 1 ? 4 * Sets::ways : Sets::ways));
  }

  /// Returns the hashes of the n-grams at the end of the text. They equal CyclicHash::value(), but are summed from the
  /// end.
  [[nodiscard]] Hashes hashes_of(TokenSpan end) const noexcept {
    Hashes hashes{};
    std::uint64_t sum = 0;
    std::size_t n = 0;
    for (std::size_t i = orders.size(); i-- > 0;) {
      for (; n < orders[i] && n < end.size(); ++n)
        sum ^= std::rotl(token_hash(key_, end[end.size() - 1 - n]), static_cast<int>(n));
      hashes[i] = spread(sum);
    }
    return hashes;
  }
  /// Compares the tokens up to and including `slot` with the end of a text. Returns a bit mask. Bit i is set if the
  /// token i places before `slot` equals the token i places before the last token of `end`. Reads the previous segment
  /// only if all tokens compared so far agree.
  [[nodiscard]] std::uint32_t agreements_before(Slot slot, TokenSpan end) const noexcept {
    std::uint32_t agreements = 0;
    const std::size_t compared = std::min(end.size(), most_compared);
    for (std::size_t i = 0; i < compared; ++i) {
      const HistoryWord word = text_.word(slot);
      if (word.empty()) break;
      agreements |= std::uint32_t{word.token() == end[end.size() - 1 - i]} << i;
      if (slot % Size == 0 && (agreements & (agreements + 1)) != 0) break;
      slot = text_.before(slot);
      if (slot == nowhere) break;
    }
    return agreements;
  }

  /// Adds the n-grams that end at `slot` to the index. The last `known` tokens of `end` are the text up to and
  /// including `slot`.
  void index(std::span<const Token, orders[0]> end, std::size_t known, Slot slot) noexcept {
    const Hashes hashes = hashes_of(end);
    for (std::size_t i = 0; i < orders.size(); ++i) index_[i].prefetch(hashes[i]);
    for (std::size_t i = 0; i < orders.size(); ++i)
      if (known >= orders[i]) index_[i].insert(hashes[i], slot);
  }
  /// Makes the n-grams of a segment the latest in the index, because the index evicts its oldest entries first.
  void index_again(Slot segment) noexcept {
    std::array<Token, orders[0]> end{};
    std::size_t known = 0;
    const auto first = static_cast<Slot>(segment * Size);
    for (Slot slot = text_.before(first); slot != nowhere && known + 1 < end.size(); slot = text_.before(slot)) {
      const HistoryWord word = text_.word(slot);
      if (word.empty()) break;
      end[end.size() - 1 - known++] = word.token();
    }
    for (std::size_t i = 0; i < text_.info(segment).used; ++i) {
      const auto slot = static_cast<Slot>(first + i);
      const HistoryWord word = text_.word(slot);
      if (word.empty()) {
        known = 0;
        continue;
      }
      std::move(end.begin() + 1, end.end(), end.begin());
      end.back() = word.token();
      index(end, ++known, slot);
    }
  }

  /// Returns a free segment to write to, after an eviction if necessary.
  Slot take_segment(SequenceTag sequence) noexcept {
    const Eviction eviction = choose_evicted();
    for (const Slot segment : std::span(eviction.passed_over).first(eviction.passed)) give_second_chance(segment);
    // If there is no other segment, the current one is evicted.
    const Slot evicted = eviction.segment != nowhere ? eviction.segment : std::exchange(segment_, nowhere);
    counts_.evicted += text_.free(evicted);
    text_.info(evicted).sequence = sequence;
    text_.make_newest(evicted);
    return evicted;
  }
  struct Eviction {
    Slot segment = nowhere;
    // Segments that were considered but not evicted: each gets a second chance.
    std::array<Slot, most_considered> passed_over{};
    std::size_t passed = 0;
  };
  /// Chooses the oldest segment without uses. If the 32 oldest segments all have uses, chooses the one with the fewest
  /// uses, and the oldest of these in a tie. Never chooses the current segment; `nowhere` if there is no other.
  [[nodiscard]] Eviction choose_evicted() const noexcept {
    Eviction eviction;
    std::uint8_t fewest = 0;
    for (Slot at = text_.oldest(); at != nowhere && at != segment_; at = text_.info(at).newer) {
      const std::uint8_t uses = uses_of(at);
      const bool better = eviction.segment == nowhere || uses < fewest;
      if (eviction.segment != nowhere) eviction.passed_over[eviction.passed++] = better ? eviction.segment : at;
      if (better) {
        eviction.segment = at;
        fewest = uses;
      }
      if (fewest == 0 || eviction.passed + 1 == most_considered) break;
    }
    return eviction;
  }
  /// Returns the use count of a segment. Returns 0 for a free segment, even if a reader has incremented its counter
  /// since it was freed.
  [[nodiscard]] std::uint8_t uses_of(Slot segment) const noexcept {
    const auto& info = text_.info(segment);
    return info.used == 0 ? std::uint8_t{0} : info.use_count.load(std::memory_order_relaxed);
  }
  /// Gives a used segment its second chance, as in the clock algorithm: moves it to the end of the queue and halves its
  /// use count.
  void give_second_chance(Slot segment) noexcept {
    halve(text_.info(segment).use_count);
    index_again(segment);
    text_.make_newest(segment);
    ++counts_.second_chances;
  }
  void forget_run() noexcept {
    segment_ = nowhere;
    last_ = nowhere;
    run_size_ = 0;
    recent_.fill(0);
  }

  std::uint64_t key_ = 0;
  Text text_;
  std::array<Sets, orders.size()> index_;
  HistoryCounts counts_;

  // The run that is being written.
  Slot segment_ = nowhere;                 // the current segment; nowhere: the next token needs a new one
  Slot last_ = nowhere;                    // the slot of the token stored last
  std::size_t run_size_ = 0;               // tokens
  std::array<Token, orders[0]> recent_{};  // the last tokens of the run
};

}}}  // namespace reprise::detail
