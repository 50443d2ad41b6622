// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "reprise/core/strategy.hpp"

namespace reprise::inline v0::detail {

/// The base of the combinators FirstMatch, UnionDrafter and BestOf. It holds several strategies that follow the same
/// sequence, and forwards the calls that are the same for all of them.
template <DraftStrategy... Strategies>
class Members {
  static_assert(sizeof...(Strategies) > 0, "a combinator needs at least one strategy");

 public:
  static constexpr std::size_t member_count = sizeof...(Strategies);

  void begin(TokenSpan context) {
    for_each([&](auto& member) { member.begin(context); });
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    for_each([&](auto& member) { member.observe(context, fresh, origin); });
  }
  void truncate(TokenSpan context, std::size_t size) {
    for_each([&](auto& member) { member.truncate(context, size); });
  }
  /// Calls begin() for members that cannot rebase.
  void rebase(TokenSpan before, TokenSpan context) requires(RebasableStrategy<Strategies> || ...) {
    for_each([&]<class Member>(Member& member) {
      if constexpr (RebasableStrategy<Member>)
        member.rebase(before, context);
      else
        member.begin(context);
    });
  }
  void reserve(std::size_t max_context) {
    for_each([&]<class Member>(Member& member) {
      if constexpr (ReservableStrategy<Member>) member.reserve(max_context);
    });
  }
  /// Returns the heap bytes of the members that report them.
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    std::apply([&](const auto&... members) { ((bytes += bytes_of(members)), ...); }, members_);
    return bytes;
  }
  /// Returns the largest top_k_wanted() of the members.
  [[nodiscard]] std::size_t top_k_wanted() const requires(TopKLearner<Strategies> || ...) {
    std::size_t most = 0;
    std::apply([&](const auto&... members) { ((most = std::max(most, wanted_by(members))), ...); }, members_);
    return most;
  }
  void learn_row(TokenSpan context, TokenSpan likeliest) requires(RowLearner<Strategies> || ...) {
    for_each([&]<class Member>(Member& member) {
      if constexpr (RowLearner<Member>) member.learn_row(context, likeliest);
    });
  }

  /// Returns the i-th member, in the order of the template arguments.
  template <std::size_t i>
  [[nodiscard]] auto& member() noexcept {
    return std::get<i>(members_);
  }
  template <std::size_t i>
  [[nodiscard]] const auto& member() const noexcept {
    return std::get<i>(members_);
  }

 protected:
  explicit Members(Strategies... strategies) : members_(std::move(strategies)...) {}

  /// Calls visit(member, i) for each member in order, starting with i = 0.
  template <class Visit>
  void for_each_member(Visit visit) {
    std::size_t i = 0;
    for_each([&](auto& member) { visit(member, i++); });
  }

 private:
  template <class Visit>
  void for_each(Visit&& visit) {
    std::apply([&](auto&... members) { (visit(members), ...); }, members_);
  }
  template <class Member>
  static std::size_t bytes_of(const Member& member) {
    if constexpr (MeasurableStrategy<Member>)
      return member.memory_bytes();
    else
      return 0;
  }
  template <class Member>
  static std::size_t wanted_by(const Member& member) {
    if constexpr (TopKLearner<Member>)
      return member.top_k_wanted();
    else
      return 0;
  }

  std::tuple<Strategies...> members_;
};

}  // namespace reprise::detail
