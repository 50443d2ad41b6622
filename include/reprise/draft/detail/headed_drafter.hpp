// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/detail/head_forecast.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/evidence/detail/hit_rate.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The mean of the accepted tokens that a head has added to a pass, over about the last 64 passes in which it ran, and
/// of those that the rates of its tokens promised.
///
/// It begins at one token, with the weight of one pass, so that a head is tried at first. While the head does not run,
/// each pass takes away 1/1,024 of the weight of the others. So a head that was bad is tried again: the cheaper it is,
/// the more often, and all these trials together cost about one plain pass in 1,024.
class HeadGain {
 public:
  /// Returns the mean, in UnitScale.
  [[nodiscard]] std::int64_t mean() const noexcept { return mean_of(tokens_, 1); }
  /// The same for what was promised. It begins at more than most drafts promise.
  [[nodiscard]] std::int64_t promised() const noexcept { return mean_of(promised_, 8); }
  /// `tokens`: below 0 if it took the place of a right one. `promised`: in UnitScale.
  void learn(bool ran, std::int64_t tokens, std::int64_t promised) noexcept {
    const std::int64_t memory = ran ? 64 : 1024;
    for (std::int64_t* sum : {&tokens_, &promised_, &passes_}) *sum -= *sum / memory;
    if (!ran) return;
    tokens_ += UnitScale::from(tokens);
    promised_ += promised;
    passes_ += UnitScale::one;
  }

 private:
  [[nodiscard]] std::int64_t mean_of(std::int64_t sum, std::int64_t first) const noexcept {
    return UnitScale::divide(sum + UnitScale::from(first), passes_ + UnitScale::one);
  }

  std::int64_t tokens_ = 0;
  std::int64_t promised_ = 0;
  std::int64_t passes_ = 0;
};

/// How the head's recent gains in this sequence compare with what was expected of them.
class HeadTrend {
 public:
  /// Returns the ratio of gained and expected tokens, in UnitScale.
  [[nodiscard]] std::int64_t factor() const noexcept {
    return std::min(UnitScale::divide(gained_ + prior, expected_ + prior), most);
  }
  void learn(bool ran, std::int64_t gained, std::int64_t expected) noexcept {
    const std::int64_t memory = ran ? 16 : 32;
    gained_ -= gained_ / memory;
    expected_ -= expected_ / memory;
    if (!ran) return;
    gained_ += UnitScale::from(gained);
    expected_ += expected;
  }

 private:
  static constexpr std::int64_t prior = 2 * UnitScale::one;
  static constexpr std::int64_t most = UnitScale::one * 5 / 4;
  std::int64_t gained_ = 0;
  std::int64_t expected_ = 0;
};

/// An ExternalDrafter whose probabilities are learned.
struct HeadMember : ExternalDrafter {
  static constexpr bool calibrated = true;
};

/// The lookup of a HeadedDrafter, as a member of a combination. Its owner makes all other calls.
template <class Lookup>
struct BorrowedLookup {
  static constexpr bool calibrated = CalibratedStrategy<Lookup>;

  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  void propose(TokenSpan context, Draft& draft) { lookup->propose(context, draft); }
  void feedback(TokenSpan context, const Outcome& outcome) { lookup->feedback(context, outcome); }
  [[nodiscard]] std::size_t top_k_wanted() const requires TopKLearner<Lookup> { return lookup->top_k_wanted(); }

  Lookup* lookup = nullptr;
};

/// Makes one draft of that of a head and that of a lookup.
template <class Lookup>
class HeadAndLookup : public SubDrafts<HeadMember, BorrowedLookup<Lookup>> {
 public:
  HeadAndLookup() : SubDrafts<HeadMember, BorrowedLookup<Lookup>>({}, {}) {}

