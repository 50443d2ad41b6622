// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// An integer type whose values are all tokens.
template <class T>
concept FitsToken = std::integral<T> &&
    (sizeof(T) < sizeof(Token) || (sizeof(T) == sizeof(Token) && std::is_signed_v<T>));

template <class T>
struct unwrap {
  using type = T;
};
template <class T>
struct unwrap<Result<T>> {
  using type = T;
};
template <class T>
using unwrap_t = typename unwrap<std::remove_cvref_t<T>>::type;

}  // namespace detail

/// The target's tokens after the rows of a pass: `picks[i]` follows row (anchor + i). A span of tokens that one kernel
/// has computed satisfies this concept, and so does an object that samples when it is read. Picks are integers: a span
/// of logits is refused, because it would be read as tokens. So are std::uint32_t and std::int64_t, as in a prompt.
template <class P>
concept Picks = requires(P& picks, std::size_t i) {
  { picks[i] } -> std::convertible_to<Token>;
  requires detail::FitsToken<std::remove_cvref_t<decltype(picks[i])>>;
};

/// The engine as the loop sees it. verify() and commit() are the whole integration. The compiler cannot check these
/// clauses:
///
///  V1  verify(batch, drafted) runs one pass of the target over `batch` = [pending | draft], appended to the tokens in
///      its cache. The last `drafted` tokens are the draft; the token before them is the anchor.
///  V2  verify() returns picks: picks[i] is the target's token after row (anchor + i), for i = 0 ... drafted, exactly
///      as plain decoding would pick it there.
///  V3  Picks are read in increasing order, each at most once. No pick is read after the first one that disagrees with
///      the draft, or after the token that ends generation. An engine with a stateful sampler (penalties, grammar,
///      mirostat, random stream) may thus compute them lazily: the sampler's state advances once per committed token.
///      There is one exception: a pick that a predicate refuses is drawn, but not committed. An engine that computes
///      all picks at once returns a span. It may end after the first disagreement, or after the token that ends
///      generation, but not before. Both are equally valid.
///  V4  commit(keep) keeps the first `keep` rows of the last pass in the cache and rolls back the rest. A pass with
///      `pending` pending rows that commits n tokens has keep = pending + n - 1, because the last committed token is
///      never in the cache. If a predicate refuses the first pick, nothing is committed, and keep may be 0.
///  V5  A pass that was never committed is void: the next verify() discards its rows and the draws that the sampler
///      made for it.
///
/// Both functions may throw. The exception passes through generate(), and the session is in the same state as before
/// the round. Engines without exceptions return Result<picks> and Result<void>; an Error ends generation in the same
/// way.
///
/// An engine with more abilities models some of the refinements below. A missing refinement is not a compile error;
/// only verify() and commit() are required.
template <class V>
concept Verifier = requires(V& v, TokenSpan batch, std::size_t drafted, std::size_t keep) {
  v.verify(batch, drafted);  // first, so that wrong parameters are not reported as a wrong result
  requires Picks<detail::unwrap_t<decltype(v.verify(batch, drafted))>>;
  v.commit(keep);
};

/// A verifier that states its capabilities. For other verifiers, the defaults of Capabilities apply.
template <class V>
concept VerifierWithCapabilities = Verifier<V> && requires(const V& v) {
  { v.capabilities() } -> std::convertible_to<Capabilities>;
};

/// A verifier that can cut a sequence further back than its last pass: truncate(size) keeps the first `size` rows of
/// the cache. Edited turns need this function; check_verifier uses it if it exists.
template <class V>
concept TruncatableVerifier = Verifier<V> && requires(V& v, std::size_t size) {
  v.truncate(size);
};

/// A verifier that reports how close the decision for a pick was. margin(i) returns the target's score of picks[i]
/// minus that of the runner-up, for the last pass, in the engine's own units. check_verifier uses it to distinguish a
/// near tie from a mistake.
template <class V>
concept MarginVerifier = Verifier<V> && requires(const V& v, std::size_t i) {
  { v.margin(i) } -> std::convertible_to<double>;
};

/// A verifier of draft trees. generate() calls verify_tree() and commit_rows() instead of verify() and commit() if
/// Capabilities::max_leaves is more than 1. The compiler cannot check these clauses:
///
///  V6  verify_tree(batch, drafted, parents) is verify() for a draft that may branch. Drafted row j follows drafted row
///      parents[j], counted from 0, or the anchor if parents[j] is anchor_parent. A parent comes before its children;
///      the parents of a chain are -1, 0, 1, ... A drafted row sees the cache, the pending rows, its ancestors and
///      itself, and no other row. Its position is that of the anchor plus its depth, so siblings share a position.
///  V7  picks[i] is the target's token after row (anchor + i), given the path to that row. picks[0] is the token
///      after the anchor, and picks[1 + j] is the token after drafted row j. Picks are read along one path, in
///      increasing order, each at most once. No pick is read after the first one with which no child agrees. Otherwise
///      V3 holds. Reading stops at the end of a span.
///  V8  commit_rows(rows) keeps exactly these rows of the last pass, in this order, as if they alone had been run. V4
///      and V5 hold. The rows are in ascending order: first the pending rows, then the rows of the accepted path. If a
///      predicate refuses the first pick, the anchor's row is not among them. For a chain, the rows are a prefix:
///      commit(rows.size()) would keep the same rows.
template <class V>
concept TreeVerifier = Verifier<V> && requires(V& v, TokenSpan batch, std::size_t drafted,
                                               std::span<const NodeIndex> parents, std::span<const std::size_t> rows) {
  v.verify_tree(batch, drafted, parents);
  requires Picks<detail::unwrap_t<decltype(v.verify_tree(batch, drafted, parents))>>;
  v.commit_rows(rows);
};

