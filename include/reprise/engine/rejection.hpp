// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Rejection sampling for drafts that were drawn from the drafter's own distribution q. A drafted token x is
/// accepted with probability min(1, p(x) / q(x)), where p is the target's distribution. After a rejection, a token is
/// drawn from max(p - q, 0), normalised. The resulting tokens follow the distribution p.
///
/// Sources:
///
///  * Leviathan, Kalman and Matias 2023, "Fast Inference from Transformers via Speculative Decoding".
///  * Chen et al. 2023, "Accelerating Large Language Model Decoding with Speculative Sampling".
///
/// Two conditions cannot be checked:
///
///  * x was really drawn from q. If a strategy draws from one distribution and states a different one, the output
///    changes. Only rejection sampling trusts the strategy; ordinary picks are drawn from p and compared with the
///    draft.
///  * The decision whether to send x was made before x was drawn: see DraftKind::sampled.
///
/// A distribution is an array of probabilities that add up to one, indexed by token. Even if an array breaks this rule,
/// only tokens with weight in p are drawn, and no index is out of range. If p has no weight, RejectionPicks::failed()
/// returns true. In detail:
///
///  * NaN, infinite and negative values are read as zero. -ffast-math can break this for NaN and infinity: in that case
///    any token of the array may be drawn, but none outside it.
///  * p and q may differ in size: a token that is missing from one of them has probability zero in it.
///  * Rounding errors in the arrays shift the output probabilities by the same amount. Arrays that do not add up to one
///    are not scaled: draws from p alone remain correct, but the rejection rule does not.
///  * If q(x) = 0, if x is outside q, or if q is empty, then x was not drawn from q. A point mass at x replaces q. So
///    x is accepted with probability p(x); otherwise, a token is drawn from p without x. This is equivalent to one draw
///    from p, compared with x.
///
/// Everything is generic over the number type, so that the method can be proved with rational arithmetic.

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"

namespace reprise { inline namespace v0 {

namespace detail {

/// The type in which weights are summed: for floating point, at least double precision, because vocabularies are large.
template <class Number>
struct WeightType {
  using type = Number;
};
template <std::floating_point Number>
struct WeightType<Number> {
  using type = std::common_type_t<Number, double>;
};

/// Returns a read-only span over the range. Passing a temporary array does not compile, because the span would dangle.
template <class Range>
auto to_read(Range&& range) {
  const std::span values(std::forward<Range>(range));
  return std::span<const typename decltype(values)::value_type>(values);
}

/// The type in which weights of type Number are added and compared.
template <class Number>
using WeightOf = typename detail::WeightType<std::remove_cv_t<Number>>::type;

/// Returns weights[i], or zero if it is NaN, infinite or negative, or if i is out of range.
template <class Number, std::size_t extent>
[[nodiscard]] WeightOf<Number> weight_at(std::span<const Number, extent> weights, std::size_t i) {
  const WeightOf<Number> none{};
  if (i >= weights.size()) return none;
  const WeightOf<Number> weight = weights[i];
  if constexpr (std::floating_point<Number>)
    if (!(weight <= std::numeric_limits<Number>::max())) return none;
  return weight > none ? weight : none;
}

/// Returns max(p(i) - q(i), 0), the weight of token i in the draw after a rejection. It is zero if i is the rejected
/// token, because a token is rejected only if q(i) > p(i).
template <class Number, std::size_t target_extent, std::size_t drafter_extent>
[[nodiscard]] WeightOf<Number> residual_at(std::span<const Number, target_extent> target,
                                           std::span<const Number, drafter_extent> drafter, std::size_t i) {
  const WeightOf<Number> p = weight_at(target, i);
  const WeightOf<Number> q = weight_at(drafter, i);
  return p > q ? p - q : WeightOf<Number>{};
}

/// Returns the sum of weight(0) ... weight(size - 1).
template <class Weight>
[[nodiscard]] auto total_weight(std::size_t size, Weight&& weight) {
  std::remove_cvref_t<decltype(weight(std::size_t{}))> total{};
  for (std::size_t i = 0; i < size; ++i) total = total + weight(i);
  return total;
}

/// Returns the first index at which the running sum of the weights exceeds `threshold`. If there is none, returns the
/// last index with a weight. Returns nullopt if no index has a weight. So an index without weight is never returned,
/// however sums are rounded.
template <class Weight, class Sum>
[[nodiscard]] std::optional<std::size_t> index_at(std::size_t size, Weight&& weight, const Sum& threshold) {
  std::optional<std::size_t> last;
  Sum running{};
  for (std::size_t i = 0; i < size; ++i) {
    const Sum one = weight(i);
    if (!(one > Sum{})) continue;
    last = i;
    running = running + one;
    if (running > threshold) break;
  }
  return last;
}

/// Makes random decisions. Each uses at most one number in [0, 1) from a source. A source passed as an lvalue is held
/// by reference; any other source is stored.
template <class Random>
struct UniformDecisions {
  Random random;

