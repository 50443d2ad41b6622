// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "reprise/core/buffer.hpp"
#include "reprise/core/fixed_point.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/best_first.hpp"
#include "reprise/draft/detail/model_cache.hpp"
#include "reprise/draft/draft_model.hpp"
#include "reprise/evidence/hit_rate.hpp"
#include "reprise/index/token_hash.hpp"

namespace reprise::inline v0 {

/// Settings of ModelDrafter.
struct ModelOptions {
  /// ordered: the model's likeliest tokens. sampled: tokens drawn from its distribution, for rejection sampling.
  DraftKind kind = DraftKind::ordered;
  std::size_t draft_length = 8;  ///< tokens on one path, 1..64: runs of the model one after the other
  std::size_t branches = 1;      ///< of an ordered draft: tokens tried at each place, 1..8; more than 1, a tree
  /// Less likely paths are not proposed; DraftBudget can only ask for more. A token costs a run of the model, which
  /// control does not know of, so this is higher than where drafting costs nothing.
  Probability min_path_probability = Probability::ratio(1, 5);
  std::uint64_t seed = 1;  ///< of what is drawn; see ModelDrafter::reseed()
};

/// Drafts with a small model of the same vocabulary (Leviathan et al. 2023; Chen et al. 2023).
///
/// *Ordered* drafts: the likeliest tokens by the model's own probabilities, multiplied along the path. With one branch
/// a greedy chain; with more a tree, grown best first. Going back to another path costs a run of the model over the
/// tokens by which it differs.
///
/// *Sampled* drafts: a chain whose tokens are drawn from the model's distribution. What a node states was fixed before
/// its token was drawn: how often drafted tokens were accepted, by depth and by how sure the model was (its highest
/// probability), learned from feedback. distribution() shows what they were drawn from.
///
/// The model's distributions are the only floating point here: each weight becomes a fixed-point number (2^-30 for what
/// is ordered, 2^-42 for what is drawn), and those decide. A weight that is no number counts as zero. What is drawn is
/// a function of the seed and the place in the sequence, so a draft that is asked for again is the same; a fork, a
/// sequence that went back, and another sequence with the same seed draw alike: reseed() them, with seeds that have
/// nothing to do with the target's, where outputs have to be independent of each other.
///
/// The model is fed in propose() only, beginning with the tokens committed since the last time: the whole prompt in the
/// first. begin() starts the model's cache anew; rebase() keeps the tokens that both contexts begin with. Cost of
/// propose: one run of the model for each drafted token and one for the committed ones, each with up to three passes
/// over the vocabulary. Memory: the model's; of sampled drafts 4 bytes times vocabulary times draft_length, asked for
/// in begin(), without which nothing is drafted. Throws what the model throws. Threads: one at a time; copies are as
/// independent as those of the model.
template <DraftModel Model>
class ModelDrafter {
 public:
  static constexpr std::size_t max_nodes = detail::ModelCache<Model>::longest_path;  ///< of a draft
  static constexpr std::size_t most_branches = 8;

  explicit ModelDrafter(Model model = Model()) : ModelDrafter(std::move(model), ModelOptions()) {}

  /// A drafter with these settings. Errors: invalid_argument if draft_length or branches is out of range.
  static Result<ModelDrafter> make(Model model, const ModelOptions& options = {}) {
    if (options.draft_length == 0 || options.draft_length > max_nodes)
      return Error{ErrorCode::invalid_argument, "draft_length has to be between 1 and 64", options.draft_length,
                   std::clamp<std::size_t>(options.draft_length, 1, max_nodes)};
    if (options.branches == 0 || options.branches > most_branches)
      return Error{ErrorCode::invalid_argument, "branches has to be between 1 and 8", options.branches,
                   std::clamp<std::size_t>(options.branches, 1, most_branches)};
    return ModelDrafter(std::move(model), options);
  }

  void begin(TokenSpan) {
    forget();
    cache_.begin();
    if (options_.kind == DraftKind::sampled)
      static_cast<void>(drawn_from_.resize(options_.draft_length * vocabulary(), 0.0F));
  }
  void observe(TokenSpan context, std::size_t fresh, Origin) noexcept {
    proposed_ = 0;
    cache_.observe(context, fresh);
  }
  void truncate(TokenSpan context, std::size_t size) noexcept {
    proposed_ = 0;
    cache_.truncate(context, size);
  }
  void rebase(TokenSpan before, TokenSpan context) noexcept {
    proposed_ = 0;
    cache_.rebase(before, context);
  }
  void reserve(std::size_t max_context) {
    if constexpr (requires { model().reserve(max_context); }) model().reserve(max_context);
  }

