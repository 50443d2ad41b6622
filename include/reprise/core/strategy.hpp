// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// The functions of a strategy, without the requirement that it is copyable. A type-erased strategy requires
/// only this of the strategy that it wraps. To ask whether a class that contains one is copyable would be circular.
template <class S>
concept StrategyFunctions = requires(S& s, TokenSpan context, std::size_t size, Origin origin, Draft& draft,
                                     const Outcome& outcome) {
  s.begin(context);
  s.observe(context, size, origin);
  s.propose(context, draft);
  s.feedback(context, outcome);
  s.truncate(context, size);
};

}  // namespace detail

/// A drafter, which proposes the tokens that may come next. It is not trusted: a wrong, late or malicious strategy can
/// cost time, but cannot change the output. The exception is rejection sampling, which trusts the stated distributions
/// (DistributionStrategy). The session owns the text: `context` contains all committed tokens, unless a clause says
/// otherwise, and is valid only during the call. The compiler cannot check these clauses:
///
///  S1  begin(context) starts a new sequence whose committed tokens are `context` (the prompt). Nothing of the previous
///      sequence remains.
///  S2  observe(context, fresh, origin) reports that the last `fresh` tokens of `context` are new. Each token
///      committed later is reported exactly once, in order. Tokens given to begin() or rebase() are not reported.
///  S3  propose(context, draft) writes a draft of the tokens that follow `context`. It does not allocate and does not
///      throw. `draft` is initially empty. draft.budget() states the limits, and draft.push() refuses nodes beyond
///      them.
///  S4  If propose() is called again with the same budget, it writes the same draft. Calls of observe(), feedback(),
///      truncate(), rebase(), begin() or learn_row() in between may change it. A cancelled round that is run again
///      relies on this.
///  S5  feedback(context, outcome) is called once for each committed round, even if nothing was sent. It is called
///      before observe() reports that round's tokens, so `context` ends at the round's anchor. Cancelled rounds get no
///      feedback.
///  S6  truncate(context, size) leaves the lookup state as if only the first `size` tokens of `context` had ever been
///      committed. `context` is the whole context before the cut. Knowledge about the target (calibration) may remain.
///  S7  A copy is a fork: the original and the copy continue independently.
///  S8  Drafts are a pure function of the calls above and the settings. They depend on no clock, address or global
///      state. A datastore or table that others write to counts as a setting: S4 and S8 hold as long as its contents
///      are the same.
///  S9  For a RebasableStrategy; see there.
///  S10 A sampled draft is drawn with random numbers that no earlier round of this strategy has used, in any sequence.
///      A round ends with observe(), feedback(), truncate(), rebase() or begin(). The decision to send a draft can
///      depend on tokens that earlier rounds drew. A number that is used again would tie the new token to that
///      decision, which biases rejection sampling. So the tokens of sampled drafts meet S1, S6 and S9 in distribution
///      only.
///
/// begin(), observe() and truncate() may allocate. If any function of the strategy throws, the strategy is not called
/// again until begin() or Session::rebase(), which then calls the strategy's begin(). Decoding continues without
/// drafts.
///
/// Threads: only one thread at a time may use a strategy; distinct copies are independent.
template <class S>
concept DraftStrategy = detail::StrategyFunctions<S> && std::copyable<S>;

/// Optional: reserve(max_context) allocates memory for `max_context` tokens, so that observe() need not allocate.
template <class S>
concept ReservableStrategy = DraftStrategy<S> && requires(S& s, std::size_t max_context) {
  s.reserve(max_context);
};

/// Optional: a strategy that keeps its knowledge of the old context when the context changes elsewhere than at its end
/// (compaction, a removed block):
///
///  S9  rebase(before, context) replaces the committed tokens `before` with `context`, as begin() would. From then on,
///      sizes passed to truncate() refer to the new context. Tokens seen earlier may support drafts until begin(), even
///      after truncate(). Rebasing to an equal context has no visible effect. rebase() may allocate.
template <class S>
concept RebasableStrategy = DraftStrategy<S> && requires(S& s, TokenSpan before, TokenSpan context) {
  s.rebase(before, context);
};

/// Optional: a strategy that learns from the target's likeliest tokens (Outcome::top_k). top_k_wanted() returns the
/// number of tokens that the strategy wants for each row; 0: none at present. generate() reports such tokens only if
/// the verifier is a TopKVerifier. Other loops call Session::report_top_k().
template <class S>
concept TopKLearner = DraftStrategy<S> && requires(const S& s) {
  { s.top_k_wanted() } -> std::convertible_to<std::size_t>;
};

/// Optional: a strategy that learns from rows of the prompt, which no round reports. learn_row(context, likeliest)
/// passes on the target's likeliest tokens after `context`, the likeliest first. `context` is a leading part of the
/// committed tokens. Calls may come in any order, also between propose() and feedback(). learn_row() may allocate. See
/// Session::report_prompt_row().
template <class S>
concept RowLearner = DraftStrategy<S> && requires(S& s, TokenSpan context, TokenSpan likeliest) {
  s.learn_row(context, likeliest);
};

/// Optional, for sampled drafts: distribution(node) returns the distribution from which that node's token was drawn, as
/// one probability for each token of the vocabulary. It is called between propose() and feedback(). With a
/// DistributionVerifier and without fixed widths (Capabilities::allowed_widths), generate() checks such drafts by
/// rejection sampling, which accepts more tokens. Otherwise, they are checked by agreement, like all other drafts.
template <class S>
concept DistributionStrategy = DraftStrategy<S> && requires(const S& s, NodeIndex node) {
  { s.distribution(node) } -> std::convertible_to<std::span<const float>>;
};

/// Optional: `static constexpr bool calibrated = true` declares that the strategy learns its probabilities from the
/// target's acceptances. Combinations of strategies then trust them from the start.
template <class S>
concept CalibratedStrategy = DraftStrategy<S> && requires {
  requires static_cast<bool>(S::calibrated);
};

/// Optional: memory_bytes() returns the heap memory that the strategy holds, in bytes, for memory limits and reports.
template <class S>
concept MeasurableStrategy = DraftStrategy<S> && requires(const S& s) {
  { s.memory_bytes() } -> std::convertible_to<std::size_t>;
};

namespace detail {

/// A strategy that leaves its sequences to later ones. keep() hands over the sequence, without what was handed over
/// before; begin() does so too. keep_running() hands over text of a sequence that goes on. unkept() returns the number
/// of tokens that keep() would hand over. shares_memory() is true for strategies with the same memory. See
/// Session::keep().
template <class S>
concept RememberingStrategy = DraftStrategy<S> && requires(S& s, const S& c) {
  { s.keep() }
  noexcept;
  { s.keep_running() }
  noexcept;
  { s.skip_kept() }
  noexcept;
  { c.unkept() }
  noexcept->std::convertible_to<std::size_t>;
  { c.shares_memory(c) }
  noexcept->std::same_as<bool>;
};

}  // namespace detail

namespace archetype {

/// The minimal model of DraftStrategy: proposes nothing.
struct Strategy {
  void begin(TokenSpan) {}
  void observe(TokenSpan, std::size_t, Origin) {}
  void propose(TokenSpan, Draft&) {}
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan, std::size_t) {}
};
static_assert(DraftStrategy<Strategy>);

}  // namespace archetype

/// Drafts nothing. The result is plain decoding, the baseline of every comparison.
struct NoDrafter {
  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void propose(TokenSpan, Draft&) const noexcept {}
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return 0; }
};
static_assert(DraftStrategy<NoDrafter>);

}}  // namespace reprise
