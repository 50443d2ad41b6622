// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/draft/detail/members.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/rolling_hash.hpp"

namespace reprise { inline namespace v0 {

/// Settings of RepetitionGate.
struct RepetitionGateOptions {
  std::uint32_t ngram = 3;                            ///< length of the counted n-grams, 1..32
  Probability threshold = Probability::ratio(1, 50);  ///< minimum share of repeated n-grams; zero: always open
  bool prompt_only = true;                            ///< false: output counts too, so the gate may open or close later
  std::uint64_t key = IndexOptions{}.key;             ///< see IndexOptions
  std::size_t max_bytes = unlimited;                  ///< see IndexOptions; at this limit, the gate opens
};

/// Wraps a strategy and lets it draft only where the text repeats itself. While at least a given share of the prompt's
/// n-grams occurred earlier, the strategy's drafts pass unchanged; otherwise nothing is drafted. Source: the gate of
/// mlx-lm's PR 1297, which scores the prompt of each request once.
///
/// This class is meant for users of mlx-lm's gate. It knows neither the cost of a pass nor the acceptance of earlier
/// drafts. It stays closed for prompts without any repetition, although a history across requests still saves passes
/// there. Control, which is the library's default, decides better, because it learns.
///
/// By default, the score covers the context up to the end of the tokens that the caller last added. The caller adds
/// tokens by begin(), by observe() of a prompt, or by rebase(). If truncate() removes a part of this text, the score
/// covers the rest. An override holds for one sequence: begin() removes it.
///
/// Rounds with a closed gate count as Cut::throttled in statistics. The state of the gate depends only on the context
/// and the override, so sampled drafts stay unbiased.
///
/// Additional cost: one index append and one index lookup per token; none in propose(). Memory: 12 to 18 bytes per
/// token of context. Only begin(), observe(), rebase() and reserve() allocate. If memory runs out, the gate stays open
/// until begin() or rebase(), or until truncate() to a size that fits. Threads: one at a time; copies are independent.
template <DraftStrategy Strategy>
class RepetitionGate : public detail::Members<Strategy> {
  using Base = detail::Members<Strategy>;

 public:
  static constexpr bool calibrated = CalibratedStrategy<Strategy>;  ///< see CalibratedStrategy

  explicit RepetitionGate(Strategy strategy) : RepetitionGate(std::move(strategy), RepetitionGateOptions()) {}

  /// Returns a gate with these settings. Errors: invalid_argument if ngram is out of range.
  static Result<RepetitionGate> make(Strategy strategy, const RepetitionGateOptions& options = {}) {
    if (options.ngram == 0 || options.ngram > NgramOrders::largest)
      return Error{ErrorCode::invalid_argument, "ngram has to be between 1 and 32", options.ngram,
                   std::clamp<std::uint32_t>(options.ngram, 1, NgramOrders::largest)};
    return RepetitionGate(std::move(strategy), options);
  }

  void begin(TokenSpan context) {
    override_.reset();
    start(context);
    Base::begin(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    append(context.last(fresh), origin);
    Base::observe(context, fresh, origin);
  }
  void propose(TokenSpan context, Draft& draft) {
    if (open()) return strategy().propose(context, draft);
    draft.hold_back();
  }
  void feedback(TokenSpan context, const Outcome& outcome) { strategy().feedback(context, outcome); }
  void truncate(TokenSpan context, std::size_t size) {
    check_memory();
    index_.truncate(std::max(size, counted_.size));
    while (counted_.size > size && !index_.exhausted()) {
      counted_.repeated -= ends_repeated() ? 1U : 0U;
      index_.truncate(--counted_.size);
    }
    index_.truncate(size);
    if (counted_.size <= judged_.size) judged_ = counted_;
    Base::truncate(context, size);
  }
  /// Recomputes the score. Keeps the override, because the sequence is the same.
  void rebase(TokenSpan before, TokenSpan context) requires RebasableStrategy<Strategy> {
    start(context);
    Base::rebase(before, context);
  }
  void reserve(std::size_t max_context) {
    static_cast<void>(index_.reserve(max_context));
    Base::reserve(max_context);
  }
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const requires DistributionStrategy<Strategy> {
    return strategy().distribution(node);
  }
  [[nodiscard]] std::size_t memory_bytes() const { return index_.memory_bytes() + Base::memory_bytes(); }

  /// Overrides the score for this sequence, from now on: true opens the gate, false closes it, and nullopt lets the
  /// score decide again.
  void override_with(std::optional<bool> open) noexcept { override_ = open; }
  [[nodiscard]] bool open() const noexcept {
    if (override_) return *override_;
    return index_.exhausted() || score() >= options_.threshold;
  }
  /// Returns the share of the counted n-grams that occurred before. Returns zero while fewer than two n-grams are
  /// counted.
  [[nodiscard]] Probability score() const noexcept {
    const Counted& in = options_.prompt_only ? judged_ : counted_;
    if (in.size <= options_.ngram) return Probability::zero();
    return share(in.repeated, in.size - options_.ngram + 1);
  }
  [[nodiscard]] const RepetitionGateOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] Strategy& strategy() noexcept REPRISE_LIFETIMEBOUND { return this->template member<0>(); }
  [[nodiscard]] const Strategy& strategy() const noexcept REPRISE_LIFETIMEBOUND { return this->template member<0>(); }

 private:
  struct Counted {
    std::size_t size = 0;      // number of leading tokens that are counted
    std::size_t repeated = 0;  // n-grams among them that occurred before
  };

  /// Requires valid settings.
  RepetitionGate(Strategy strategy, const RepetitionGateOptions& options)
      : Base(std::move(strategy)), options_(options), index_(index_options(options)) {}

  static IndexOptions index_options(const RepetitionGateOptions& options) noexcept {
    IndexOptions index{.orders = {}, .key = options.key, .max_bytes = options.max_bytes};
    index.orders.add(options.ngram);
    return index;
  }
  static Probability share(std::uint64_t part, std::uint64_t whole) noexcept {
    return Probability::from_raw(static_cast<std::uint32_t>(part * Probability::scale / whole));
  }
  void start(TokenSpan tokens) {
    index_.clear();
    counted_ = {};
    judged_ = {};
    append(tokens, Origin::prompt);
  }
  void append(TokenSpan tokens, Origin origin) {
    check_memory();
    for (std::size_t i = 0; i < tokens.size() && !index_.exhausted(); ++i) {
      index_.append(tokens.subspan(i, 1));
      if (index_.exhausted()) break;
      ++counted_.size;
      counted_.repeated += ends_repeated() ? 1U : 0U;
    }
    if (origin == Origin::prompt) judged_ = counted_;
  }
  /// Resets the counts if the index has lost tokens. An index may lose all its tokens if it runs out of memory. A copy
  /// may lose them if there is no memory for it.
  void check_memory() noexcept {
    if (index_.tokens().size() < counted_.size) counted_ = judged_ = {};
  }
  [[nodiscard]] bool ends_repeated() const noexcept {
    Match match;
    return index_.find({options_.ngram, options_.ngram, 1, MatchLimits::Order::most_recent}, {&match, 1}) != 0;
  }

  RepetitionGateOptions options_;
  RollingHashIndex index_;
  Counted counted_;
  Counted judged_;                // the counts when the caller last added tokens
  std::optional<bool> override_;  // true: open, false: closed, nullopt: the score decides
};

}}  // namespace reprise
