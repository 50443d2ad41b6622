// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"

namespace reprise::inline v0 {

/// The target's tokens after the rows of a pass: `picks[i]` follows row (anchor + i). A span of tokens computed in
/// one kernel will do, and so will an object that samples when it is asked.
template <class P>
concept Picks = requires(P& picks, std::size_t i) {
  { picks[i] } -> std::convertible_to<Token>;
};

namespace detail {

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

/// The engine, seen from the loop: the whole integration is these two functions. What a compiler cannot check:
///
///  V1  verify(batch, drafted) runs one pass of the target over `batch` = [pending | draft], appended to the
///      tokens in its cache. The last `drafted` tokens are the draft; the token before them is the anchor.
///  V2  It returns picks: picks[i] is the target's token after row (anchor + i), for i = 0 ... drafted, exactly as
///      plain decoding would pick it there.
///  V3  Picks are read in increasing order, each at most once, none after the first that disagrees with the draft,
///      none after the token that ends generation. So an engine with a stateful sampler (penalties, grammar,
///      mirostat, random stream) may compute them lazily, and its state advances once per committed token. One that
///      computes them all at once returns a span; reading stops at its end. Both are equally valid.
///  V4  commit(keep) keeps the first `keep` rows of the last pass in the cache and rolls back the rest.
///      keep = pending + tokens committed by this pass - 1: the last committed token is never in the cache. Where a
///      predicate refuses the first pick nothing is committed, and keep may be 0.
///  V5  A pass that was never committed is void: the next verify() discards its rows and any sampler state drawn
///      in it.
///
/// Both may throw; what they throw passes through generate() and the session is as before the round. Engines
/// without exceptions return Result<picks> and Result<void>; an Error ends generation in the same way.
///
/// Engines that can do more say so by modelling one of the refinements below or by further functions; what an
/// engine lacks is never a compile error here, only verify and commit are.
template <class V>
concept Verifier = requires(V& v, TokenSpan batch, std::size_t drafted, std::size_t keep) {
  requires Picks<detail::unwrap_t<decltype(v.verify(batch, drafted))>>;
  v.commit(keep);
};

/// A verifier that says what it can do; without it, the defaults of Capabilities hold.
template <class V>
concept VerifierWithCapabilities = Verifier<V> && requires(const V& v) {
  { v.capabilities() } -> std::convertible_to<Capabilities>;
};

/// A verifier that can cut a sequence further back than its last pass: truncate(size) keeps the first `size` rows
/// of the cache. Needed for edited turns; check_verifier uses it where it exists.
template <class V>
concept TruncatableVerifier = Verifier<V> && requires(V& v, std::size_t size) {
  v.truncate(size);
};

/// A verifier that can tell how close a pick was: margin(i) is the target's score of picks[i] less that of the
/// runner-up, in the engine's own units, for the last pass. Lets check_verifier tell a near tie from a mistake.
template <class V>
concept MarginVerifier = Verifier<V> && requires(const V& v, std::size_t i) {
  { v.margin(i) } -> std::convertible_to<double>;
};

/// A verifier of draft trees. generate() uses these two functions instead of verify and commit where
/// Capabilities::max_leaves is more than 1. What a compiler cannot check:
///
///  V6  verify_tree(batch, drafted, parents) is verify() for a draft that may branch. parents[j] is the drafted row
///      that drafted row j follows, counted from 0, or anchor_parent; a parent comes before its children, a chain has
///      -1, 0, 1, ... A drafted row sees the cache, the pending rows, its ancestors and itself, none of the others.
///      Its position is that of the anchor plus its depth, so rows side by side share one.
///  V7  picks[i] is the target's token after row (anchor + i), behind the path that leads there: picks[0] after the
///      anchor, picks[1 + j] after drafted row j. They are read along one path, in increasing order, each at most
///      once, none after the first that no child agrees with; V3 holds otherwise. Reading stops where a span ends.
///  V8  commit_rows(rows) keeps exactly these rows of the last pass, in this order, as if they alone had been run; V4
///      and V5 hold. They ascend: the pending ones (all but the anchor's where a predicate refuses the first pick),
///      then those of the accepted path. Of a chain it is a prefix, of which commit(rows.size()) would keep the same.
template <class V>
concept TreeVerifier = Verifier<V> && requires(V& v, TokenSpan batch, std::size_t drafted,
                                               std::span<const NodeIndex> parents, std::span<const std::size_t> rows) {
  requires Picks<detail::unwrap_t<decltype(v.verify_tree(batch, drafted, parents))>>;
  v.commit_rows(rows);
};

/// A verifier that times its passes, for control to learn what they cost:
///
///  V9  pass_time() says how long the last verify took, rollback included; it is called after commit
///      and has to be noexcept: by then the engine has kept its rows, and the session has to follow.
template <class V>
concept TimedVerifier = Verifier<V> && requires(V& v) {
  { v.pass_time() } -> std::convertible_to<std::chrono::nanoseconds>;
};

/// A verifier whose state cannot be cut at any row (recurrent and hybrid models), but saved and put back as a whole:
/// Capabilities::rollback is Rollback::snapshot. What a compiler cannot check:
///
///  V10 snapshot() saves the state before a pass, replacing what it saved before. It is called before each verify
///      with a draft, and before each one that may become void between verify and commit: where a predicate may refuse
///      its pick, where picks are drawn when they are read (they have no size()), where candidates are asked for. What
///      is left are passes in which only verify or commit themselves can fail: those leave the state as it was, or the
///      engine cannot go on. restore(committed) is called instead of commit where not all rows of the pass are
///      kept: it puts the saved state back, as if the pass had never been run, all but a sampler's, which has drawn
///      `committed` tokens for good. They are pending then, and ride in the next pass. After a void pass (V5) it is the
///      engine that goes back, when snapshot() or verify() is called the next time.
template <class V>
concept CheckpointVerifier = Verifier<V> && requires(V& v, std::size_t committed) {
  v.snapshot();
  v.restore(committed);
};

/// A verifier that shows what else it would have picked, for strategies that learn from it (TopKLearner):
///
///  V11 top_k(i) are the target's likeliest tokens after row (anchor + i) of the last pass, the likeliest first,
///      as many as the engine cares to give, also none. It is called between verify and commit, in any order, for any
///      row, also for those that were rejected. They inform drafts, nothing else: they need not be exact.
template <class V>
concept TopKVerifier = Verifier<V> && requires(V& v, std::size_t i) {
  { v.top_k(i) } -> std::convertible_to<TokenSpan>;
};

/// A verifier that shows its distributions, for rejection sampling of drafts that were themselves sampled
/// (engine/rejection.hpp). generate() then draws the picks itself, and reads none of those that verify returns:
///
///  V12 probabilities(i) is the distribution that plain decoding would sample from after row (anchor + i), one weight
///      for each token of the vocabulary: after temperature, cuts, penalties and grammar. It is read as V3 says of
///      picks. uniform() is the engine's random source: a number in [0, 1), independent of all earlier ones.
template <class V>
concept DistributionVerifier = Verifier<V> && requires(V& v, std::size_t i) {
  { v.probabilities(i) } -> std::convertible_to<std::span<const float>>;
  { v.uniform() } -> std::convertible_to<double>;
};

/// The tokens that a pass has committed, from an engine that walks the draft itself (on its device): the accepted
/// tokens, then the pick that ends the path, each with the row of the batch that it was picked after.
struct Accepted {
  std::span<const std::size_t> rows;
  TokenSpan tokens;
};

/// A verifier that walks drafts itself, where the logits are. generate() uses it for every pass:
///
///  V13 verify_and_walk(batch, drafted, parents) is verify() or, where parents do not form a chain, verify_tree(); it
///      answers the path on which each row holds the pick after the row before it, as far as it goes, and the pick that
///      ends it. Where several rows hold that pick behind one row, the first. A stop rule may keep less of it (V4, V8).
template <class V>
concept SelfWalkingVerifier = Verifier<V> &&
    requires(V& v, TokenSpan batch, std::size_t drafted, std::span<const NodeIndex> parents) {
  {v.verify_and_walk(batch, drafted, parents)};
  requires std::same_as<detail::unwrap_t<decltype(v.verify_and_walk(batch, drafted, parents))>, Accepted>;
};

/// A verifier that decodes under a grammar, or any other rule of what may follow what:
///
///  V14 allowed(path) is how many tokens of this run the rule lets follow the committed tokens, one after the other;
///      `path` begins behind the anchor. It is called before verify, once for each path of a draft, and changes
///      nothing. Drafted tokens that it refuses are not sent. An answer that is wrong costs time, nothing else: the
///      rule holds because the engine's sampler follows it, with a draft as without.
template <class V>
concept ConstrainedVerifier = Verifier<V> && requires(V& v, TokenSpan path) {
  { v.allowed(path) } -> std::convertible_to<std::size_t>;
};

namespace archetype {

/// The least that models Picks: not a container, no size, read by index.
struct LazyPicks {
  Token operator[](std::size_t) { return 0; }
};
static_assert(Picks<LazyPicks>);

/// The least that models Verifier.
struct Engine {
  LazyPicks verify(TokenSpan, std::size_t) { return {}; }
  void commit(std::size_t) {}
};
static_assert(Verifier<Engine>);

/// The least that models the refinements.
struct EngineWithCapabilities : Engine {
  [[nodiscard]] Capabilities capabilities() const { return {}; }
};
static_assert(VerifierWithCapabilities<EngineWithCapabilities>);
struct TruncatableEngine : Engine {
  void truncate(std::size_t) {}
};
static_assert(TruncatableVerifier<TruncatableEngine>);
struct MarginEngine : Engine {
  [[nodiscard]] double margin(std::size_t) const { return 0; }
};
static_assert(MarginVerifier<MarginEngine>);
struct TreeEngine : Engine {
  LazyPicks verify_tree(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
  void commit_rows(std::span<const std::size_t>) {}
};
static_assert(TreeVerifier<TreeEngine>);
struct TimedEngine : Engine {
  [[nodiscard]] std::chrono::nanoseconds pass_time() const noexcept { return {}; }
};
static_assert(TimedVerifier<TimedEngine>);
struct CheckpointEngine : Engine {
  void snapshot() {}
  void restore(std::size_t) {}
};
static_assert(CheckpointVerifier<CheckpointEngine>);
struct TopKEngine : Engine {
  TokenSpan top_k(std::size_t) { return {}; }
};
static_assert(TopKVerifier<TopKEngine>);
struct DistributionEngine : Engine {
  std::span<const float> probabilities(std::size_t) { return {}; }
  double uniform() { return 0; }
};
static_assert(DistributionVerifier<DistributionEngine>);
struct SelfWalkingEngine : Engine {
  Accepted verify_and_walk(TokenSpan, std::size_t, std::span<const NodeIndex>) { return {}; }
};
static_assert(SelfWalkingVerifier<SelfWalkingEngine>);
struct ConstrainedEngine : Engine {
  std::size_t allowed(TokenSpan path) { return path.size(); }
};
static_assert(ConstrainedVerifier<ConstrainedEngine>);

}  // namespace archetype
}  // namespace reprise
