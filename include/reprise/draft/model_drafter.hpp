// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/evidence/detail/hit_rate.hpp"
#include "reprise/index/detail/token_hash.hpp"

namespace reprise { inline namespace v0 {

/// A small language model for ModelDrafter: one sequence with a cache that can be truncated. Requirements that a
/// compiler cannot check:
///
///  M1  feed(tokens) appends `tokens` (at least one) to the cache and runs the model on them. It returns the
///      distribution after the last token: one non-negative weight for each token 0 ... vocabulary() - 1. The weights
///      sum to one, after temperature and truncation (top-k, top-p). The span is valid until the next call. An empty
///      span means failure, for example because the context is full. The round then continues with the nodes drafted so
///      far.
///  M2  truncate(size) keeps the first `size` tokens of the cache. After a feed() that failed or threw, `size` is at
///      most the size of the cache before that call.
///  M3  Equal tokens give equal distributions, regardless of how they are split into calls of feed(). propose() may be
///      called again (S4), and may feed the same tokens again.
///  M4  A copy is a fork (S7): it has its own cache with the same tokens. Copies may share the weights.
///  M5  propose() calls feed() and truncate(), so they do not allocate (S3), except for memory that an optional
///      reserve(max_context) could have allocated before. Exceptions pass through propose(); the session then continues
///      without drafts until begin() or rebase().
///  M6  vocabulary() does not change.
///
/// Threads: one at a time for each model; copies are independent.
template <class M>
concept DraftModel = std::copyable<M> && requires(M& model, const M& same, TokenSpan tokens, std::size_t size) {
  { model.feed(tokens) } -> std::convertible_to<std::span<const float>>;
  model.truncate(size);
  { same.vocabulary() } -> std::convertible_to<std::size_t>;
};

}}  // namespace reprise

namespace reprise { inline namespace v0 { namespace detail {

/// Keeps the cache of a draft model in step with the committed tokens. The model is fed lazily, when a distribution is
/// requested. Tokens that the cache holds, such as those of a committed draft, are not fed again, except the last one
/// of a request. Rejected tokens are removed before the next feed().
///
/// The cache holds the first fed_ tokens of the context. If these are the whole context, the cache also holds tail_,
/// the path that was drafted last. Memory: that of the model.
template <DraftModel Model>
class ModelCache {
 public:
  static constexpr std::size_t longest_path = most_draft_nodes;

  explicit ModelCache(Model model) : model_(std::move(model)) {}

  /// Starts a new sequence. Marks all tokens in the cache as invalid.
  void begin() noexcept { forget(0); }
  /// Replaces the context. Keeps the tokens in the cache that belong to the common beginning of both contexts.
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    const TokenSpan fed = before.first(std::min(fed_, before.size()));
    forget(same_tokens(fed, context));
  }
  /// Adds the last `fresh` tokens of `context`, which are new.
  void observe(TokenSpan context, std::size_t fresh) noexcept {
    if (fed_ != context.size() - fresh) return forget(fed_);
    const TokenSpan tail(tail_.data(), tail_size_);
    const std::size_t same = same_tokens(tail, context.last(fresh));
    fed_ += same;
    tail_size_ -= same;
    if (same < fresh) return forget(fed_);  // the rest of the tail, if any, was rejected
    std::copy(tail.begin() + static_cast<std::ptrdiff_t>(same), tail.end(), tail_.begin());
  }
  /// Cuts the context to `size` tokens.
  void truncate(TokenSpan context, std::size_t size) noexcept {
    if (size < context.size()) forget(std::min(fed_, size));
  }

  /// Returns the distribution after `context` and `path`, or an empty span if the model fails. Preconditions: `context`
  /// is not empty; `path` has at most `longest_path` tokens. `path` is empty in the first call after a change of the
  /// context or a failure.
  std::span<const float> after(TokenSpan context, TokenSpan path) {
    const std::size_t size = context.size();
    REPRISE_EXPECTS(size > 0 && path.size() <= longest_path && (path.empty() || fed_ == size));
    std::size_t keep = fed_;
    if (fed_ == size) keep += same_tokens(TokenSpan(tail_.data(), tail_size_), path);
    // The last token is always fed, even if the cache holds it, because the model keeps only its last distribution.
    keep = std::min(keep, size + path.size() - 1);
    const bool longer = uncertain_ || fed_ + tail_size_ > keep;
    fed_ = std::min(keep, size);
    tail_size_ = keep - fed_;
    uncertain_ = true;  // until feed() succeeds; if it throws, only the first `keep` tokens are certain
    if (longer) model_.truncate(keep);
    const TokenSpan next = keep < size ? context.subspan(keep) : path.subspan(keep - size);
    const std::span<const float> distribution = model_.feed(next);
    if (distribution.empty()) return {};
    uncertain_ = false;
    fed_ = size;
    std::copy(path.begin(), path.end(), tail_.begin());
    tail_size_ = path.size();
    return distribution;
  }

