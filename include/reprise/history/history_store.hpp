// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/datastore.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/indexed_segments.hpp"
#include "reprise/history/detail/segments.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 {

/// The caller's name for a stored sequence, which remove() needs. Several sequences may share a name.
using SequenceTag = detail::SequenceTag;

namespace detail {
template <class SlotT, std::size_t segment_size>
class BasicHistoryStore;
}

/// Stores past sequences in a fixed number of bytes, with an index over their n-grams. A drafter can copy from this
/// text in addition to its own context.
///
/// **Duplicates.** A repetition of 64 tokens or more is not stored again: it counts as a use of the stored text. If new
/// text follows the repetition, the last 16 tokens of the repetition are stored again. If new text precedes the
/// repetition, the first 8 tokens of the repetition are also stored again, and do not count towards the 64.
///
/// **Eviction.** A full history evicts segments of 32 tokens, the oldest first. Each segment has a use count: accepted
/// drafts and repetitions raise it. A segment with uses gets a second chance, and its count is halved (the clock
/// algorithm; Corbato 1968). If the 32 oldest segments all have uses, the one with the fewest is evicted. Consecutive
/// sequences with the same name can share a segment. A sequence with a different name begins a new segment, so even a
/// short sequence occupies the space of 32 tokens.
///
/// **Threads.** One thread at a time may write while any number of threads read, without locks and without waiting.
/// Non-const members are for the writer only. counts() and for_each_run() are for the writer too, or for any thread
/// while nobody writes. Neither snapshots nor epochs are needed, because a reader trusts nothing that it reads. Tokens
/// and links are single atomic words, and each match has been compared token by token. Text that is overwritten during
/// a read can make a draft wrong, but not the output. A reader never sees a token that was never in this history. Do
/// not move the object while drafters use it, because they hold its address.
///
/// **Cost.** 18 bytes for each token of capacity. With sequences of 2,048 tokens, 1% of the capacity stays unused, so a
/// stored token costs 18.2 bytes. append: 0.3 to 0.5 microseconds per token; an eviction may index up to 31 segments
/// again. find: one cache line for each of four n-gram lengths, and two or three for each of up to 12 matches. remove:
/// reads every segment once. Nothing allocates after make().
using HistoryStore = detail::BasicHistoryStore<std::uint32_t, 32>;

struct HistoryOptions {
  /// Upper bound on the memory of the history, in bytes. make() allocates as many segments as fit, and nothing
  /// allocates later. make() refuses more than 18 GiB (HistoryStore::most_bytes).
  std::size_t max_bytes = std::size_t{64} << 20;
  std::uint64_t key = IndexOptions{}.key;  ///< must be secret and random if untrusted text is stored
  /// Negative tokens and those from this value on are placeholders: they are not stored, and end the run. A snapshot
  /// that contains such a token is refused as a whole. make() refuses more than 2^31 - 1.
  std::uint32_t vocabulary = 0x7fffffff;
  bool prompts = true;  ///< if true, stores tokens of prompts
  bool outputs = true;  ///< if true, stores tokens that the model generated
};

namespace detail {

/// The class template of HistoryStore. Tests use small slot types and segments, so that numbers wrap and tables fill
/// up.
template <class SlotT, std::size_t segment_size>
class BasicHistoryStore {
  using Text = IndexedSegments<SlotT, segment_size>;

  static constexpr std::size_t segment_bytes = Text::bytes_for(1024) / 1024;

 public:
  using Counts = HistoryCounts;
  using Slot = SlotT;  ///< identifies a stored token
  using HistoryMatch = BasicHistoryMatch<Slot>;
  using HistoryRun = BasicHistoryRun<Slot>;
  static constexpr Slot nowhere = Text::nowhere;
  static constexpr std::size_t segment_tokens = segment_size;
  static constexpr auto orders = Text::orders;                     ///< lengths of the indexed n-grams, longest first
  static constexpr std::size_t most_matches = Text::most_matches;  ///< maximum number of matches per find()
  static constexpr std::size_t least_duplicate = 64;               ///< a shorter repetition is stored again
  static constexpr std::size_t lead = 16;  ///< last tokens of a repetition, stored again before new text

  /// The largest value of HistoryOptions::max_bytes for make().
  static constexpr std::uint64_t most_bytes = (std::uint64_t{Text::most_segments} + 1) * segment_bytes;