  /// Returns true with probability min(1, part / whole). Always returns true if part >= whole, however products are
  /// rounded.
  template <class Weight>
  [[nodiscard]] bool chance(const Weight& part, const Weight& whole) {
    const auto u = static_cast<Weight>(random());
    return part >= whole || u * whole < part;
  }
  /// Returns index i with probability weight(i) / (sum of the weights). Returns nullopt and uses no random number if
  /// all weights are zero. Cost: two scans.
  template <class Weight>
  [[nodiscard]] std::optional<std::size_t> draw(std::size_t size, Weight&& weight) {
    const auto total = total_weight(size, weight);
    using Sum = std::remove_const_t<decltype(total)>;
    if (!(total > Sum{})) return {};
    return index_at(size, weight, static_cast<Sum>(total * static_cast<Sum>(random())));
  }
};

template <class Random>
UniformDecisions(Random&&) -> UniformDecisions<Random>;

}  // namespace detail

/// Draws an index with probability proportional to its weight. `weights`: any array of numbers; the sum need not be 1.
/// `u`: the random number to use, in [0, 1). Returns nullopt if all weights are zero. Use it in drafters, and in
/// engines that sample from probabilities themselves. Cost: two scans.
template <class Weights>
[[nodiscard]] std::optional<std::size_t> draw_index(const Weights& weights, double u) {
  const auto read = detail::to_read(weights);
  return detail::UniformDecisions{[u] { return u; }}.draw(read.size(),
                                                          [&](std::size_t i) { return detail::weight_at(read, i); });
}

/// Picks for Session::resolve() that are chosen by rejection sampling. The walk is the ordinary one, with the usual
/// stop rules and limits. `picks[i]` is drafted token i if this token is accepted. Otherwise, the pick is drawn from
/// the residual, max(p - q, 0), and ends the walk. After the last drafted token, and for pad rows, picks are drawn from
/// p.
///
///     RejectionPicks picks(draft, [&](std::size_t i) { return engine.probabilities(i); },   // p after row anchor + i
///                          [&](std::size_t i) { return drafter.distribution(i); },         // q of drafted token i
///                          [&] { return engine.uniform(); });
///     auto decision = session.resolve(ticket, picks);
///
///  * `draft`: the sampled tokens that were sent; they form a chain.
///  * `target(i)`: the distribution after row (anchor + i), i = 0 ... draft.size(); larger i only for pad rows.
///  * `drafter(i)`: the distribution from which draft[i] was drawn; empty for a token that was not drawn.
///  * `random`: a callable that returns numbers in [0, 1), or an object with chance() and draw().
///
/// `target` and `drafter` return spans of the same number type, in memory that stays valid until the next pick is read.
/// Each is called at most once for each pick, in order. Callables passed as lvalues are held by reference; others are
/// stored.
///
/// Each acceptance test uses one random number, and so does each draw. Cost: constant for an accepted token; a draw
/// scans the vocabulary twice. Allocates nothing. Exceptions from the callables pass through.
///
/// Even in floating point, a rejected token x has no weight in the residual, because x is rejected only if p(x) < q(x).
/// If rounding leaves no residual at all, a token is drawn from p without x. If p gives weight to no other token, x
/// itself is drawn and the walk continues.
template <class Target, class Drafter, class Random>
class RejectionPicks {
  using Decisions = std::conditional_t<std::invocable<Random&>, detail::UniformDecisions<Random>, Random>;

 public:
  RejectionPicks(TokenSpan draft, Target&& target, Drafter&& drafter, Random&& random)
      : draft_(draft),
        target_(std::forward<Target>(target)),
        drafter_(std::forward<Drafter>(drafter)),
        decisions_{std::forward<Random>(random)} {}

  Token operator[](std::size_t i) {
    const auto target = detail::to_read(target_(i));
    if (i >= draft_.size()) return draw_from(target);
    return judge(draft_[i], target, detail::to_read(drafter_(i)));
  }

  /// Returns true if a distribution of the target had no weight at all. The pick was token 0 in that case, and the pass
  /// cannot be used.
  [[nodiscard]] bool failed() const noexcept { return failed_; }

 private:
  template <class P, class Q>
  Token judge(Token drafted, P target, Q drafter) {
    const auto x = static_cast<std::size_t>(drafted);
    const auto q = detail::weight_at(drafter, x);
    if (!(q > decltype(q){})) return draw_from(target);
    if (decisions_.chance(detail::weight_at(target, x), q)) return drafted;
    const auto residual = [&](std::size_t i) { return detail::residual_at(target, drafter, i); };
    const auto others = [&](std::size_t i) { return detail::weight_at(target, i == x ? target.size() : i); };
    if (const auto token = decisions_.draw(target.size(), residual)) return static_cast<Token>(*token);
    if (const auto token = decisions_.draw(target.size(), others)) return static_cast<Token>(*token);
    return draw_from(target);
  }
  template <class P>
  Token draw_from(P target) {
    const auto token = decisions_.draw(target.size(), [&](std::size_t i) { return detail::weight_at(target, i); });
    failed_ = failed_ || !token;
    return static_cast<Token>(token.value_or(0));
  }

  TokenSpan draft_;
  Target target_;
  Drafter drafter_;
  Decisions decisions_;
  bool failed_ = false;
};

template <class Target, class Drafter, class Random>
RejectionPicks(TokenSpan, Target&&, Drafter&&, Random&&) -> RejectionPicks<Target, Drafter, Random>;

}}  // namespace reprise