  [[nodiscard]] Model& model() noexcept { return model_; }
  [[nodiscard]] const Model& model() const noexcept { return model_; }

 private:
  /// Returns the length of the common beginning of `a` and `b`.
  [[nodiscard]] static std::size_t same_tokens(TokenSpan a, TokenSpan b) noexcept {
    return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  }
  /// Marks all but the first `keep` tokens of the cache as invalid.
  void forget(std::size_t keep) noexcept {
    if (fed_ + tail_size_ > keep) uncertain_ = true;
    fed_ = keep;
    tail_size_ = 0;
  }

  Model model_;
  std::size_t fed_ = 0;
  std::array<Token, longest_path> tail_{};
  std::size_t tail_size_ = 0;
  bool uncertain_ = false;  // the cache may hold more than the fed_ tokens and the tail
};

}}}  // namespace reprise::detail

namespace reprise { inline namespace v0 {

/// Settings of ModelDrafter.
struct ModelOptions {
  /// ordered: the model's likeliest tokens. sampled: tokens drawn from its distribution, for rejection sampling.
  DraftKind kind = DraftKind::ordered;
  std::size_t draft_length = 8;  ///< maximum number of tokens, 1..64; each costs a run of the model
  /// The minimum probability of a proposed path. DraftBudget::min_path_probability can only raise it. The default is
  /// higher than that of other drafters, because each token costs a run of the model, and control does not know that
  /// cost.
  Probability min_path_probability = Probability::ratio(1, 5);
  std::uint64_t seed = 1;  ///< seed of sampled drafts; see ModelDrafter::reseed()
};

/// Drafts with a small model that has the target's vocabulary (Leviathan et al. 2023; Chen et al. 2023).
///
/// *Ordered* drafts are greedy chains: each token is the likeliest one. The probability of a path is the product of the
/// model's own probabilities.
///
/// *Sampled* drafts are chains of tokens drawn from the model's distribution; distribution() returns it. The
/// probability of a node is fixed before its token is drawn. Given the parent, it is the acceptance rate of drafted
/// tokens. This rate is learned from feedback, separately for each class of depth and of the model's highest
/// probability.
///
/// The model's distributions are the only floating-point numbers here. Each weight is first rounded down to a multiple
/// of 2^-30 for ordered drafts, or of 2^-42 for sampled ones. A weight that is NaN counts as zero.
///
/// The random numbers depend on the seed and on the number of rounds since reseed(), over all sequences. So each round
/// draws with fresh numbers (S10), and a cancelled round that is run again has the same draft. For the same drafts in a
/// repeated request, call reseed() before begin(). A copy uses the same numbers as the original. Drafters whose
/// sessions share a planner or a loss budget need seeds of their own, and seeds that are independent of the target's.
///
/// Only propose() feeds the model. It starts with the committed tokens that the model's cache does not hold, at least
/// the last one. The first call after begin() feeds the whole context. begin() invalidates the model's cache; rebase()
/// keeps the common beginning of both contexts.
///
///  - Cost of propose(): at most one run of the model per drafted token and one for the committed tokens. Each includes
///    up to three passes over the vocabulary.
///  - Memory: that of the model. Sampled drafts add 4 bytes x vocabulary x draft_length, allocated in begin(); if that
///    fails, nothing is drafted.
///
/// Throws whatever the model throws. Threads: one at a time; copies are as independent as copies of the model.
template <DraftModel Model>
class ModelDrafter {
 public:
  static constexpr std::size_t max_nodes = detail::ModelCache<Model>::longest_path;  ///< largest draft, in nodes

  explicit ModelDrafter(Model model = Model()) : ModelDrafter(std::move(model), ModelOptions()) {}

  /// Makes a drafter with these settings. Errors: invalid_argument if draft_length is out of range.
  static Result<ModelDrafter> make(Model model, const ModelOptions& options = {}) {
    if (options.draft_length == 0 || options.draft_length > max_nodes)
      return Error{ErrorCode::invalid_argument, "draft_length has to be between 1 and 64", options.draft_length,
                   std::clamp<std::size_t>(options.draft_length, 1, max_nodes)};
    return ModelDrafter(std::move(model), options);
  }

