// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/datastore.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/memory/indexed_segments.hpp"
#include "reprise/memory/remembered.hpp"

namespace reprise {

struct MemoryOptions {
  std::size_t max_bytes = std::size_t{64} << 20;  ///< all of it is allocated by make(), and never more
  std::uint64_t key = IndexOptions{}.key;         ///< secret and random where text comes from strangers
  std::uint32_t vocabulary = 0x7fffffff;          ///< tokens at or beyond it are refused, also those of snapshots
  bool prompts = true;                            ///< remember what was read
  bool outputs = true;                            ///< remember what the model said
};

/// Sequences of the past, in a fixed number of bytes, with an index over their n-grams: what a drafter can copy from
/// beside its own context.
///
/// Text that is there already is not stored again: a run of 64 tokens or more counts as use of what is there, and only
/// its last 16 tokens are stored, where something new follows. When the memory is full, segments of 32 tokens give way,
/// the oldest first; those that have been of use are spared, and their credit is halved (second chance, the clock of
/// virtual memories; Corbato 1968). So age decides, but for what is used or comes by again. Of 32 segments that have
/// all been of use one gives way. Sequences of the same name that come one after the other share a segment; others
/// begin a new one, so that a short sequence takes the room of 32 tokens.
///
/// **Threads.** One writer at a time (all members that are not const, and those that say so), any number of readers
/// beside it, without locks and without waiting. Neither snapshots nor epochs are needed, because a reader trusts
/// nothing: tokens and links are single atomic words, a match is what was compared, and what is overwritten meanwhile
/// makes a bad draft, no bad token. A reader never sees what was not in this memory. It stays where it is while it is
/// read: a drafter holds its address.
///
/// **Cost.** 18 bytes for each token it has room for. append: 0.3 to 0.5 microseconds a token; where all that is old
/// has been of use, up to 31 segments are indexed again before one gives way. find: a cache line for each of four
/// n-gram lengths, two or three for each of up to 12 matches. remove: a look at every segment. Nothing allocates after
/// make().
///
/// `PlaceT` and `segment_size` are small in tests, where everything wraps and runs full.
template <class PlaceT, std::size_t segment_size = 32>
class BasicSharedMemory {
  using Text = detail::IndexedSegments<PlaceT, segment_size>;

 public:
  using Place = PlaceT;
  using MemoryMatch = BasicMemoryMatch<Place>;
  using MemoryPiece = BasicMemoryPiece<Place>;
  static constexpr Place nowhere = Text::nowhere;
  static constexpr std::size_t segment_tokens = segment_size;
  static constexpr auto orders = Text::orders;  ///< lengths of the n-grams that are found, longest first
  static constexpr std::size_t most_matches = Text::most_matches;  ///< that find() has to tell
  static constexpr std::size_t least_duplicate = 64;               ///< a shorter run is stored again
  static constexpr std::size_t lead = 16;  ///< tokens of a run that are stored before what is new

  /// A memory without room: finds and keeps nothing.
  BasicSharedMemory() noexcept = default;

  /// What MemoryOptions::max_bytes has to be for room for so many tokens.
  static constexpr std::size_t bytes_for(std::size_t tokens) noexcept {
    return Text::bytes_for(std::max<std::size_t>(1, (tokens + segment_size - 1) / segment_size));
  }

  /// Errors: out_of_memory; size_out_of_range when the ceiling has no room for one segment. Of more than 18 GiB only as
  /// many are used.
  static Result<BasicSharedMemory> make(const MemoryOptions& options = {}) {
    std::size_t segments = std::min(options.max_bytes / (Text::bytes_for(1024) / 1024), Text::most_segments);
    while (segments > 0 && Text::bytes_for(segments) > options.max_bytes) --segments;
    if (segments == 0)
      return Error{ErrorCode::size_out_of_range, "MemoryOptions::max_bytes has no room for one segment: give it more",
                   options.max_bytes, Text::bytes_for(1)};
    BasicSharedMemory memory;
    memory.options_ = options;
    if (!memory.text_.make(segments, options.key))
      return Error{ErrorCode::out_of_memory, "there is no memory for MemoryOptions::max_bytes: give it less",
                   options.max_bytes, 0};
    return memory;
  }

  // For readers.

