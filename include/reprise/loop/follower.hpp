// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/detail/followed_sequence.hpp"
#include "reprise/stats/statistics.hpp"

namespace reprise { inline namespace v0 {

/// Decides which intervals between two passes are times of passes, for an engine that does not measure its passes. The
/// engine may pause between two passes, for another request or because it has no work. Such an interval is far above
/// the usual one, and nothing should be learned from it:
///
///   planner.learn(committed, intervals.take(PassIntervals::between(before, now), rows));
///
/// Call take() only if nothing except the pass ran in the interval. Follower and BatchFollower use this filter already.
///
/// The usual interval is a running mean. It is kept for each power of two of the row count, because long passes may
/// cost many times as much as short ones. Memory: 64 bytes. Threads: one at a time; copies are independent.
class PassIntervals {
 public:
  /// An interval above this many usual intervals is not the time of a pass.
  static constexpr std::int64_t most_usual = 10;
  static constexpr Duration unknown{0};

  /// Returns the interval between two times of a clock; `unknown` if the clock went back, or after more than three
  /// days.
  [[nodiscard]] static Duration between(Duration before, Duration now) noexcept {
    if (now <= before) return unknown;
    // Unsigned, because the difference of two times can exceed the range.
    const std::uint64_t interval = static_cast<std::uint64_t>(now.count()) - static_cast<std::uint64_t>(before.count());
    return interval > longest ? unknown : Duration(static_cast<std::int64_t>(interval));
  }

  /// Returns the interval if it can be the time of a pass of `rows` rows; otherwise nullopt. Intervals of 0 or less are
  /// never times. The first interval is none either: there is no usual one, and the engine may have been warming up.
  [[nodiscard]] std::optional<Duration> take(Duration interval, std::size_t rows) noexcept {
    const std::int64_t time = interval.count();
    if (time <= 0 || static_cast<std::uint64_t>(time) > longest) return std::nullopt;
    const std::size_t i = index(rows);
    const std::int64_t usual = expected(i);
    if (usual == 0) {
      usual_[i] = time;
      return std::nullopt;
    }
    const std::int64_t clipped = std::min(time, most_usual * usual);
    // A clipped interval still raises the mean, so an engine that has become slower is believed after a few passes. The
    // mean falls faster: a pass can be slow by accident, but hardly ever fast.
    usual_[i] = usual_[i] == 0 ? clipped : usual_[i] + (clipped - usual_[i]) / (clipped < usual_[i] ? 2 : 8);
    if (time > clipped) return std::nullopt;
    return interval;
  }

 private:
  static constexpr std::uint64_t longest = std::uint64_t{1} << 48;  // three days; the products stay in range

  static std::size_t index(std::size_t rows) noexcept {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(rows | 1)) - 1, 7);
  }
  /// Returns the usual interval of these row counts in nanoseconds; 0 if no interval is known. Unknown row counts are
  /// assumed to cost in proportion to their rows.
  [[nodiscard]] std::int64_t expected(std::size_t i) const noexcept {
    for (std::size_t j = i + 1; j-- > 0;)
      if (usual_[j] != 0) return usual_[j] << (i - j);
    for (std::size_t j = i + 1; j < usual_.size(); ++j)
      if (usual_[j] != 0) return usual_[j];
    return 0;
  }

  std::array<std::int64_t, 8> usual_{};
};

/// The state of one sequence whose engine owns the decoding loop and reports nothing except token ids. Before each
/// pass, the engine passes all committed tokens and gets a draft:
///
///   Follower<Speculator> follower;
///   while (...) { draft = follower.draft(ids, 16); ... the engine verifies the draft and appends to ids ... }
///
/// A follower compares the ids with the tokens that it knows, those of the last call:
///
///  * **The known tokens and more**: a pass committed them. The first draft.size() + 1 new tokens are the picks of the
///    pass; tokens after those that the picks commit are appended, as by Session::append().
///  * **The known tokens alone**: nothing was committed; the last draft is void. Its pass seems not to have run, so it
///    counts as lost only until a later pass of the sequence shows tokens. A request that ended after one pass, and
///    another with the same ids, look like that too: call forget() between them.
///  * **Other tokens**: a new sequence. Nothing of the text before it is left, not even as evidence, because the slot
///    may belong to another user's request now.
///  * **Other tokens of the same conversation**: the end was removed (Session::truncate()), or the text was replaced
///    (Session::rebase(), which keeps the replaced tokens as evidence). Only a caller that passes the number of the
///    conversation gets this.
///
/// Pass times: the interval between two calls is the time of the pass between them, if exactly one pass can have
/// committed the new tokens. The interval is ignored after a call that began a sequence or appended tokens, because the
/// engine may have run a prompt in it. It is also ignored if it is the first of all, or above 10 times the usual
/// interval.
///
/// Losses: the result of a pass is visible only in the ids of the next call. A pass whose tokens no call shows counts
/// as lost for the loss budget (Session::abandon()), such as the last pass of a request. If the engine calls draft(ids,
/// 0) once more with the final ids of a request, it counts as what it was, and is learned from.
///
/// The learned pass costs outlive a sequence, because they are a property of the engine. The loss budget outlives it
/// too. So earlier sequences may change how many tokens are drafted, and calibration learns from these drafts. Nothing
/// of their text is drafted.
///
/// `S`: a Speculator, or another Session. Drafts are chains. Cost of a call: one comparison of all tokens, plus the
/// session's cost of the change. Memory: that of the session, and 1 KB. Exceptions and threads: as for the session.
template <class S>
class Follower {
 public:
  Follower() : Follower(S()) {}
  /// If `session` has begun, its context is the text of the last call.
  explicit Follower(S session) : sequence_(std::move(session)) {}

