// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

namespace detail {

/// The functions of a strategy, without the demand that it can be copied: AnyStrategy asks this of what it is made
/// from, because to ask whether a class around an AnyStrategy can be copied would ask the same question again.
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

/// Something that guesses the next tokens. It is never trusted: a wrong, late or malicious strategy can cost
/// time, never a token of the output. The session owns the text and lends it: `context` is all committed tokens, and is
/// valid during the call only. What a compiler cannot check:
///
///  S1  begin(context) starts a new sequence whose committed tokens are `context` (the prompt). Afterwards nothing
///      of the previous sequence is left.
///  S2  observe(context, fresh, origin) says that the last `fresh` tokens of `context` are new. Each committed token is
///      new exactly once, in order.
///  S3  propose(context, draft) writes a draft of the tokens that follow `context`. It does not allocate and does not
///      throw. `draft` arrives empty; draft.budget() says how much is asked for, and draft.push() refuses the rest.
///  S4  propose() without an observe(), feedback(), truncate(), rebase() or begin() between gives the same draft again:
///      a round that was cancelled is run again.
///  S5  feedback(context, outcome) is called once for each committed round, also when nothing was sent. It comes
///      before observe() of that round's tokens: `context` ends at the round's anchor. Cancelled rounds get none.
///  S6  truncate(context, size) leaves the state of lookups as if only the first `size` tokens of `context` had ever
///      been committed; `context` is as it was before the call. Knowledge of the target's habits may stay.
///  S7  A copy is a fork: both go on independently.
///  S8  Drafts are a pure function of the calls above and the settings: no clock, no address, no global state. A
///      memory that a strategy reads is a setting that others may write to: then S4 and S8 hold for its contents.
///
/// begin, observe and truncate may allocate. One that throws there (or runs out of memory) is not asked for
/// drafts again until begin(), or Session::rebase(), which begins it too; decoding goes on without it.
///
/// Threads: a strategy is used by one thread at a time; distinct copies are independent.
template <class S>
concept DraftStrategy = detail::StrategyFunctions<S> && std::copyable<S>;

/// Optional: room for that many tokens of context, so that observe() does not allocate on the way.
template <class S>
concept ReservableStrategy = DraftStrategy<S> && requires(S& s, std::size_t max_context) {
  s.reserve(max_context);
};

/// Optional: a context that changes elsewhere than at its end (compacted, or without a block that was dropped) need not
/// cost what was learned from the old one:
///
///  S9  rebase(before, context) makes `context` the committed tokens, as begin() does; `before` is the old ones. Sizes
///      of truncate() count from the new context. Tokens that were seen before may go on to back drafts until begin(),
///      whatever is truncated. Rebasing to an equal context changes nothing that can be seen. As the other three,
///      it may allocate.
template <class S>
concept RebasableStrategy = DraftStrategy<S> && requires(S& s, TokenSpan before, TokenSpan context) {
  s.rebase(before, context);
};

/// Optional: it learns from what the target ranks high (Outcome::top_k), `top_k_wanted()` tokens of each row;
/// 0: none at present. Only a TopKVerifier has them to give.
template <class S>
concept TopKLearner = DraftStrategy<S> && requires(const S& s) {
  { s.top_k_wanted() } -> std::convertible_to<std::size_t>;
};

/// Optional, for sampled drafts: distribution(node) is what that node's token was drawn from, a weight for each token
/// of the vocabulary; asked between propose() and feedback(). With it and a DistributionVerifier drafts are checked by
/// rejection sampling, which accepts more of them; without either by agreement, as all others.
template <class S>
concept DistributionStrategy = DraftStrategy<S> && requires(const S& s, NodeIndex node) {
  { s.distribution(node) } -> std::convertible_to<std::span<const float>>;
};

/// Optional: a strategy with `static constexpr bool calibrated = true` says that its probabilities are what they say:
/// learned from what the target accepts. Combinations then believe them from the beginning.
template <class S>
concept CalibratedStrategy = DraftStrategy<S> && requires {
  requires static_cast<bool>(S::calibrated);
};

/// Optional: bytes of heap held, for ceilings and reports.
template <class S>
concept MeasurableStrategy = DraftStrategy<S> && requires(const S& s) {
  { s.memory_bytes() } -> std::convertible_to<std::size_t>;
};

namespace archetype {

/// The least that models DraftStrategy: proposes nothing.
struct Strategy {
  void begin(TokenSpan) {}
  void observe(TokenSpan, std::size_t, Origin) {}
  void propose(TokenSpan, Draft&) {}
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan, std::size_t) {}
};
static_assert(DraftStrategy<Strategy>);

/// The least that models RebasableStrategy.
struct RebasedStrategy : Strategy {
  void rebase(TokenSpan, TokenSpan) {}
};
static_assert(RebasableStrategy<RebasedStrategy> && !RebasableStrategy<Strategy>);

}  // namespace archetype
}  // namespace reprise
