// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/strategy.hpp"

namespace reprise {

/// Holds any strategy, for programs that choose at run time. Cost: one indirect call per function call; one allocation
/// to take a strategy and one per copy. A default-constructed or moved-from AnyStrategy drafts nothing, and neither
/// does one whose allocation failed.
class AnyStrategy {
  /// True if S is another strategy type. Asking that of AnyStrategy itself would be circular.
  template <class S>
  static constexpr bool holds = [] {
    if constexpr (std::same_as<S, AnyStrategy>)
      return false;
    else
      return detail::StrategyFunctions<S>;
  }();

 public:
  AnyStrategy() noexcept = default;
  /// S may be any strategy type.
  template <class S>
  requires(holds<std::remove_cvref_t<S>>)
      AnyStrategy(S&& strategy)  // NOLINT(google-explicit-constructor, bugprone-forwarding-reference-overload)
      : object_(new (std::nothrow) std::remove_cvref_t<S>(std::forward<S>(strategy))),
        calls_(object_ == nullptr ? nullptr : &calls_for<std::remove_cvref_t<S>>) {}
  AnyStrategy(const AnyStrategy& other)
      : object_(other.calls_ == nullptr ? nullptr : other.calls_->clone(other.object_)),
        calls_(object_ == nullptr ? nullptr : other.calls_) {}
  AnyStrategy(AnyStrategy&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), calls_(std::exchange(other.calls_, nullptr)) {}
  AnyStrategy& operator=(AnyStrategy other) noexcept {
    std::swap(object_, other.object_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~AnyStrategy() {
    if (calls_ != nullptr) calls_->destroy(object_);
  }

  /// Returns the held strategy, or nullptr if there is none or its type is not S.
  template <class S>
  [[nodiscard]] const S* get() const noexcept REPRISE_LIFETIMEBOUND {
    return calls_ != nullptr && calls_->type == &type_of<S> ? static_cast<const S*>(object_) : nullptr;
  }
  template <class S>
  [[nodiscard]] S* get() noexcept REPRISE_LIFETIMEBOUND {
    return calls_ != nullptr && calls_->type == &type_of<S> ? static_cast<S*>(object_) : nullptr;
  }

  void begin(TokenSpan context) {
    if (calls_ != nullptr) calls_->begin(object_, context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    if (calls_ != nullptr) calls_->observe(object_, context, fresh, origin);
  }
  void propose(TokenSpan context, Draft& draft) {
    if (calls_ != nullptr) calls_->propose(object_, context, draft);
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    if (calls_ != nullptr) calls_->feedback(object_, context, outcome);
  }
  void truncate(TokenSpan context, std::size_t size) {
    if (calls_ != nullptr) calls_->truncate(object_, context, size);
  }
  /// Calls begin() if the strategy cannot rebase.
  void rebase(TokenSpan before, TokenSpan context) {
    if (calls_ != nullptr) calls_->rebase(object_, before, context);
  }
  void reserve(std::size_t max_context) {
    if (calls_ != nullptr) calls_->reserve(object_, max_context);
  }
  /// Returns top_k_wanted() of the strategy, or 0 if the strategy is not a TopKLearner.
  [[nodiscard]] std::size_t top_k_wanted() const { return calls_ == nullptr ? 0 : calls_->top_k_wanted(object_); }
  /// Has no effect if the strategy is not a RowLearner.
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    if (calls_ != nullptr) calls_->learn_row(object_, context, likeliest);
  }
  /// Returns the distribution from which a node of a sampled draft was drawn. If the strategy does not provide it, the
  /// span is empty, and the token counts as drawn with probability one.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const REPRISE_LIFETIMEBOUND {
    return calls_ == nullptr ? std::span<const float>() : calls_->distribution(object_, node);
  }
  /// Returns the heap bytes that the strategy reports, without the strategy object itself; 0 if it does not report
  /// them.
  [[nodiscard]] std::size_t memory_bytes() const { return calls_ == nullptr ? 0 : calls_->memory_bytes(object_); }

 private:
  struct Calls {
    void (*begin)(void*, TokenSpan);
    void (*observe)(void*, TokenSpan, std::size_t, Origin);
    void (*propose)(void*, TokenSpan, Draft&);
    void (*feedback)(void*, TokenSpan, const Outcome&);
    void (*truncate)(void*, TokenSpan, std::size_t);
    void (*rebase)(void*, TokenSpan, TokenSpan);
    void (*reserve)(void*, std::size_t);
    std::size_t (*top_k_wanted)(const void*);
    void (*learn_row)(void*, TokenSpan, TokenSpan);
    std::span<const float> (*distribution)(const void*, NodeIndex);
    std::size_t (*memory_bytes)(const void*);
    void* (*clone)(const void*);
    void (*destroy)(void*);
    const char* type;
  };

  /// The address of this variable identifies the type S. It is not constant, because linkers may merge equal constants.
  template <class S>
  static inline char type_of = 0;

  template <class S>
  static constexpr Calls calls_for = {
      [](void* s, TokenSpan context) { static_cast<S*>(s)->begin(context); },
      [](void* s, TokenSpan context, std::size_t fresh, Origin origin) {
        static_cast<S*>(s)->observe(context, fresh, origin);
      },
      [](void* s, TokenSpan context, Draft& draft) { static_cast<S*>(s)->propose(context, draft); },
      [](void* s, TokenSpan context, const Outcome& outcome) { static_cast<S*>(s)->feedback(context, outcome); },
      [](void* s, TokenSpan context, std::size_t size) { static_cast<S*>(s)->truncate(context, size); },
      [](void* s, TokenSpan before, TokenSpan context) {
        if constexpr (RebasableStrategy<S>)
          static_cast<S*>(s)->rebase(before, context);
        else
          static_cast<S*>(s)->begin(context);
      },
      [](void* s, std::size_t max_context) {
        if constexpr (ReservableStrategy<S>) static_cast<S*>(s)->reserve(max_context);
      },
      [](const void* s) -> std::size_t {
        if constexpr (TopKLearner<S>) return static_cast<const S*>(s)->top_k_wanted();
        return 0;
      },
      [](void* s, TokenSpan context, TokenSpan likeliest) {
        if constexpr (RowLearner<S>) static_cast<S*>(s)->learn_row(context, likeliest);
      },
      [](const void* s, NodeIndex node) -> std::span<const float> {
        if constexpr (DistributionStrategy<S>) return static_cast<const S*>(s)->distribution(node);
        return {};
      },
      [](const void* s) -> std::size_t {
        if constexpr (MeasurableStrategy<S>) return static_cast<const S*>(s)->memory_bytes();
        return 0;
      },
      [](const void* s) -> void* { return new (std::nothrow) S(*static_cast<const S*>(s)); },
      [](void* s) { delete static_cast<S*>(s); },
      &type_of<S>,
  };

  void* object_ = nullptr;
  const Calls* calls_ = nullptr;
};
static_assert(DraftStrategy<AnyStrategy> && TopKLearner<AnyStrategy> && RowLearner<AnyStrategy> &&
              DistributionStrategy<AnyStrategy>);
static_assert(RebasableStrategy<AnyStrategy>);

}  // namespace reprise
