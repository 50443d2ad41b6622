// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/token_hash.hpp"
#include "reprise/memory/ngram_sets.hpp"
#include "reprise/memory/segments.hpp"

namespace reprise {

/// Names a remembered sequence, so that it can be removed. Several may share a name.
using SequenceName = std::uint64_t;

struct MemoryOptions {
  std::size_t max_bytes = std::size_t{64} << 20;  ///< all of it is allocated by make(), and never more
  std::uint64_t key = IndexOptions{}.key;         ///< secret and random where text comes from strangers
  bool prompts = true;                            ///< remember what was read
  bool outputs = true;                            ///< remember what the model said
};

/// What a memory has done since it was made or cleared.
struct MemoryCounts {
  std::uint64_t stored = 0;      ///< tokens that were stored
  std::uint64_t duplicates = 0;  ///< tokens that were not, because they were there
  std::uint64_t refused = 0;     ///< tokens that no memory can hold: below 0, or 2^31 - 1
  std::uint64_t evicted = 0;     ///< tokens that gave way to others
  std::uint64_t spared = 0;      ///< segments that were next to give way, and had been of use
  std::uint64_t removed = 0;     ///< tokens that remove() took out
  friend bool operator==(const MemoryCounts&, const MemoryCounts&) = default;
};

/// A place in a memory that ends like a text does.
template <class Place>
struct BasicMemoryMatch {
  Place next = 0;                ///< where it goes on
  std::uint32_t agreements = 0;  ///< bit i: the token i + 1 places back agrees
  std::uint8_t seen = 0;         ///< how often more this text came by
  friend bool operator==(const BasicMemoryMatch&, const BasicMemoryMatch&) = default;
};

/// Text that a memory holds in one run: from where it begins, or what is left of it does, to where it breaks off.
template <class Place>
struct BasicMemoryPiece {
  SequenceName sequence = 0;
  Place first = 0;       ///< the place of its first token
  std::size_t size = 0;  ///< tokens
  friend bool operator==(const BasicMemoryPiece&, const BasicMemoryPiece&) = default;
};

/// Sequences of the past, in a fixed number of bytes, with an index over their n-grams: what a drafter can copy from
/// beside its own context.
///
/// Text that is there already is not stored again: runs of 64 tokens or more are counted as seen once more, and only
/// their last tokens are stored, where they lead to something new. When the memory is full, a hand goes round over its
/// segments of 32 tokens (the clock of virtual memories; Corbato 1968): one that has been of use is spared, and its
/// credit and its count are halved; the others give way. So age decides, but for what is used or comes by again.
///
/// **Threads.** One writer at a time (all members that are not const), any number of readers beside it, without locks
/// and without waiting. Neither snapshots nor epochs are needed, because a reader trusts nothing: tokens and links are
/// single atomic words, a match is what was compared, and what is overwritten meanwhile makes a bad draft, no bad
/// token. A reader never sees what was not in this memory.
///
/// **Cost.** 17 bytes for each token it has room for. append: some 0.3 microseconds a token. find: four cache lines for
/// each n-gram length and each match. remove: a look at every segment. Nothing allocates after make().
///
/// `PlaceT` and `segment_size` are small in tests, where everything wraps and runs full.
template <class PlaceT, std::size_t segment_size = 32>
class BasicSharedMemory {
 public:
  using Place = PlaceT;
  using MemoryMatch = BasicMemoryMatch<Place>;
  using MemoryPiece = BasicMemoryPiece<Place>;
  static constexpr Place nowhere = static_cast<Place>(-1);
  static constexpr std::array<std::uint32_t, 3> orders = {8, 4, 2};  ///< n-grams that are found, longest first
  static constexpr std::size_t most_matches = 12;                    ///< that find() has to tell
  static constexpr std::size_t least_duplicate = 64;                 ///< a shorter run is stored again
  static constexpr std::size_t lead = 16;  ///< tokens of a run that are stored before what is new

  /// A memory without room: finds and keeps nothing.
  BasicSharedMemory() noexcept = default;