  [[nodiscard]] ExternalDrafter& head() noexcept { return this->template member<0>(); }
  /// Returns the tokens that the lookup expects of its own draft, in ProbabilityScale. If a chain is asked for and the
  /// first tokens differ, the draft is that of the head or that of the lookup; `prefer_head` says which.
  std::uint64_t propose(Lookup& lookup, TokenSpan context, Draft& draft, bool prefer_head) {
    this->template member<1>().lookup = &lookup;
    const auto worth = this->propose_all(context, draft.budget());
    either_ = draft.budget().shape == DraftShape::chain && differ();
    head_ = prefer_head;
    if (!either_ || head_) this->add(0);
    if (!either_ || !head_) this->add(1);
    this->write(draft);
    return worth[1];
  }
  /// Returns how many tokens of the lookup's own draft were right. Calls visit(outcome of the head's draft).
  template <class Visit>
  std::size_t feedback(Lookup& lookup, TokenSpan context, const Outcome& outcome, Visit&& visit) {
    this->template member<1>().lookup = &lookup;
    std::size_t found = 0;
    this->feedback_each(context, outcome, [&](std::size_t member, const Outcome& own) {
      if (member == 0) visit(own);
      if (member == 1) found = own.accepted.size();
    });
    return found;
  }
  /// Returns true if only the head's first token was right, false if only the lookup's was, and otherwise nullopt.
  [[nodiscard]] std::optional<bool> head_won(const Outcome& outcome) const noexcept {
    const std::optional<Token> right = committed_token(outcome, 0);
    if (!right || !differ()) return {};
    const bool head = this->draft_of(0)[0].token == *right;
    if (!head && this->draft_of(1)[0].token != *right) return {};
    return head;
  }
  /// Returns the token that the head gains beside what was accepted: 1 if it was right and only the lookup's chain was
  /// sent; -1 if the lookup was right and only the head's chain was sent; otherwise 0. `won`: of head_won().
  [[nodiscard]] std::int64_t unsent_gain(std::optional<bool> won) const noexcept {
    if (!either_ || !won || *won == head_) return 0;
    return *won ? 1 : -1;
  }

 private:
  /// Whether both have drafted, and their first tokens differ.
  [[nodiscard]] bool differ() const noexcept {
    const DraftView head = this->draft_of(0);
    const DraftView lookup = this->draft_of(1);
    return head.size() > 0 && lookup.size() > 0 && head[0].token != lookup[0].token;
  }

  bool either_ = false;  // the draft is that of one of them: a chain was asked for, and the first tokens differ
  bool head_ = false;    // it is that of the head
};

/// One object on the heap, or none. A copy for which there is no memory has none.
template <class T>
class OnHeap {
 public:
  OnHeap() noexcept = default;
  OnHeap(OnHeap&&) noexcept = default;
  OnHeap(const OnHeap& other) {
    if (other && reserve()) *get() = *other.get();
  }
  OnHeap& operator=(OnHeap&&) noexcept = default;
  OnHeap& operator=(const OnHeap& other) {
    if (this != &other) *this = OnHeap(other);
    return *this;
  }
  ~OnHeap() = default;

  explicit operator bool() const noexcept { return get() != nullptr; }
  [[nodiscard]] T* get() const noexcept { return one_.get(); }
  T* operator->() const noexcept { return get(); }
  [[nodiscard]] bool reserve() {
    if (!*this) one_ = new_array<T>(1);
    return static_cast<bool>(*this);
  }

 private:
  OwnedArray<T> one_;
};