  /// Creates a history without capacity, which stores and finds nothing.
  BasicHistoryStore() noexcept = default;

  /// Returns the value of HistoryOptions::max_bytes for a capacity of at least `tokens` tokens.
  static constexpr std::size_t bytes_for(std::size_t tokens) noexcept {
    return Text::bytes_for(std::max<std::size_t>(1, (tokens + segment_size - 1) / segment_size));
  }

  /// Allocates the memory and returns an empty history. Errors: out_of_memory; size_out_of_range if max_bytes is too
  /// small for one segment (`limit`: the bytes needed), or if max_bytes or vocabulary is above its limit.
  static Result<BasicHistoryStore> make(const HistoryOptions& options = {}) noexcept {
    if (std::uint64_t{options.max_bytes} > most_bytes)
      return Error{ErrorCode::size_out_of_range,
                   "HistoryOptions::max_bytes is above the limit: pass at most HistoryStore::most_bytes",
                   options.max_bytes, most_bytes};
    if (options.vocabulary > HistoryWord::most_tokens)
      return Error{ErrorCode::size_out_of_range, "HistoryOptions::vocabulary is above the limit: pass at most 2^31 - 1",
                   options.vocabulary, HistoryWord::most_tokens};
    std::size_t segments = std::min(options.max_bytes / segment_bytes, Text::most_segments);
    while (segments > 0 && Text::bytes_for(segments) > options.max_bytes) --segments;
    if (segments == 0)
      return Error{ErrorCode::size_out_of_range, "HistoryOptions::max_bytes is too small for one segment: increase it",
                   options.max_bytes, Text::bytes_for(1)};
    BasicHistoryStore history;
    history.options_ = options;
    if (!history.text_.allocate(segments, options.key))
      return Error{ErrorCode::out_of_memory, "there is no memory for HistoryOptions::max_bytes: decrease it",
                   options.max_bytes, 0};
    return history;
  }

  // For readers.

  /// Looks up the last tokens of `end`. Writes up to min(out.size(), most_matches) matches to `out` and returns their
  /// number. Each match is an occurrence of at least the last token of `end`, and the stored text continues after it.
  /// Matches of longer n-grams come first; within one length, the latest match comes first.
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<HistoryMatch> out) const noexcept {
    return text_.find(end, out);
  }
  /// Like the overload above, but for readers that do not know the type of the store. See Datastore.
  [[nodiscard]] std::size_t find(TokenSpan end, std::span<StoreMatch> out) const noexcept {
    return text_.find(end, out);
  }
  /// Writes the tokens from `place` on, until `out` is full or the stored run ends. `place` must come from find() or
  /// read(). See Datastore.
  [[nodiscard]] StoreRun read(StorePlace place, std::span<Token> out) const noexcept {
    StoreRun run{0, place};
    auto at = static_cast<Slot>(place);
    while (run.size < out.size()) {
      const HistoryWord word = at == nowhere ? HistoryWord() : text_.word(at);
      if (word.empty()) return {run.size, no_place};
      out[run.size++] = word.token();
      at = text_.after(at);
    }
    run.next = at == nowhere ? no_place : StorePlace{at};
    return run;
  }
  /// Returns the token at `slot` and its origin. Returns an empty word if the stored run ends before this slot. `slot`
  /// must come from find(), after() or for_each_run(), and must not be `nowhere`.
  [[nodiscard]] HistoryWord word(Slot slot) const noexcept { return text_.word(slot); }
  /// Returns the slot after this one, or `nowhere` if there is none. The returned slot may be empty; see word().
  [[nodiscard]] Slot after(Slot slot) const noexcept { return text_.after(slot); }
  /// Counts a use of the text at `place`, because a drafted token from this place was accepted. Any reader may call it.
  /// See Datastore.
  void touch(StorePlace place) const noexcept { count_up(text_.use_count(static_cast<Slot>(place))); }
  /// Returns the use count of the segment of `slot`: uses and repetitions of its text, halved at each second chance.
  [[nodiscard]] std::uint8_t use_count(Slot slot) const noexcept {
    return text_.use_count(slot).load(std::memory_order_relaxed);
  }

