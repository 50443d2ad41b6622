// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/detail/members.hpp"

namespace reprise::inline v0 {

/// Uses the draft of the first strategy that proposes any node; propose() of later strategies is not called. Suits
/// strategies that are expensive and whose order of quality is known. member<i>() returns the i-th strategy.
///
/// The draft is passed on unchanged. A sampled draft keeps its distributions. Rejection sampling stays unbiased: the
/// choice depends only on whether members propose any node, not on the tokens that they draw. Every member gets
/// feedback in every committed round. If a member drafted nothing or its propose() was not called, its outcome has an
/// empty draft. For a TopKLearner, the draft may instead hold the sent nodes, marked as padding.
///
/// Cost: that of the members whose propose() is called. Size: 3 KB, or 32 KB if a member is a TopKLearner; no
/// allocation of its own. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class FirstMatch : public detail::Members<Strategies...> {
 public:
  static constexpr bool calibrated = (CalibratedStrategy<Strategies> && ...);  ///< see CalibratedStrategy

  explicit FirstMatch(Strategies... strategies) : detail::Members<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    chosen_ = none;
    this->drafted_ = true;
    bool left_out = false;
    bool held_back = false;
    bool malformed = false;
    this->for_each_member([&](auto& member, std::size_t i) {
      if (chosen_ != none) return;
      draft.clear();
      member.propose(context, draft);
      if (!draft.empty()) chosen_ = i;
      left_out = left_out || draft.left_out();
      held_back = held_back || draft.held_back();
      malformed = malformed || draft.malformed();
    });
    if (left_out) draft.leave_out();
    if (held_back) draft.hold_back();
    if (malformed) draft.mark_malformed();
  }

  void feedback(TokenSpan context, const Outcome& outcome) {
    if (!std::exchange(this->drafted_, false)) chosen_ = none;
    this->for_each_member([&]<class Member>(Member& member, std::size_t i) {
      member.feedback(context,
                      i == chosen_ ? outcome : outcome_.translate({}, {}, false, outcome, TopKLearner<Member>));
    });
  }

  /// Returns the distribution from which a node of the draft was drawn. Returns an empty span if the member that
  /// proposed the draft provides none.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const
      requires(DistributionStrategy<Strategies> || ...) {
    return this->drafted_ ? distribution_of<0>(node) : std::span<const float>();
  }

 private:
  static constexpr std::size_t none = sizeof...(Strategies);
  static constexpr std::size_t rows = 256;

  template <std::size_t i>
  [[nodiscard]] std::span<const float> distribution_of(NodeIndex node) const {
    if constexpr (i < sizeof...(Strategies)) {
      using Member = std::remove_cvref_t<decltype(this->template member<i>())>;
      if (chosen_ != i) return distribution_of<i + 1>(node);
      if constexpr (DistributionStrategy<Member>) return this->template member<i>().distribution(node);
    }
    return {};
  }

  std::size_t chosen_ = none;
  detail::MemberOutcome<1, rows, (TopKLearner<Strategies> || ...)> outcome_;
};

}  // namespace reprise