/// A lookup that drafts together with a draft head or draft model of the engine, in the passes in which that runs. Both
/// drafts become one tree, as in UnionDrafter. An engine that verifies chains only gets one chain: where the first
/// tokens differ, the one that was right more often.
///
///   session.propose(limits);                          // the draft of the lookup
///   ...decide by session.strategy().forecast()...     // HeadControl and BatchHeads do
///   session.strategy().set(tokens of the head);
///   session.propose(limits);                          // both drafts
///
/// HeadedSpeculator and BatchFollower do this. The drafter learns three things. They are kept over all sequences,
/// because they are properties of the engine's head, like the costs that a control learns:
///
///  * the acceptance of the head's tokens by their depth,
///  * the tokens that the head adds to what the lookup's draft has right,
///  * how often the head is right where the first tokens differ, and one of them is right.
///
/// All are kept apart for five ranges of the tokens that the lookup expects of its own draft: text that a lookup finds
/// is easy for a head, and leaves it little to add. Nothing is learned of a head in a pass without it.
///
/// Source: rules were compared on the recordings of EAGLE in SpecDecode-Bench/simulator; see
/// docs/performance/draft-head.md.
///
/// Cost: that of the lookup in a pass without the head, and that of UnionDrafter with it. Memory: 1 KB, and 60 KB from
/// the first draft of the head on. Threads: one at a time; copies are independent.
template <DraftStrategy Lookup = NgramDrafter<>>
class HeadedDrafter : public Lookup {
 public:
  explicit HeadedDrafter(Lookup lookup = Lookup()) : Lookup(std::move(lookup)) {
    for (Rates& rates : rates_) rates.fill(HitRate(Probability::ratio(3, 4)));
    // A lookup that expects a token or more goes first, until the head was right instead.
    std::fill(wins_.begin() + 2, wins_.end(), HitRate(Probability::ratio(15, 32)));
  }
  /// Replaces the lookup, and keeps what is known of the head. Call it before begin().
  HeadedDrafter& operator=(Lookup lookup) {
    clear();
    static_cast<Lookup&>(*this) = std::move(lookup);
    return *this;
  }

  /// Returns what is expected of the head in this pass. Call it after propose() without a draft of the head.
  [[nodiscard]] HeadForecast forecast() const noexcept {
    HeadForecast forecast{.gain = UnitScale::multiply(gains_[class_].mean(), trend_.factor()),
                          .promised = gains_[class_].promised()};
    for (std::size_t depth = 0; depth < forecast.rates.size(); ++depth) forecast.rates[depth] = rate(depth);
    return forecast;
  }
  /// Sets the head's draft for this pass: a chain, with the learned probabilities. Errors: out_of_memory.
  Result<void> set(TokenSpan tokens) {
    std::array<float, HeadForecast::most_tokens> probabilities;  // NOLINT(*-member-init): filled as far as it is read
    const HeadForecast now = forecast();
    const TokenSpan taken = tokens.first(std::min(tokens.size(), probabilities.size()));
    for (std::size_t depth = 0; depth < taken.size(); ++depth)
      probabilities[depth] = static_cast<float>(now.rates[depth].to_double());
    promised_ = now.promise(taken.empty() ? probabilities.size() : taken.size());
    return set_nodes(
        ExternalDrafter::Nodes{.tokens = taken, .probabilities = std::span(probabilities).first(taken.size())});
  }
  /// The same for a draft with probabilities of its own, such as a tree.
  Result<void> set(const ExternalDrafter::Nodes& tree) {
    promised_ = forecast().promise(std::max<std::size_t>(tree.tokens.size(), 1));
    return set_nodes(tree);
  }
  /// Ends a round without feedback(), and removes the head's draft.
  void clear() noexcept {
    drafted_ = merged_ = false;
    promised_ = 0;
    if (both_) both_->head().clear();
  }

