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

/// The functions of a strategy, without the requirement that it is copyable. AnyStrategy asks only this of the strategy
/// it is made from: asking whether a class that contains an AnyStrategy is copyable would ask the same question again.
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

/// A drafter: proposes the tokens that may come next. It is never trusted: a wrong, late or malicious strategy can cost
/// time, but cannot change the output. The session owns the text and lends it: `context` is all committed tokens, and
/// is valid during the call only. The compiler cannot check these clauses:
///
///  S1  begin(context) starts a new sequence whose committed tokens are `context` (the prompt). Afterwards nothing of
///      the previous sequence is left.
///  S2  observe(context, fresh, origin) reports that the last `fresh` tokens of `context` are new. Each committed token
///      is new exactly once, in order.
///  S3  propose(context, draft) writes a draft of the tokens that follow `context`. It does not allocate and does not
///      throw. `draft` is empty at first; draft.budget() is the limit, and draft.push() refuses nodes beyond it.
///  S4  propose() without an observe(), feedback(), truncate(), rebase() or begin() in between gives the same draft
///      again, because a cancelled round is run again.
///  S5  feedback(context, outcome) is called once for each committed round, even if nothing was sent. It comes before
///      observe() of that round's tokens: `context` ends at the round's anchor. Cancelled rounds get none.
///  S6  truncate(context, size) leaves the lookup state as if only the first `size` tokens of `context` had ever been
///      committed. `context` is the whole context from before the cut. Knowledge of the target (calibration) may stay.
///  S7  A copy is a fork: the original and the copy continue independently.
///  S8  Drafts are a pure function of the calls above and the settings: no clock, no address, no global state. A
///      datastore that others write to counts as a setting: S4 and S8 hold for equal contents of it.
///
/// begin, observe and truncate may allocate. A strategy that throws there (or runs out of memory) is not asked for
/// drafts again until begin() or Session::rebase(), which also calls its begin(). Decoding continues without it.
///
/// Threads: one thread at a time uses a strategy; distinct copies are independent.
template <class S>
concept DraftStrategy = detail::StrategyFunctions<S> && std::copyable<S>;

/// Optional: reserve(max_context) allocates memory for that many tokens of context, so that observe() need not.
template <class S>
concept ReservableStrategy = DraftStrategy<S> && requires(S& s, std::size_t max_context) {
  s.reserve(max_context);
};

/// Optional: a strategy that keeps its knowledge of the old context when the context changes elsewhere than at its end
/// (compaction, a removed block):
///
///  S9  rebase(before, context) replaces the committed tokens `before` with `context`, as begin() would. Sizes passed
///      to truncate() then count from the new context. Tokens seen before may continue to support drafts until begin(),
///      regardless of truncation. Rebasing to an equal context has no visible effect. rebase() may allocate.
template <class S>
concept RebasableStrategy = DraftStrategy<S> && requires(S& s, TokenSpan before, TokenSpan context) {
  s.rebase(before, context);
};

/// Optional: a strategy that learns from the target's likeliest tokens (Outcome::top_k). top_k_wanted() is the number
/// of tokens it wants for each row; 0: none at present. Only a TopKVerifier reports them.
template <class S>
concept TopKLearner = DraftStrategy<S> && requires(const S& s) {
  { s.top_k_wanted() } -> std::convertible_to<std::size_t>;
};

/// Optional, for sampled drafts: distribution(node) returns the distribution from which that node's token was drawn, as
/// one weight for each token of the vocabulary. It is called between propose() and feedback(). With a
/// DistributionVerifier, drafts are then checked by rejection sampling, which accepts more tokens. Without either of
/// the two, they are checked by agreement, as all other drafts.
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

/// Optional: memory_bytes() returns the bytes of heap memory held, for memory limits and reports.
template <class S>
concept MeasurableStrategy = DraftStrategy<S> && requires(const S& s) {
  { s.memory_bytes() } -> std::convertible_to<std::size_t>;
};

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

/// The minimal model of RebasableStrategy.
struct RebasedStrategy : Strategy {
  void rebase(TokenSpan, TokenSpan) {}
};
static_assert(RebasableStrategy<RebasedStrategy> && !RebasableStrategy<Strategy>);

}  // namespace archetype
}  // namespace reprise