  void propose(TokenSpan context, Draft& draft) {
    proposed_ = 0;
    const bool sampled = options_.kind == DraftKind::sampled;
    if (sampled) draft.clear(DraftKind::sampled);
    if (context.empty() || draft.budget().max_leaves == 0) return;  // or the model would run for nothing
    if (sampled)
      draw(context, draft);
    else
      proposed_ =
          grow_best_first(frontier_, nodes_, draft, [&](NodeIndex parent) { return expand(context, parent, draft); });
  }

  void feedback(TokenSpan, const Outcome& outcome) noexcept {
    // A node that was not sent was not put to the test of rejection sampling, even if the next token happens to be the
    // same.
    if (options_.kind == DraftKind::sampled)
      for_each_tested(outcome, [&](std::size_t i, bool picked) {
        const auto node = static_cast<NodeIndex>(i);
        if (i < proposed_ && std::find(outcome.sent.begin(), outcome.sent.end(), node) != outcome.sent.end())
          rates_[lessons_[i]].learn(picked);
      });
    proposed_ = 0;
  }

  /// What the token of this node of the last draft was drawn from. Empty for ordered drafts. Valid until the drafter
  /// changes. See DistributionStrategy.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const noexcept {
    if (options_.kind != DraftKind::sampled || node < 0 || static_cast<std::size_t>(node) >= proposed_) return {};
    return {drawn_from_.data() + static_cast<std::size_t>(node) * vocabulary(), vocabulary()};
  }
  /// Another random stream from here on.
  void reseed(std::uint64_t seed) noexcept {
    options_.seed = seed;
    proposed_ = 0;
  }