  [[nodiscard]] const HistoryOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return text_.count() == 0 ? 0 : Text::bytes_for(text_.count());
  }
  /// Returns the capacity in tokens.
  [[nodiscard]] std::size_t capacity() const noexcept { return text_.count() * segment_size; }

  // For the writer, or for any thread while nobody writes.

  [[nodiscard]] const Counts& counts() const noexcept REPRISE_LIFETIMEBOUND { return text_.counts(); }

  /// Calls visit(HistoryRun) for all stored runs, in the eviction order of their first segments: oldest first, except
  /// text that got a second chance. The last tokens of a sequence that has not ended may be missing.
  template <class Visit>
  void for_each_run(Visit visit) const {
    text_.for_each_run(visit);
  }

  // For the writer.

  /// Ends the current sequence and begins a new one.
  void begin_sequence(SequenceTag name) noexcept {
    end_sequence();
    name_ = name;
  }
  /// Appends any number of tokens to the sequence. The last tokens may be held back, because they may repeat stored
  /// text. Drafters can find all other tokens before the sequence has ended. A token that HistoryOptions excludes is
  /// not stored, and ends the run. Append a request's text only when the request is done; otherwise, the request's
  /// drafter counts this text twice. Without begin_sequence(), the name of the sequence is 0.
  void append(TokenSpan tokens, Origin origin) noexcept {
    for (const Token token : tokens)
      if (accepts(token, origin)) add({token, origin});
  }
  /// Appends a token from a different history. Raises the use count of the token's segment to at least `use_count`, the
  /// count in the other history. The token is stored even if this history already holds the text, unless the options
  /// exclude the token.
  void restore(Token token, Origin origin, std::uint8_t use_count) noexcept {
    if (!accepts(token, origin)) return;
    store_held();
    text_.store({token, origin}, name_);
    state_ = State::storing;
    text_.raise_use_count(use_count);
  }
  void end_sequence() noexcept {
    end_run();
    name_ = 0;
  }

  /// Removes all text that was stored under this name. If the current sequence has this name, it stays open for further
  /// tokens. Text shared with other sequences is removed if it was stored under this name. It stays if it was stored
  /// earlier under a different name. Concurrent readers may still see single tokens of removed text until their draft
  /// is done.
  void remove(SequenceTag name) noexcept {
    if (name == name_) forget_held();
    text_.remove(name);
  }
  /// Removes all text, ends the current sequence and resets the counts.
  void clear() noexcept {
    forget_held();
    name_ = 0;
    text_.clear();
  }

 private:
  static constexpr std::size_t head = orders[0];  // number of tokens in one lookup

  // Tokens are held back while the store may already hold them. `held` counts the tokens since the last stored one.
  // `known` means that the last 8 tokens are also stored elsewhere and that the stored text continues after them.
  //
  //   state     held  next token                            becomes
  //   fresh     < 7   hold it                               fresh
  //   fresh     7     hold it; known?                       matching, else store all 8: storing
  //   storing   0     store it; known?                      matching, else storing
  //   matching  any   the match continues with it: hold it  matching.
  //   matching  >= 8  known elsewhere: hold it              matching, with the other match (text stored in two runs).
  //   matching  any   neither: store the held tokens, or    storing, and that row handles the token
  //                   a new run of the last 16 if held >= 64.
  //
  // At the end of the run, fewer than 64 held tokens are stored; 64 or more are dropped. The state becomes `fresh`.
  enum class State : std::uint8_t { fresh, storing, matching };

  /// The tokens that are held back: counts all of them and keeps the last 64.
  class HeldTokens {
   public:
    static constexpr std::size_t kept = least_duplicate;

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    /// Returns the held token `back` places before the latest one. Requires back < kept.
    [[nodiscard]] HistoryWord last(std::size_t back) const noexcept { return ring_[(count_ - 1 - back) % kept]; }
    void push(HistoryWord word) noexcept { ring_[count_++ % kept] = word; }
    void clear() noexcept { count_ = 0; }
    void wipe() noexcept { *this = {}; }  // also erases the tokens from memory

   private:
    std::size_t count_ = 0;
    std::array<HistoryWord, kept> ring_;
  };

  /// Returns true if the options allow the token to be stored. Otherwise ends the run and returns false.
  [[nodiscard]] bool accepts(Token token, Origin origin) noexcept {
    if (text_.count() == 0) return false;
    const bool known = static_cast<std::uint32_t>(token) < options_.vocabulary;
    const bool wanted = origin == Origin::output ? options_.outputs : options_.prompts;
    if (known && wanted) return true;
    text_.counts().refused += known ? 0 : 1;
    end_run();
    return false;
  }

  void add(HistoryWord word) noexcept {
    if (state_ == State::matching) {
      if (continue_match(word) || switch_match(word)) return;
      store_held();
    }
    if (state_ == State::storing) {
      text_.store(word, name_);
      if (text_.run_size() < head) return;
      const Slot last = text_.find_latest(text_.recent());
      if (last != nowhere) begin_match(last, text_.after(last));
    } else {
      held_.push(word);
      if (held_.count() < head) return;
      const Slot last = text_.find_latest(last_tokens());
      if (last != nowhere)
        begin_match(last, text_.before(last, head - 1));
      else
        store_held();
    }
  }

  /// Begins a match, because the stored text after `last` may equal the next tokens of the sequence. `begin`: the slot
  /// that matches the first held token; if no token is held, the slot after `last`. It is `nowhere` if the held tokens
  /// match slots in two or more runs.
  void begin_match(Slot last, Slot begin) noexcept {
    state_ = State::matching;
    match_next_ = text_.after(last);
    match_begin_ = begin;
  }
  [[nodiscard]] bool continue_match(HistoryWord word) noexcept {
    if (match_next_ == nowhere || !text_.word(match_next_).is(word.token())) return false;
    held_.push(word);
    // At 64 tokens, the match becomes a duplicate. It touches the segments matched so far if they are in one run, and
    // from then on each segment that it enters.
    if (held_.count() == least_duplicate) {
      Slot slot = match_begin_;
      for (std::size_t i = 0; i < least_duplicate && slot != nowhere; ++i, slot = text_.after(slot))
        if (i == 0 || slot % segment_size == 0) text_.touch(segment_of(slot));
    } else if (held_.count() > least_duplicate && match_next_ % segment_size == 0) {
      text_.touch(segment_of(match_next_));
    }
    match_next_ = text_.after(match_next_);
    return true;
  }
  [[nodiscard]] bool switch_match(HistoryWord word) noexcept {
    if (held_.count() < head) return false;
    std::array<Token, head> tokens = last_tokens();
    std::move(tokens.begin() + 1, tokens.end(), tokens.begin());
    tokens.back() = word.token();
    const Slot last = text_.find_latest(tokens);
    if (last == nowhere) return false;
    held_.push(word);
    begin_match(last, nowhere);
    if (held_.count() >= least_duplicate) text_.touch(segment_of(last));
    return true;
  }
  /// Stores the held tokens. If there are 64 or more, stores only the last 16, in a new run.
  void store_held() noexcept {
    std::size_t stored = held_.count();
    if (stored >= least_duplicate) {
      stored = lead;
      text_.counts().duplicates += held_.count() - lead;
      text_.end_run();
    }
    for (std::size_t back = stored; back-- > 0;) text_.store(held_.last(back), name_);
    held_.clear();
    state_ = State::storing;
  }
  void end_run() noexcept {
    if (text_.count() == 0) return;
    if (held_.count() >= least_duplicate)
      text_.counts().duplicates += held_.count();
    else
      store_held();
    text_.end_run();
    forget_held();
  }
  void forget_held() noexcept {
    held_.wipe();
    state_ = State::fresh;
  }

  [[nodiscard]] std::array<Token, head> last_tokens() const noexcept {
    std::array<Token, head> tokens;
    for (std::size_t i = 0; i < head; ++i) tokens[i] = held_.last(head - 1 - i).token();
    return tokens;
  }
  static constexpr Slot segment_of(Slot slot) noexcept { return static_cast<Slot>(slot / segment_size); }

  HistoryOptions options_;
  Text text_;

  // The sequence that is being written.
  SequenceTag name_ = 0;
  State state_ = State::fresh;
  HeldTokens held_;
  Slot match_begin_ = nowhere;  // the slot that matches the first held token; see begin_match()
  Slot match_next_ = nowhere;   // the slot after the match; nowhere if the text ends there
};

}  // namespace detail

static_assert(Datastore<HistoryStore>);

}}  // namespace reprise
