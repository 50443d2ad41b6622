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

#include "reprise/core/token.hpp"
#include "reprise/index/token_hash.hpp"
#include "reprise/memory/ngram_sets.hpp"
#include "reprise/memory/remembered.hpp"
#include "reprise/memory/segments.hpp"

namespace reprise::detail {

/// A fixed number of segments and an index over the n-grams in them. What is stored drives out what is oldest, but for
/// what has been of use.
///
/// A sequence is stored in pieces: an empty word ends one where the next begins in the same segment.
///
/// One writer and any number of readers, see Segments and NgramSets.
template <class Place, std::size_t Size>
class IndexedSegments {
 public:
  using Match = BasicMemoryMatch<Place>;
  static constexpr Place nowhere = static_cast<Place>(-1);
  static constexpr std::array<std::uint32_t, 4> orders = {8, 4, 2, 1};  ///< lengths of the n-grams, longest first
  static constexpr std::size_t most_matches = 12;
  static constexpr std::size_t most_compared = 32;                                            ///< tokens, for a match
  static constexpr std::size_t most_segments = std::numeric_limits<Place>::max() / 4 / Size;  ///< leaves a tag

  static constexpr std::size_t bytes_for(std::size_t segments) noexcept {
    std::size_t bytes = Text::bytes_for(segments);
    for (const std::uint32_t order : orders) bytes += Sets::bytes_for(sets_for(order, segments));
    return bytes;
  }

  /// False: out of memory.
  [[nodiscard]] bool make(std::size_t segments, std::uint64_t key) noexcept {
    key_ = key;
    bool made = text_.make(segments);
    for (std::size_t i = 0; i < orders.size(); ++i)
      made = made && index_[i].make(sets_for(orders[i], segments), segments * Size, orders[i] == 1 ? 4 : 12);
    return made;
  }
  [[nodiscard]] std::size_t count() const noexcept { return text_.count(); }

  // For readers.

  [[nodiscard]] Word word(Place place) const noexcept { return text_.word(place); }
  [[nodiscard]] Place after(Place place) const noexcept { return text_.after(place); }
  /// Counts use of the text around a place.
  [[nodiscard]] std::atomic<std::uint8_t>& credit_of(Place place) const noexcept { return text_.info_of(place).credit; }

  /// Places that end like `end` does: those of longer n-grams first, and of these the latest. `Found` is made of a
  /// place and its agreements.
  template <class Found>
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<Found> out) const noexcept {
    if (count() == 0) return 0;
    const Hashes hashes = hashes_of(end);
    for (std::size_t i = 0; i < orders.size(); ++i)
      if (end.size() >= orders[i]) index_[i].prefetch(hashes[i]);
    std::array<Place, most_matches> places;
    std::size_t candidates = 0;
    for (std::size_t i = 0; i < orders.size() && candidates < places.size(); ++i) {
      if (end.size() < orders[i]) continue;
      index_[i].for_each(hashes[i], [&](Place place) {
        const auto known = places.begin() + static_cast<std::ptrdiff_t>(candidates);
        if (std::find(places.begin(), known, place) != known) return true;
        prefetch(text_.address(place));
        places[candidates++] = place;
        return candidates < places.size();
      });
    }
    std::size_t found = 0;
    for (std::size_t i = 0; i < candidates && found < out.size(); ++i) {
      const Place next = text_.after(places[i]);
      if (next == nowhere || text_.word(next).empty()) continue;
      const std::uint32_t agreements = agreements_before(places[i], end);
      if ((agreements & 1) != 0) out[found++] = {next, agreements};
    }
    return found;
  }

  // For the writer alone.

  /// The latest place that ends with these eight tokens and has something behind it; `nowhere`: there is none.
  [[nodiscard]] Place find_run(std::span<const Token, orders[0]> ngram) const noexcept {
    Place run = nowhere;
    index_[0].for_each(hashes_of(ngram)[0], [&](Place place) {
      if (place == last_) return true;
      const Place next = text_.after(place);
      if (next == nowhere || text_.word(next).empty()) return true;
      if (std::countr_one(agreements_before(place, ngram)) < static_cast<int>(orders[0])) return true;
      run = place;
      return false;
    });
    return run;
  }
  /// The place of the token `back` places before one, in the same piece.
  [[nodiscard]] Place before(Place place, std::size_t back) const noexcept {
    for (; back > 0; --back) place = text_.before(place);
    return place;
  }