  [[nodiscard]] const ModelOptions& options() const noexcept { return options_; }
  /// To look at; who feeds or cuts it breaks the step with the sequence.
  [[nodiscard]] Model& model() noexcept { return cache_.model(); }
  [[nodiscard]] const Model& model() const noexcept { return cache_.model(); }
  /// The model's own memory is not counted.
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return drawn_from_.memory_bytes(); }

 private:
  static constexpr std::size_t depth_classes = 4;
  static constexpr std::size_t sureness_classes = 8;

  struct Node {
    Probability path;
    Token token = 0;
    NodeIndex parent = anchor_parent;
    std::uint16_t depth = 0;  // 1: follows the anchor

    [[nodiscard]] DraftNode node() const noexcept {
      return {.token = token, .parent = parent, .path_probability = path, .source = DraftSource::model};
    }
  };
  struct Choice {
    Probability probability;
    Token token = 0;
  };

  /// The settings are right.
  ModelDrafter(Model model, const ModelOptions& options) : options_(options), cache_(std::move(model)) { forget(); }

  [[nodiscard]] std::size_t vocabulary() const noexcept { return static_cast<std::size_t>(model().vocabulary()); }
  void forget() noexcept {
    proposed_ = 0;
    // Only until something was learned: a model that is sure is mostly right.
    for (std::size_t i = 0; i < rates_.size(); ++i)
      rates_[i] = HitRate(Probability::ratio(static_cast<std::uint32_t>(sureness_classes + i % sureness_classes),
                                             2 * sureness_classes));
  }

  /// A weight in the fixed point of Scale. A product with a power of two is exact.
  template <class Scale>
  static std::uint64_t fixed(float weight) noexcept {
    constexpr std::uint64_t one = Scale::one;
    if (!(weight > 0.0F)) return 0;
    return weight < 1.0F ? static_cast<std::uint64_t>(weight * static_cast<float>(one)) : one;
  }

  [[nodiscard]] Probability least_probability(const Draft& draft) const noexcept {
    return std::max(options_.min_path_probability, draft.budget().min_path_probability);
  }

  /// Runs the model after `parent`, and lets the best tokens wait in the frontier. False: the model could not.
  bool expand(TokenSpan context, NodeIndex parent, Draft& draft) {
    std::size_t depth = 0;
    Probability path = Probability::one();
    if (parent != anchor_parent) {
      const Node& node = nodes_[static_cast<std::size_t>(parent)];
      depth = node.depth;
      path = node.path;
      // No token after it could be better than those that wait already.
      if (depth >= options_.draft_length || path <= frontier_.bar()) return true;
      std::size_t at = depth;
      for (NodeIndex i = parent; i != anchor_parent; i = nodes_[static_cast<std::size_t>(i)].parent)
        path_[--at] = nodes_[static_cast<std::size_t>(i)].token;
    }
    const std::span<const float> distribution = cache_.after(context, TokenSpan(path_).first(depth));
    if (distribution.empty()) return false;

    const Probability least = least_probability(draft);
    std::array<Choice, most_branches> best;  // NOLINT(*-member-init): filled as far as it is read
    const std::size_t count = likeliest(distribution, std::span(best).first(draft.chain() ? 1 : options_.branches));
    for (const Choice& choice : std::span(best).first(count)) {
      const Probability reached = path * choice.probability;
      if (reached < least) draft.leave_out();
      if (reached >= least && reached > frontier_.bar())
        frontier_.push({reached, choice.token, parent, static_cast<std::uint16_t>(depth + 1)});
    }
    return true;
  }
  /// Writes the most probable tokens, the likeliest first; returns how many.
  static std::size_t likeliest(std::span<const float> distribution, std::span<Choice> best) noexcept {
    std::size_t count = 0;
    for (std::size_t token = 0; token < distribution.size(); ++token) {
      const auto probability =
          Probability::from_raw(static_cast<std::uint32_t>(fixed<ProbabilityScale>(distribution[token])));
      if (probability == Probability::zero() || (count == best.size() && probability <= best[count - 1].probability))
        continue;
      std::size_t at = count < best.size() ? count++ : count - 1;
      for (; at > 0 && best[at - 1].probability < probability; --at) best[at] = best[at - 1];
      best[at] = {probability, static_cast<Token>(token)};
    }
    return count;
  }

  void draw(TokenSpan context, Draft& draft) {
    const std::size_t size = vocabulary();
    if (drawn_from_.size() < options_.draft_length * size) return;
    // The draft refuses more by itself, but only after a run of the model.
    const DraftBudget& budget = draft.budget();
    const std::size_t most = std::min({budget.max_nodes, budget.max_depth, options_.draft_length});
    const Probability least = least_probability(draft);
    Probability path = Probability::one();
    for (std::size_t depth = 0; depth < most; ++depth) {
      const std::span<const float> distribution = cache_.after(context, TokenSpan(path_).first(depth));
      if (distribution.empty() || distribution.size() != size) return;
      const Weights weights = weights_of(distribution);
      if (weights.total == 0) return;
      // From here to the push nothing may depend on the token that is drawn.
      const std::size_t sureness =
          std::min<std::size_t>(DrawScale::floor(weights.highest * sureness_classes), sureness_classes - 1);
      const std::size_t lesson = std::min(depth, depth_classes - 1) * sureness_classes + sureness;
      path = path * rates_[lesson].probability();
      if (path < least) return draft.leave_out();
      const Token token = pick(distribution, random(context.size() + depth) % weights.total);
      if (!draft.extend({.token = token, .path_probability = path, .source = DraftSource::model})) return;
      std::copy(distribution.begin(), distribution.end(),
                drawn_from_.begin() + static_cast<std::ptrdiff_t>(depth * size));
      path_[depth] = token;
      lessons_[depth] = static_cast<std::uint8_t>(lesson);
      ++proposed_;
    }
  }
  using DrawScale = Fixed<42>;  // finer than a probability: rounding moves what is drawn
  struct Weights {              // of DrawScale
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
  /// The token at `place`, where each token takes as many places as it weighs.
  static Token pick(std::span<const float> distribution, std::uint64_t place) noexcept {
    std::size_t token = 0;
    for (; token + 1 < distribution.size(); ++token) {
      const std::uint64_t share = fixed<DrawScale>(distribution[token]);
      if (place < share) break;
      place -= share;
    }
    return static_cast<Token>(token);
  }
  /// The number for one place of the sequence.
  [[nodiscard]] std::uint64_t random(std::uint64_t place) const noexcept {
    return detail::spread(detail::spread(options_.seed + 0x9e3779b97f4a7c15) + place * 0x9e3779b97f4a7c15);
  }

  ModelOptions options_;
  detail::ModelCache<Model> cache_;
  Buffer<float> drawn_from_;  // of a sampled draft, a distribution for each node
  std::array<HitRate, depth_classes * sureness_classes> rates_;

  // The draft being made, and what feedback() has to know of it.
  Frontier<Node, max_nodes> frontier_;
  std::array<Node, max_nodes> nodes_;
  std::array<Token, max_nodes> path_{};
  std::array<std::uint8_t, max_nodes> lessons_{};
  std::size_t proposed_ = 0;
};

static_assert(DistributionStrategy<ModelDrafter<archetype::Model>>);
static_assert(ReservableStrategy<ModelDrafter<archetype::Model>> && RebasableStrategy<ModelDrafter<archetype::Model>>);
static_assert(MeasurableStrategy<ModelDrafter<archetype::Model>>);

}  // namespace reprise