  /// Errors: out_of_memory; size_out_of_range when the ceiling has no room for one segment.
  static Result<BasicSharedMemory> make(const MemoryOptions& options = {}) {
    BasicSharedMemory memory;
    memory.options_ = options;
    const std::size_t segments = std::min<std::size_t>(options.max_bytes / segment_bytes, most_segments);
    if (segments == 0)
      return Error{ErrorCode::size_out_of_range, "MemoryOptions::max_bytes has no room for one segment: give it more",
                   options.max_bytes, segment_bytes};
    bool made = memory.segments_.make(segments);
    for (auto& index : memory.index_) made = made && index.make(segments * sets_per_segment, segments * segment_size);
    if (!made)
      return Error{ErrorCode::out_of_memory, "there is no memory for MemoryOptions::max_bytes: give it less",
                   options.max_bytes, 0};
    return memory;
  }

  // For readers.

  /// Writes places that end like `end` does, those that agree longest first looked for, at most out.size() and
  /// `most_matches`. The answer is their number. At least two tokens agree.
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<MemoryMatch> out) const noexcept {
    if (segments_.count() == 0) return 0;
    std::array<std::uint64_t, orders.size()> hashes{};
    for (std::size_t i = 0; i < orders.size(); ++i) {
      if (end.size() < orders[i]) continue;
      hashes[i] = hash(end.last(orders[i]));
      index_[i].prefetch(hashes[i]);
    }
    std::array<Place, most_matches> places;
    std::size_t count = 0;
    for (std::size_t i = 0; i < orders.size(); ++i) {
      if (end.size() < orders[i]) continue;
      for (const Place place : index_[i].find(hashes[i])) {
        if (place == nowhere) break;
        if (std::find(places.begin(), places.begin() + count, place) != places.begin() + count) continue;
        detail::prefetch(segments_.address(place));
        places[count++] = place;
      }
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < count && found < out.size(); ++i) {
      const std::uint32_t agreements = agreements_before(places[i], end);
      if (std::countr_one(agreements) < static_cast<int>(orders.back())) continue;
      const Place next = segments_.after(places[i]);
      if (next == nowhere || segments_.word(next).empty()) continue;
      out[found++] = {next, agreements, segments_.info_of(next).seen.load(std::memory_order_relaxed)};
    }
    return found;
  }
  /// What stands at a place that find(), after() or for_each_piece() has told; no token where the sequence ends.
  [[nodiscard]] detail::Word word(Place place) const noexcept { return segments_.word(place); }
  /// The place behind; `nowhere` at the end.
  [[nodiscard]] Place after(Place place) const noexcept { return segments_.after(place); }
  /// How often more the text around a place came by.
  [[nodiscard]] std::uint8_t seen(Place place) const noexcept {
    return segments_.info_of(place).seen.load(std::memory_order_relaxed);
  }
  /// A drafted token from there was accepted. Any reader may say so.
  void credit(Place place) const noexcept { detail::count_up(segments_.info_of(place).credit); }