  /// Stores a token behind the last one.
  void store(Word word, SequenceName sequence) noexcept {
    if (segment_ != nowhere && text_.info(segment_).sequence != sequence) segment_ = nowhere;
    if (segment_ == nowhere || text_.info(segment_).used == Size) {
      const Place next = take_segment(sequence);
      if (segment_ != nowhere && piece_ > 0) text_.link(segment_, next);
      segment_ = next;
    }
    last_ = static_cast<Place>(segment_ * Size + text_.info(segment_).used++);
    text_.set(last_, word);
    ++counts_.stored;
    std::move(recent_.begin() + 1, recent_.end(), recent_.begin());
    recent_.back() = word.token();
    index(recent_, ++piece_, last_);
  }
  /// What is stored next begins a piece.
  void end_piece() noexcept {
    if (piece_ == 0) return;
    piece_ = 0;
    last_ = nowhere;
    recent_.fill(0);
    std::uint16_t& used = text_.info(segment_).used;
    if (used + std::size_t{2} > Size)
      segment_ = nowhere;
    else
      ++used;  // a break
  }
  /// Tokens of the piece so far.
  [[nodiscard]] std::size_t piece() const noexcept { return piece_; }
  /// The last of them; as many as have been stored count.
  [[nodiscard]] std::span<const Token, orders[0]> recent() const noexcept { return recent_; }