  /// Writes places that end like `end` does, in at least one token, and go on: at most out.size() and `most_matches`.
  /// Those of longer n-grams come first, of one length the latest. The answer is their number.
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<MemoryMatch> out) const noexcept {
    return text_.find(end, out);
  }
  /// The same, for readers that do not know the type of the store. See Datastore.
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<StoreMatch> out) const noexcept {
    return text_.find(end, out);
  }
  /// Writes the tokens from a place on that find() or read() has named, until the sequence ends. See Datastore.
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    StoreRun run{0, place};
    auto at = static_cast<Place>(place);
    while (run.size < out.size()) {
      const detail::Word word = at == nowhere ? detail::Word() : text_.word(at);
      if (word.empty()) return {run.size, no_place};
      out[run.size++] = word.token();
      at = text_.after(at);
    }
    run.next = at == nowhere ? no_place : StorePlace{at};
    return run;
  }
  /// What stands at a place that find(), after() or for_each_piece() has told; no token where the sequence ends.
  [[nodiscard]] detail::Word word(Place place) const noexcept { return text_.word(place); }
  /// The place behind; `nowhere` at the end.
  [[nodiscard]] Place after(Place place) const noexcept { return text_.after(place); }
  /// Says that a drafted token from there was accepted. Any reader may say so. See Datastore.
  void touch(StorePlace place) const noexcept { detail::count_up(text_.credit_of(static_cast<Place>(place))); }
  /// How often the text around a place was of use or came by again; halved each time it is spared.
  [[nodiscard]] std::uint8_t credit_of(Place place) const noexcept {
    return text_.credit_of(place).load(std::memory_order_relaxed);
  }

  [[nodiscard]] const MemoryOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return text_.count() == 0 ? 0 : Text::bytes_for(text_.count());
  }
  /// Tokens it has room for.
  [[nodiscard]] std::size_t capacity() const noexcept { return text_.count() * segment_size; }

  // For the writer, or when nobody writes.

  [[nodiscard]] const MemoryCounts& counts() const noexcept { return text_.counts(); }

  /// Calls visit(MemoryPiece) for all that is stored, from what is next to give way to what was written last: the
  /// oldest first, but for what was spared. The last tokens of a sequence that has not ended may be missing.
  template <class Visit>
  void for_each_piece(Visit visit) const {
    text_.for_each_piece(visit);
  }

  // For the writer.

  /// A sequence begins; the one before has ended.
  void begin_sequence(SequenceName name) noexcept {
    end_sequence();
    name_ = name;
  }
  /// The sequence goes on. In pieces of any size, so that a caller can do other things in between. A drafter finds a
  /// sequence that has not ended as one of the past: append what a request said when it is done, or its own words count
  /// twice. Where no sequence has begun, the name is 0.
  void append(TokenSpan tokens, Origin origin) noexcept {
    for (const Token token : tokens)
      if (accepts(token, origin)) add({token, origin});
  }
  /// The sequence goes on with a token as another memory held it, and with its credit there: it is stored, whether it
  /// is there already or not.
  void restore(Token token, Origin origin, std::uint8_t credit) noexcept {
    if (!accepts(token, origin)) return;
    end_run();
    text_.store({token, origin}, name_);
    text_.set_credit(credit);
  }
  void end_sequence() noexcept {
    end_piece();
    name_ = 0;
  }

  /// Forgets all that was stored under this name; if that is the name of the sequence that is being written, it goes on
  /// with what comes. Text that other sequences said too, and that was stored under this name, is forgotten with it;
  /// text that was stored under another name before stays. Readers that are at it may still see single tokens of it
  /// until their draft is done.
  void remove(SequenceName name) noexcept {
    if (name == name_) forget_held();
    text_.remove(name);
  }
  /// Forgets everything.
  void clear() noexcept {
    forget_held();
    name_ = 0;
    text_.clear();
  }

 private:
  static constexpr std::size_t head = orders[0];  // tokens that are looked up

  /// Whether there is a place for a token. What is left out breaks the text off.
  [[nodiscard]] bool accepts(Token token, Origin origin) noexcept {
    if (text_.count() == 0) return false;
    const bool known = static_cast<std::uint32_t>(token) < std::min(options_.vocabulary, detail::Word::most_tokens);
    const bool wanted = origin == Origin::output ? options_.outputs : options_.prompts;
    if (known && wanted) return true;
    text_.counts().refused += known ? 0 : 1;
    end_piece();
    return false;
  }

  // Tokens are held back as long as they may be known: the first few of a piece until they can be looked up, those of a
  // run, where the memory goes on as the sequence does, until it ends. A run may go on elsewhere: what was stored in
  // two pieces comes by in one.

  void add(detail::Word word) noexcept {
    if (in_run_) {
      if (run_next_ != nowhere && text_.word(run_next_).is(word.token())) return go_on(word);
      if (held_count_ >= head && go_on_elsewhere(word)) return;
      end_run();
    }
    if (text_.piece() > 0) {
      text_.store(word, name_);
      if (text_.piece() < head) return;
      const Place last = text_.find_run(text_.recent());
      if (last != nowhere) begin_run(last, text_.after(last));
      return;
    }
    hold(word);
    if (held_count_ < head) return;
    const Place last = text_.find_run(last_held());
    if (last == nowhere) return store_held();
    begin_run(last, text_.before(last, head - 1));
  }
  /// The memory may go on behind `last` as the sequence does; `begin`: the first token of it that is held, or will be.
  void begin_run(Place last, Place begin) noexcept {
    in_run_ = true;
    run_next_ = text_.after(last);
    run_begin_ = begin;
  }
  void go_on(detail::Word word) noexcept {
    hold(word);
    if (held_count_ == least_duplicate) {
      Place place = run_begin_;
      for (std::size_t i = 0; i < least_duplicate && place != nowhere; ++i, place = text_.after(place))
        if (i == 0 || place % segment_size == 0) text_.came_by(static_cast<Place>(place / segment_size));
    } else if (held_count_ > least_duplicate && run_next_ % segment_size == 0) {
      text_.came_by(static_cast<Place>(run_next_ / segment_size));
    }
    run_next_ = text_.after(run_next_);
  }
  [[nodiscard]] bool go_on_elsewhere(detail::Word word) noexcept {
    const detail::Word left_out = std::exchange(held_[held_count_ % held_.size()], word);
    ++held_count_;
    const Place last = text_.find_run(last_held());
    if (last == nowhere) {
      held_[--held_count_ % held_.size()] = left_out;
      return false;
    }
    begin_run(last, nowhere);
    if (held_count_ >= least_duplicate) text_.came_by(static_cast<Place>(last / segment_size));
    return true;
  }
  /// Something new follows.
  void end_run() noexcept {
    if (held_count_ >= least_duplicate) {
      text_.counts().duplicates += held_count_ - lead;
      text_.end_piece();
      store_held(lead);
    } else {
      store_held(held_count_);
    }
  }
  void end_piece() noexcept {
    if (text_.count() == 0) return;
    if (held_count_ >= least_duplicate) {
      text_.counts().duplicates += held_count_;
      forget_held();
    } else {
      store_held();
    }
    text_.end_piece();
    held_.fill({});
  }

  [[nodiscard]] std::array<Token, head> last_held() const noexcept {
    std::array<Token, head> tokens;
    for (std::size_t i = 0; i < head; ++i) tokens[i] = held_[(held_count_ - head + i) % held_.size()].token();
    return tokens;
  }
  void hold(detail::Word word) noexcept { held_[held_count_++ % held_.size()] = word; }
  /// Stores the last `count` of the held tokens.
  void store_held(std::size_t count) noexcept {
    for (std::size_t i = held_count_ - count; i < held_count_; ++i) text_.store(held_[i % held_.size()], name_);
    held_count_ = 0;
    in_run_ = false;
  }
  void store_held() noexcept { store_held(held_count_); }
  void forget_held() noexcept {
    held_count_ = 0;
    in_run_ = false;
    held_.fill({});
  }

  MemoryOptions options_;
  Text text_;

  // Of the sequence that is being written.
  SequenceName name_ = 0;
  bool in_run_ = false;
  Place run_begin_ = nowhere;   // of the first of these tokens; nowhere if not all are in one run
  Place run_next_ = nowhere;    // where it goes on; nowhere: it ends here
  std::size_t held_count_ = 0;  // of a run the last ones are held
  std::array<detail::Word, least_duplicate> held_;
};

using SharedMemory = BasicSharedMemory<std::uint32_t>;

static_assert(Datastore<SharedMemory>);

}  // namespace reprise