  [[nodiscard]] const MemoryOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return segments_.count() * segment_bytes; }
  /// Tokens it has room for.
  [[nodiscard]] std::size_t capacity() const noexcept { return segments_.count() * segment_size; }
  /// For the writer, or when nobody writes.
  [[nodiscard]] const MemoryCounts& counts() const noexcept { return counts_; }

  /// Calls visit(MemoryPiece) for all that is stored, from what is next to give way to what was written last: the
  /// oldest first, but for what was spared. The last tokens of a sequence that has not ended may be missing.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    for (std::size_t i = 0; i < segments_.count(); ++i) {
      const std::size_t begin = (hand_ + i) % segments_.count();
      const auto& info = segments_.info(begin);
      if (info.used == 0 || info.previous.load(std::memory_order_relaxed) != nowhere) continue;
      MemoryPiece piece = {info.sequence, static_cast<Place>(begin * segment_size), 0};
      for (auto segment = static_cast<Place>(begin); segment != nowhere;
           segment = segments_.info(segment).next.load(std::memory_order_relaxed))
        piece.size += segments_.info(segment).used;
      visit(piece);
    }
  }

  // For the writer.

  /// A sequence begins; the one before has ended.
  void begin_sequence(SequenceName name) noexcept {
    end_sequence();
    name_ = name;
  }
  /// The sequence goes on. In pieces of any size, so that a caller can do other things in between.
  void append(TokenSpan tokens, Origin origin) noexcept {
    if (segments_.count() == 0) return;
    if (!remembers(origin)) return end_piece();
    for (const Token token : tokens) {
      if (detail::Word::can_hold(token)) {
        add({token, origin});
      } else {
        ++counts_.refused;
        end_piece();
      }
    }
  }
  /// The sequence goes on with a token as another memory held it, and with its count there: it is stored, whether it is
  /// there already or not, and spared as if it had come by here so often.
  void restore(Token token, Origin origin, std::uint8_t seen) noexcept {
    if (segments_.count() == 0) return;
    if (!remembers(origin) || !detail::Word::can_hold(token)) return end_piece();
    if (run_next_ != nowhere) end_run();
    store({token, origin});
    segments_.info(segment_).seen.store(seen, std::memory_order_relaxed);
    segments_.info(segment_).credit.store(seen, std::memory_order_relaxed);
  }
  void end_sequence() noexcept { end_piece(); }

  /// Forgets all that was stored under this name. Text that other sequences said too, and that was stored under this
  /// name, is forgotten with it. Readers that are at it may still see single tokens of it until their draft is done.
  void remove(SequenceName name) noexcept {
    if (name == name_) end_sequence();
    for (std::size_t segment = 0; segment < segments_.count(); ++segment) {
      auto& info = segments_.info(segment);
      if (info.used == 0 || info.sequence != name) continue;
      counts_.removed += info.used;
      segments_.free(segment);
    }
  }
  /// Forgets everything.
  void clear() noexcept {
    end_sequence();
    for (std::size_t segment = 0; segment < segments_.count(); ++segment)
      if (segments_.info(segment).used != 0) segments_.free(segment);
    for (auto& index : index_) index.clear();
    hand_ = 0;
    counts_ = {};
  }

 private:
  using Segments = detail::Segments<Place, segment_size>;
  using Sets = detail::NgramSets<Place>;
  static constexpr std::size_t sets_per_segment = segment_size / Sets::ways;
  static constexpr std::size_t segment_bytes =
      Segments::bytes_for(1) + orders.size() * Sets::bytes_for(sets_per_segment);
  static constexpr std::size_t most_segments = (std::numeric_limits<Place>::max() / 4) / segment_size;  // leaves a tag
  static constexpr std::size_t most_spared = 8;  // one after the other

  [[nodiscard]] std::uint64_t hash(TokenSpan ngram) const noexcept {
    detail::CyclicHash hash;
    for (const Token token : ngram) hash.advance(detail::token_hash(options_.key, token));
    return hash.value();
  }
  /// Which of the last 32 tokens up to `place`, it included, are those at the end of the text.
  [[nodiscard]] std::uint32_t agreements_before(Place place, TokenSpan end) const noexcept {
    std::uint32_t agreements = 0;
    const std::size_t compared = std::min<std::size_t>(end.size(), 32);
    for (std::size_t i = 0; i < compared && place != nowhere; ++i, place = segments_.before(place)) {
      const detail::Word word = segments_.word(place);
      if (word.empty()) break;
      agreements |= std::uint32_t{word.token() == end[end.size() - 1 - i]} << i;
    }
    return agreements;
  }

  [[nodiscard]] bool remembers(Origin origin) const noexcept {
    return origin == Origin::output ? options_.outputs : options_.prompts;
  }

  // Writing. A run is text that goes on as `run_next_` does; the last tokens of it are held back until it is known
  // whether they have to be stored.

  void add(detail::Word word) noexcept {
    if (run_next_ != nowhere) {
      if (segments_.word(run_next_).is(word.token())) {
        held_[run_++ % held_.size()] = word;
        if (run_ >= least_duplicate && (run_ == least_duplicate || run_next_ % segment_size == 0)) {
          detail::count_up(segments_.info_of(run_next_).seen);
          detail::count_up(segments_.info_of(run_next_).credit);
        }
        run_next_ = segments_.after(run_next_);
        if (run_next_ == nowhere) end_run();
        return;
      }
      end_run();
    }
    store(word);
    look_for_run();
  }
  /// What was held back of a run is stored, or the end of it, if it was long.
  void end_run() noexcept {
    run_next_ = nowhere;
    std::size_t stored = run_;
    if (run_ >= least_duplicate) {
      counts_.duplicates += run_ - lead;
      stored = lead;
      piece_ = 0;
      segment_ = nowhere;
    }
    const std::size_t from = run_ - stored;
    const std::size_t to = std::exchange(run_, 0);
    for (std::size_t i = from; i < to; ++i) store(held_[i % held_.size()]);
  }
  void look_for_run() noexcept {
    if (piece_ < orders[0]) return;
    for (const Place place : index_[0].find(hash(TokenSpan(recent_)))) {
      if (place == nowhere) return;
      if (place == last_) continue;
      const Place next = segments_.after(place);
      if (next == nowhere || segments_.word(next).empty()) continue;
      if (std::countr_one(agreements_before(place, recent_)) < static_cast<int>(orders[0])) continue;
      run_next_ = next;
      run_ = 0;
      return;
    }
  }
  void end_piece() noexcept {
    if (run_ >= least_duplicate) {
      counts_.duplicates += run_;
      run_ = 0;
    }
    end_run();
    piece_ = 0;
    segment_ = nowhere;
  }

  void store(detail::Word word) noexcept {
    if (segment_ == nowhere || segments_.info(segment_).used == segment_size) {
      const Place next = take_segment();
      if (segment_ != nowhere) segments_.link(segment_, next);
      segment_ = next;
    }
    auto& info = segments_.info(segment_);
    last_ = static_cast<Place>(segment_ * segment_size + info.used++);
    segments_.set(last_, word);
    ++counts_.stored;
    std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
    recent_.back() = word.token();
    ++piece_;
    for (std::size_t i = 0; i < orders.size(); ++i)
      if (piece_ >= orders[i]) index_[i].insert(hash(TokenSpan(recent_).last(orders[i])), last_);
  }
  /// A segment to write: the next one that is free or has no credit; of some that all have, one with the least.
  Place take_segment() noexcept {
    std::array<std::size_t, most_spared> others{};
    std::size_t count = 0;
    std::size_t taken = segment_;
    std::uint8_t least = 255;
    for (std::size_t i = 0; i < std::min(most_spared, segments_.count()); ++i) {
      const std::size_t at = std::exchange(hand_, hand_ + 1 == segments_.count() ? 0 : hand_ + 1);
      if (at == segment_ && segments_.count() > 1) continue;
      auto& info = segments_.info(at);
      const std::uint8_t credit = info.used == 0 ? 0 : info.credit.load(std::memory_order_relaxed);
      if (taken == segment_ || credit < least) {
        if (taken != segment_) others[count++] = taken;
        taken = at;
        least = credit;
      } else {
        others[count++] = at;
      }
      if (credit == 0) break;
    }
    for (const std::size_t spared : std::span(others).first(count)) {
      detail::halve(segments_.info(spared).credit);
      detail::halve(segments_.info(spared).seen);
      index_again(spared);
      ++counts_.spared;
    }
    if (taken == segment_) segment_ = nowhere;
    auto& info = segments_.info(taken);
    counts_.evicted += info.used;
    segments_.free(taken);
    info.sequence = name_;
    return static_cast<Place>(taken);
  }
  /// The index forgets n-grams by their age: those of a segment that is spared are made young again.
  void index_again(std::size_t segment) noexcept {
    std::array<Token, orders[0]> ngram{};
    std::size_t known = 0;
    const auto first = static_cast<Place>(segment * segment_size);
    for (Place place = segments_.before(first); place != nowhere && known + 1 < ngram.size();
         place = segments_.before(place)) {
      const detail::Word word = segments_.word(place);
      if (word.empty()) break;
      ngram[ngram.size() - 1 - known++] = word.token();
    }
    for (std::size_t i = 0; i < segments_.info(segment).used; ++i) {
      const auto place = static_cast<Place>(first + i);
      std::move(ngram.begin() + 1, ngram.end(), ngram.begin());
      ngram.back() = segments_.word(place).token();
      ++known;
      for (std::size_t n = 0; n < orders.size(); ++n)
        if (known >= orders[n]) index_[n].insert(hash(TokenSpan(ngram).last(orders[n])), place);
    }
  }

  MemoryOptions options_;
  Segments segments_;
  std::array<Sets, orders.size()> index_;
  MemoryCounts counts_;

  // Of the sequence that is being written.
  SequenceName name_ = 0;
  Place segment_ = nowhere;                // that is written to; nowhere: the next token begins a piece
  Place last_ = nowhere;                   // the last token stored
  std::size_t piece_ = 0;                  // tokens stored one behind the other
  std::array<Token, orders[0]> recent_{};  // the last of them
  Place run_next_ = nowhere;               // where the memory goes on as the sequence does
  std::size_t run_ = 0;                    // for so many tokens by now, which are not stored yet
  std::array<detail::Word, least_duplicate> held_;
  std::size_t hand_ = 0;  // the next segment to give way
};

using SharedMemory = BasicSharedMemory<std::uint32_t>;

}  // namespace reprise