  /// Returns a draft of at most `most` tokens that may follow `ids`. It is valid until the next call.
  ///
  ///  * `ids`: all tokens that the engine has committed, at least one.
  ///  * `most`: 0 for a pass without a draft. Call draft() before that pass too, so that its time is learned.
  ///  * `now`: the time of this call, on any clock that does not go back. Without it, no cost is learned.
  ///  * `conversation`: a number for the conversation, in every call or in none. Another number than in the last call
  ///    begins a new sequence.
  ///  * `after`: 0, or the number of ids in the last call, whose sequence goes on. `ids` are then the tokens after them
  ///    alone, possibly none. So a call reads new tokens only.
  ///
  /// Errors: those of Session::begin(), append(), truncate(), rebase() and plan(), and
  /// invalid_argument if `after` is neither 0 nor that number. invalid_argument and empty_context change nothing. After
  /// any other error, the last draft is void, and nothing is learned from its pass. The next call compares the ids with
  /// the tokens that were known before the error.
  Result<TokenSpan> draft(TokenSpan ids, std::size_t most = unlimited, std::optional<Duration> now = {},
                          std::optional<std::uint64_t> conversation = {}, std::size_t after = 0) REPRISE_LIFETIMEBOUND {
    if (auto checked = sequence_.check(ids, after, conversation); !checked) return checked.error();
    if (auto made = reserve_limits(); !made) return made.error();
    const auto before = std::exchange(called_, std::nullopt);
    const auto interval = before && now ? PassIntervals::between(*before, *now) : PassIntervals::unknown;
    const auto seen = sequence_.follow(ids, after != 0, conversation,
                                       [&](std::size_t rows) { return intervals_.take(interval, rows); });
    if (!seen) return seen.error();
    if (seen->alone) called_ = now;
    limits_[0].draft.max_nodes = most;
    static_cast<void>(sequence_.session().propose(limits_[0], DraftShape::chain));
    if (sequence_.session().finished()) return TokenSpan();
    return sequence_.expect(sequence_.session().plan());
  }
  /// Reports that the engine has run only the first `drafted` tokens of the last draft, because of a token budget or a
  /// grammar. Call it before the next draft(). Without it, the tokens that did not run count as rejected.
  void verified(std::size_t drafted) noexcept { static_cast<void>(sequence_.verified(drafted)); }
  /// Sets what ends a generation: nothing is drafted after it. Of `limits`, eos, more_eos, stop_ids and stop_sequences
  /// apply, from the next draft() on, for all sequences. Tokens that follow such an end anyway are a new turn. Errors:
  /// out_of_memory.
  Result<void> stop_at(Limits limits) {
    if (auto made = reserve_limits(); !made) return made;
    limits_[0] = std::move(limits);
    limits_[0].max_tokens = limits_[0].max_context = limits_[0].max_rows = unlimited;
    return {};
  }

  /// Forgets the sequence, so that the next draft() begins a new one. For an engine that knows when a request has
  /// ended. The memory stays allocated.
  void forget() noexcept { sequence_.forget(); }
  /// Forgets the sequence, and gives the next one a predicted output; see NgramDrafter::predict(). Errors:
  /// out_of_memory.
  Result<void> predict(TokenSpan text) noexcept { return sequence_.predict(text); }
  /// Forgets the sequence, and drafts for the next one with this strategy. So a request can have the stores, the tables
  /// and the calibration of its tenant. Loss budget, learned costs and statistics go on.
  template <DraftStrategy Strategy>
  void assign(Strategy strategy) {
    sequence_.assign(std::move(strategy));
  }

  /// Allocates memory for `max_context` tokens; see Session::reserve(). The last draft becomes void. Errors:
  /// out_of_memory.
  Result<void> reserve(std::size_t max_context) { return sequence_.reserve(max_context); }

  /// Returns the tokens of the last draft() without an error; none after forget().
  [[nodiscard]] TokenSpan context() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.context(); }
  /// Returns the counts of all sequences together.
  [[nodiscard]] Statistics statistics() const noexcept { return sequence_.statistics(); }
  /// Returns the session, for its control, its strategy and its capabilities.
  [[nodiscard]] const S& session() const noexcept REPRISE_LIFETIMEBOUND { return sequence_.session(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return session().memory_bytes() + sizeof(Limits); }

 private:
  Result<void> reserve_limits() noexcept {
    if (limits_ == nullptr) limits_ = detail::new_array<Limits>(1);
    if (limits_ != nullptr) return {};
    return Error{ErrorCode::out_of_memory, "there is no memory for a draft: free some", sizeof(Limits), 0};
  }

  detail::FollowedSequence<S> sequence_;
  detail::OwnedArray<Limits> limits_;  // not a member value: an open round refers to it, and a follower can be moved
  std::optional<Duration> called_;     // set if the next interval can be the time of a pass
  PassIntervals intervals_;
};

}}  // namespace reprise