/// A verifier that times its passes, so that control can learn their cost:
///
///  V9  pass_time() returns the duration of the last verify, rollback included. It is called after commit or restore,
///      and must be noexcept: the engine has already kept its rows, so the session must commit too.
template <class V>
concept TimedVerifier = Verifier<V> && requires(V& v) {
  { v.pass_time() } -> std::convertible_to<Duration>;
};

/// A verifier whose state cannot be cut at any row, but can be saved and restored as a whole (recurrent and hybrid
/// models). Capabilities::rollback is Rollback::snapshot. The compiler cannot check this clause:
///
///  V10 snapshot() saves the state before a pass and discards the state saved earlier. It is called before each verify
///      with a draft. It is called before a verify without a draft if a stop predicate may refuse the pick or throw, or
///      if a top_k() that is not noexcept may be called. The same holds if picks are drawn when they are read (they
///      have no size()), or if the draft is sampled but empty. In all other passes, only verify or commit itself can
///      fail. If one of them fails, it must leave the state unchanged; otherwise, the engine cannot continue.
///      restore(committed) is called instead of commit if any row of the pass is not kept. It restores the saved state,
///      as if the pass had never been run. The sampler is an exception: it keeps its draws of the `committed` tokens.
///      These tokens become pending and are part of the next pass. After a void pass (V5), the engine restores the
///      state itself, at the next snapshot() or verify().
template <class V>
concept CheckpointVerifier = Verifier<V> && requires(V& v, std::size_t committed) {
  v.snapshot();
  v.restore(committed);
};

/// A verifier that reports alternatives to its picks, for strategies that learn from them (TopKLearner):
///
///  V11 top_k(i) returns the target's likeliest tokens after row (anchor + i) of the last pass, the likeliest first.
///      The engine chooses their number, which may be 0. top_k() is called between verify and commit, in any order, for
///      any row, even a rejected one. The tokens only inform drafts, so they need not be exact.
template <class V>
concept TopKVerifier = Verifier<V> && requires(V& v, std::size_t i) {
  { v.top_k(i) } -> std::convertible_to<TokenSpan>;
};

/// A verifier that exposes its distributions, for rejection sampling of sampled drafts (engine/rejection.hpp). With
/// rejection sampling, generate() draws the picks itself and reads none of the picks that verify returns:
///
///  V12 probabilities(i) returns the distribution from which plain decoding would sample after row (anchor + i). It has
///      one probability for each token of the vocabulary, after temperature, truncation, penalties and grammar. They
///      add up to one. Calls of probabilities() follow the rules of V3 for reading picks. uniform() is the engine's
///      random source: it returns a number in [0, 1), independent of all earlier ones.
template <class V>
concept DistributionVerifier = Verifier<V> && requires(V& v, std::size_t i) {
  { v.probabilities(i) } -> std::convertible_to<std::span<const float>>;
  { v.uniform() } -> std::convertible_to<double>;
};

/// The tokens that a pass can commit, as reported by an engine that walks the draft itself (on its device). They are
/// the accepted tokens, followed by the pick that ends the path. rows[i] is the row of the batch after which tokens[i]
/// was picked.
struct Accepted {
  std::span<const std::size_t> rows;
  TokenSpan tokens;
};

/// A verifier that walks drafts itself, for example on the device that holds the logits. generate() calls this function
/// for every pass:
///
///  V13 verify_and_walk(batch, drafted, parents) runs verify(), or verify_tree() if `parents` is not a chain. It
///      returns the accepted path and the pick that ends it. Each row of the path holds the token that was picked after
///      the previous row. If several children of a row hold that token, the first one is on the path. The path
///      continues as long as the draft agrees with the picks. If a stop rule ends the pass earlier, fewer rows of the
///      path are kept (V4, V8).
template <class V>
concept SelfWalkingVerifier = Verifier<V> &&
    requires(V& v, TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
  {v.verify_and_walk(batch, drafted, parents)};
  requires std::same_as<detail::unwrap_t<decltype(v.verify_and_walk(batch, drafted, parents))>, Accepted>;
};

/// A verifier that decodes under a grammar or any other rule about the next token:
///
///  V14 allowed(path) returns how many leading tokens of `path` the rule allows after the committed tokens; `path`
///      begins after the anchor. It is called before verify, at most once for each path of an ordered draft, and
///      changes nothing. Drafted tokens that it refuses are not sent. Sampled drafts and auxiliary nodes are not
///      checked. A wrong answer only costs time: the engine's sampler enforces the rule, with or without a draft.
template <class V>
concept ConstrainedVerifier = Verifier<V> && requires(V& v, TokenSpan path) {
  { v.allowed(path) } -> std::convertible_to<std::size_t>;
};

namespace archetype {

/// The minimal model of Verifier. Its picks are no container, have no size and are read by index.
struct Engine {
  struct LazyPicks {
    Token operator[](std::size_t) { return 0; }
  };
  LazyPicks verify(TokenSpan, std::size_t) { return {}; }
  void commit(std::size_t) {}
};
static_assert(Verifier<Engine>);

}  // namespace archetype
}}  // namespace reprise