  void begin(TokenSpan) {
    next_round();
    forget();
    cache_.begin();
    if (options_.kind == DraftKind::sampled)
      static_cast<void>(drawn_from_.resize(options_.draft_length * vocabulary(), 0.0F));
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) noexcept {
    next_round();
    cache_.observe(context, fresh);
  }
  void truncate(TokenSpan context, std::size_t size) noexcept {
    next_round();
    cache_.truncate(context, size);
  }
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    next_round();
    cache_.rebase(before, context);
  }
  void reserve(std::size_t max_context) {
    if constexpr (requires { model().reserve(max_context); }) model().reserve(max_context);
  }

  void propose(TokenSpan context, Draft& draft) {
    proposed_ = 0;
    const bool sampled = options_.kind == DraftKind::sampled;
    if (sampled) draft.clear(DraftKind::sampled);
    if (context.empty() || draft.budget().max_leaves == 0) return;  // saves a useless run of the model
    if (sampled) return draw(context, draft);
    draft_likeliest(context, draft);
  }

  void feedback(TokenSpan, const Outcome& outcome) noexcept {
    // Rejection sampling tests sent nodes only. An unsent node gives no example, even if the target happens to pick its
    // token.
    if (options_.kind == DraftKind::sampled)
      for_each_tested(outcome, [&](std::size_t i, bool picked) {
        const auto node = static_cast<NodeIndex>(i);
        if (i < proposed_ && std::find(outcome.sent.begin(), outcome.sent.end(), node) != outcome.sent.end())
          rates_[lessons_[i]].learn(picked);
      });
    next_round();
  }

  /// Returns the distribution from which this node of the last draft was drawn. Returns an empty span if the draft is
  /// ordered or has no such node. The span is valid until the drafter changes. See DistributionStrategy.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const noexcept REPRISE_LIFETIMEBOUND {
    if (options_.kind != DraftKind::sampled || node < 0 || static_cast<std::size_t>(node) >= proposed_) return {};
    return {drawn_from_.data() + static_cast<std::size_t>(node) * vocabulary(), vocabulary()};
  }
  /// Starts the random stream of this seed at its beginning, and forgets the last draft.
  void reseed(std::uint64_t seed) noexcept {
    options_.seed = seed;
    round_ = 0;
    proposed_ = 0;
  }

  [[nodiscard]] const ModelOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns the model, for inspection only: calling its feed() or truncate() would put its cache out of step with the
  /// sequence.
  [[nodiscard]] Model& model() noexcept REPRISE_LIFETIMEBOUND { return cache_.model(); }
  [[nodiscard]] const Model& model() const noexcept REPRISE_LIFETIMEBOUND { return cache_.model(); }
  /// Returns the heap bytes held, without the model's own memory.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return drawn_from_.memory_bytes(); }

 private:
  static constexpr std::size_t depth_classes = 4;
  static constexpr std::size_t sureness_classes = 8;

  struct Choice {
    Probability probability;
    Token token = 0;
  };

  /// Precondition: the settings are valid.
  ModelDrafter(Model model, const ModelOptions& options) : options_(options), cache_(std::move(model)) { forget(); }

  [[nodiscard]] std::size_t vocabulary() const noexcept { return static_cast<std::size_t>(model().vocabulary()); }
  void next_round() noexcept {
    proposed_ = 0;
    ++round_;
  }
  void forget() noexcept {
    // Initial rates, until feedback corrects them: a confident model is usually right.
    for (std::size_t i = 0; i < rates_.size(); ++i)
      rates_[i] = detail::HitRate(Probability::ratio(
          static_cast<std::uint32_t>(sureness_classes + i % sureness_classes), 2 * sureness_classes));
  }

  /// Converts a weight to fixed point in Scale. Multiplying by a power of two is exact.
  template <class Scale>
  static std::uint64_t fixed(float weight) noexcept {
    constexpr std::uint64_t one = Scale::one;
    if (!(weight > 0.0F)) return 0;
    return weight < 1.0F ? static_cast<std::uint64_t>(weight * static_cast<float>(one)) : one;
  }

  /// Returns the largest number of tokens to draft. The draft would refuse more, but only after a useless run of the
  /// model.
  [[nodiscard]] std::size_t most_tokens(const Draft& draft) const noexcept {
    return std::min({draft.budget().max_nodes, draft.budget().max_depth, options_.draft_length});
  }
  [[nodiscard]] Probability least_probability(const Draft& draft) const noexcept {
    return std::max(options_.min_path_probability, draft.budget().min_path_probability);
  }