  /// The text of this segment has come by again.
  void came_by(Place segment) noexcept {
    count_up(text_.info(segment).credit);
    index_again(segment);
  }
  /// The segment that is written to is worth at least so much.
  void set_credit(std::uint8_t credit) noexcept {
    auto& now = text_.info(segment_).credit;
    now.store(std::max(credit, now.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }

  void remove(SequenceName sequence) noexcept {
    for (std::size_t i = 0; i < count(); ++i) {
      const auto segment = static_cast<Place>(i);
      if (text_.info(segment).used == 0 || text_.info(segment).sequence != sequence) continue;
      if (segment == segment_) forget_piece();
      counts_.removed += text_.free(segment);
    }
  }
  void clear() noexcept {
    if (count() == 0) return;
    forget_piece();
    for (std::size_t i = count(); i-- > 0;) text_.free(static_cast<Place>(i));
    for (Sets& sets : index_) sets.clear();
    counts_ = {};
  }

  /// Calls visit(sequence, first place, size) for all pieces, those first whose segments are next to give way.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    if (count() == 0) return;
    for (Place first = text_.oldest(); first != nowhere; first = text_.info(first).newer) {
      const auto& info = text_.info(first);
      if (info.used == 0 || info.previous.load(std::memory_order_relaxed) != nowhere) continue;
      BasicMemoryPiece<Place> piece = {info.sequence, 0, 0};
      const auto end = [&] {
        if (piece.size > 0) visit(piece);
        piece.size = 0;
      };
      for (Place segment = first; segment != nowhere;
           segment = text_.info(segment).next.load(std::memory_order_relaxed)) {
        for (std::size_t i = 0; i < text_.info(segment).used; ++i) {
          const auto place = static_cast<Place>(segment * Size + i);
          if (text_.word(place).empty()) {
            end();
          } else if (piece.size++ == 0) {
            piece.first = place;
          }
        }
      }
      end();
    }
  }

  [[nodiscard]] MemoryCounts& counts() noexcept { return counts_; }
  [[nodiscard]] const MemoryCounts& counts() const noexcept { return counts_; }

 private:
  using Text = Segments<Place, Size>;
  using Sets = NgramSets<Place>;
  using Hashes = std::array<std::uint64_t, orders.size()>;
  static constexpr std::size_t most_looked_at = 32;  // segments, for one that gives way
  static_assert(Size >= 2 && Size < 65536);

  /// One entry for each place; a quarter of it for single tokens, of which few are distinct.
  static constexpr std::size_t sets_for(std::uint32_t order, std::size_t segments) noexcept {
    return std::max<std::size_t>(1, segments * Size / (order == 1 ? 4 * Sets::ways : Sets::ways));
  }

  /// Of the n-grams at the end: those of CyclicHash, summed up from the end.
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
  /// Which of the last tokens up to `place`, it included, are those at the end of the text. What lies in another
  /// segment is worth the way there only if everything agrees up to there.
  [[nodiscard]] std::uint32_t agreements_before(Place place, TokenSpan end) const noexcept {
    std::uint32_t agreements = 0;
    const std::size_t compared = std::min(end.size(), most_compared);
    for (std::size_t i = 0; i < compared; ++i) {
      const Word word = text_.word(place);
      if (word.empty()) break;
      agreements |= std::uint32_t{word.token() == end[end.size() - 1 - i]} << i;
      if (place % Size == 0 && (agreements & (agreements + 1)) != 0) break;
      place = text_.before(place);
      if (place == nowhere) break;
    }
    return agreements;
  }

  /// The index learns of the n-grams that end at a place, of a text of which `known` tokens are known.
  void index(std::span<const Token, orders[0]> end, std::size_t known, Place place) noexcept {
    const Hashes hashes = hashes_of(end);
    for (std::size_t i = 0; i < orders.size(); ++i) index_[i].prefetch(hashes[i]);
    for (std::size_t i = 0; i < orders.size(); ++i)
      if (known >= orders[i]) index_[i].insert(hashes[i], place);
  }
  /// The index forgets n-grams by their age: those of a segment are made young again.
  void index_again(Place segment) noexcept {
    std::array<Token, orders[0]> end{};
    std::size_t known = 0;
    const auto first = static_cast<Place>(segment * Size);
    for (Place place = text_.before(first); place != nowhere && known + 1 < end.size(); place = text_.before(place)) {
      const Word word = text_.word(place);
      if (word.empty()) break;
      end[end.size() - 1 - known++] = word.token();
    }
    for (std::size_t i = 0; i < text_.info(segment).used; ++i) {
      const auto place = static_cast<Place>(first + i);
      const Word word = text_.word(place);
      if (word.empty()) {
        known = 0;
        continue;
      }
      std::move(end.begin() + 1, end.end(), end.begin());
      end.back() = word.token();
      index(end, ++known, place);
    }
  }

  /// A segment to write to: the oldest one without credit; of many that all have, the oldest with the least.
  Place take_segment(SequenceName sequence) noexcept {
    std::array<Place, most_looked_at> others;
    std::size_t spared = 0;
    Place taken = nowhere;
    std::uint8_t least = 0;
    for (Place at = text_.oldest(); at != nowhere && at != segment_; at = text_.info(at).newer) {
      // A reader may have been late to give credit to what is free by now.
      const std::uint8_t credit = text_.info(at).used == 0 ? 0 : text_.info(at).credit.load(std::memory_order_relaxed);
      const bool better = taken == nowhere || credit < least;
      if (taken != nowhere) others[spared++] = better ? taken : at;
      if (better) {
        taken = at;
        least = credit;
      }
      if (least == 0 || spared + 1 == most_looked_at) break;
    }
    if (taken == nowhere) taken = std::exchange(segment_, nowhere);  // there is no other one
    for (const Place segment : std::span(others).first(spared)) spare(segment);
    counts_.evicted += text_.free(taken);
    text_.info(taken).sequence = sequence;
    text_.make_newest(taken);
    return taken;
  }
  void spare(Place segment) noexcept {
    halve(text_.info(segment).credit);
    index_again(segment);
    text_.make_newest(segment);
    ++counts_.spared;
  }
  void forget_piece() noexcept {
    segment_ = nowhere;
    last_ = nowhere;
    piece_ = 0;
    recent_.fill(0);
  }

  std::uint64_t key_ = 0;
  Text text_;
  std::array<Sets, orders.size()> index_;
  MemoryCounts counts_;

  // Of what is being written.
  Place segment_ = nowhere;                // nowhere: the next token begins a piece
  Place last_ = nowhere;                   // the last token stored
  std::size_t piece_ = 0;                  // tokens of this piece
  std::array<Token, orders[0]> recent_{};  // the last of them
};

}  // namespace reprise::detail