  void begin(TokenSpan context) {
    trend_ = {};
    clear();
    if (both_) both_->begin(context);
    Lookup::begin(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    clear();
    Lookup::observe(context, fresh, origin);
  }
  void truncate(TokenSpan context, std::size_t size) {
    clear();
    Lookup::truncate(context, size);
  }
  void rebase(TokenSpan before, TokenSpan context) requires RebasableStrategy<Lookup> {
    clear();
    Lookup::rebase(before, context);
  }
  void propose(TokenSpan context, Draft& draft) {
    drafted_ = true;
    merged_ = both_ && both_->head().size() > 0;
    std::uint64_t expected = 0;
    if (merged_) {
      expected = both_->propose(*this, context, draft, wins_[class_].probability() >= Probability::ratio(1, 2));
    } else {
      Lookup::propose(context, draft);
      for (std::size_t i = 0; i < draft.size(); ++i) expected += draft[i].path_probability.raw();
    }
    class_ = class_of(expected);
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    const bool drafted = std::exchange(drafted_, false);  // a round without propose() tells nothing
    const std::int64_t promised = std::exchange(promised_, 0);
    const bool ran = promised > 0;
    std::size_t found = outcome.accepted.size();
    std::int64_t unsent = 0;
    if (std::exchange(merged_, false) && both_) {
      const std::optional<bool> won = both_->head_won(outcome);
      if (won) wins_[class_].learn(*won);
      unsent = both_->unsent_gain(won);
      found = std::min(found, both_->feedback(*this, context, outcome, [&](const Outcome& own) { learn_rates(own); }));
    } else {
      Lookup::feedback(context, outcome);
    }
    if (!drafted) return;
    const std::int64_t gained = static_cast<std::int64_t>(outcome.accepted.size() - found) + unsent;
    trend_.learn(ran, std::max<std::int64_t>(gained, 0), gains_[class_].mean());
    gains_[class_].learn(ran, gained, promised);
    if (!ran && ++idle_[class_] % 128 == 0)  // rates that keep the head from running become better
      for (HitRate& rate : rates_[class_]) rate.learn(true);
  }
  [[nodiscard]] std::size_t memory_bytes() const requires MeasurableStrategy<Lookup> {
    return Lookup::memory_bytes() + (both_ ? sizeof(*both_.get()) : 0);
  }

 private:
  static constexpr std::size_t classes = 5;
  static constexpr std::size_t depths = 16;
  using Rates = std::array<HitRate, depths>;

  Result<void> set_nodes(const ExternalDrafter::Nodes& tree) {
    if (!both_.reserve())
      return Error{ErrorCode::out_of_memory, "there is no memory for a draft of the head: only the lookup drafts",
                   sizeof(*both_.get()), 0};
    return both_->head().set(tree);
  }
  /// Returns the index of the range of an expected number of accepted tokens, in ProbabilityScale.
  static std::size_t class_of(std::uint64_t expected) noexcept {
    constexpr std::uint64_t one = Probability::scale;
    constexpr std::array<std::uint64_t, classes - 1> bounds = {one / 2, one, 2 * one, 4 * one};
    return static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), expected) - bounds.begin());
  }
  [[nodiscard]] Probability rate(std::size_t depth) const noexcept {
    const Probability learned = rates_[class_][std::min(depth, depths - 1)].probability();
    if (depth > 0) return learned;
    return Probability::from_raw(static_cast<std::uint32_t>(
        UnitScale::multiply(std::int64_t{learned.raw()}, std::min(trend_.factor(), UnitScale::one))));
  }
  /// Learns from the tokens that the target has tested, up to the first branch.
  void learn_rates(const Outcome& own) noexcept {
    std::size_t chain = 0;
    while (chain < own.draft.size() && own.draft[chain].parent == static_cast<NodeIndex>(chain) - 1) ++chain;
    for_each_tested(own, [&](std::size_t i, bool hit) {
      if (i < chain) rates_[class_][std::min(i, depths - 1)].learn(hit);
    });
  }

  std::array<Rates, classes> rates_;
  std::array<HeadGain, classes> gains_;
  std::array<HitRate, classes> wins_;  // of the head, where the first tokens differ
  HeadTrend trend_;
  std::array<std::uint32_t, classes> idle_{};  // passes in which the head did not run
  std::size_t class_ = 0;                      // of the last draft
  bool drafted_ = false;                       // propose() was called in this round
  std::int64_t promised_ = 0;                  // by the rates of the head's draft in this round; 0: it has not run
  bool merged_ = false;                        // the last draft has nodes of the head
  OnHeap<HeadAndLookup<Lookup>> both_;         // from the first draft of the head on
};
static_assert(DraftStrategy<HeadedDrafter<>>);

}}}  // namespace reprise::detail