  void draft_likeliest(TokenSpan context, Draft& draft) {
    const std::size_t most = most_tokens(draft);
    const Probability least = least_probability(draft);
    Probability path = Probability::one();
    for (std::size_t depth = 0; depth < most; ++depth) {
      const auto [probability, token] = likeliest(cache_.after(context, TokenSpan(path_).first(depth)));
      if (probability == Probability::zero()) return;
      path = path * probability;
      if (path < least) return draft.leave_out();
      if (!draft.extend({.token = token, .path_probability = path, .source = DraftSource::model})) return;
      if (draft.ends(static_cast<NodeIndex>(depth))) return;
      path_[depth] = token;
    }
  }
  /// Returns the most probable token, or probability zero if there is none.
  static Choice likeliest(std::span<const float> distribution) noexcept {
    Choice best;
    for (std::size_t token = 0; token < distribution.size(); ++token) {
      const auto probability =
          Probability::from_raw(static_cast<std::uint32_t>(fixed<detail::ProbabilityScale>(distribution[token])));
      if (probability > best.probability) best = {probability, static_cast<Token>(token)};
    }
    return best;
  }

  void draw(TokenSpan context, Draft& draft) {
    const std::size_t size = vocabulary();
    if (drawn_from_.size() < options_.draft_length * size) return;
    const std::size_t most = most_tokens(draft);
    const Probability least = least_probability(draft);
    Probability path = Probability::one();
    for (std::size_t depth = 0; depth < most; ++depth) {
      const std::span<const float> distribution = cache_.after(context, TokenSpan(path_).first(depth));
      if (distribution.empty() || distribution.size() != size) return;
      const Weights weights = weights_of(distribution);
      if (weights.total == 0) return;
      // Until draft.extend(), nothing may depend on the drawn token, or rejection sampling would be biased.
      const std::size_t sureness =
          std::min<std::size_t>(DrawScale::floor(weights.highest * sureness_classes), sureness_classes - 1);
      const std::size_t lesson = std::min(depth, depth_classes - 1) * sureness_classes + sureness;
      path = path * rates_[lesson].probability();
      if (path < least) return draft.leave_out();
      const Token token = pick(distribution, random(depth) % weights.total);
      if (!draft.extend({.token = token, .path_probability = path, .source = DraftSource::model})) return;
      std::copy(distribution.begin(), distribution.end(),
                drawn_from_.begin() + static_cast<std::ptrdiff_t>(depth * size));
      path_[depth] = token;
      lessons_[depth] = static_cast<std::uint8_t>(lesson);
      ++proposed_;
      if (draft.ends(static_cast<NodeIndex>(depth))) return;
    }
  }
  using DrawScale = detail::Fixed<42>;  // finer than a probability, because rounding changes the draw
  struct Weights {                      // in DrawScale
    std::uint64_t total = 0;
    std::uint64_t highest = 0;
  };
  static Weights weights_of(std::span<const float> distribution) noexcept {
    Weights weights;
    for (const float weight : distribution) {
      const std::uint64_t share = fixed<DrawScale>(weight);
      weights.total += share;
      weights.highest = std::max(weights.highest, share);
    }
    return weights;
  }
  /// Returns the token at `place`. Each token occupies consecutive places, and its weight is their number.
  static Token pick(std::span<const float> distribution, std::uint64_t place) noexcept {
    std::size_t token = 0;
    for (; token + 1 < distribution.size(); ++token) {
      const std::uint64_t share = fixed<DrawScale>(distribution[token]);
      if (place < share) break;
      place -= share;
    }
    return static_cast<Token>(token);
  }
  /// Returns the random number for one token of this round's draft.
  [[nodiscard]] std::uint64_t random(std::size_t depth) const noexcept {
    const std::uint64_t place = round_ * max_nodes + depth;
    return detail::spread(detail::spread(options_.seed + 0x9e3779b97f4a7c15) + place * 0x9e3779b97f4a7c15);
  }

  ModelOptions options_;
  std::uint64_t round_ = 0;  // changes whenever S4 allows another draft
  detail::ModelCache<Model> cache_;
  detail::Buffer<float> drawn_from_;  // the distribution of each node of a sampled draft
  std::array<detail::HitRate, depth_classes * sureness_classes> rates_;

  // The current draft, with the data that feedback() needs.
  std::array<Token, max_nodes> path_{};
  std::array<std::uint8_t, max_nodes> lessons_{};
  std::size_t proposed_ = 0;
};

}}  // namespace reprise
