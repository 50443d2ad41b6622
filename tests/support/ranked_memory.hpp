// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Tests of the memory of drafters that learn from top-k rows. All keep the same promises, tested by counting
/// allocations and by making some fail. For programs that link allocation_counter.cpp.

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "support/allocation_counter.hpp"
#include "support/lent_context.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::testing {

/// Makes each allocation fail in turn, with a few after it, while a drafter begins and observes `turns`. The drafter
/// may then draft less; after the next begin() it must draft as usual.
template <class Strategy>
void expect_recovery_from_failures(const RankedText& target, const std::vector<std::vector<Token>>& turns) {
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    Lent<Strategy> drafter;
    drafter.reserve(1000);  // so that only the drafter allocates
    {
      const AllocationWatch watch(fail_at, fail_at % 3 + 1);
      drafter.begin(TokenSpan(turns.front()).first(20));
      for (const std::vector<Token>& turn : turns) drafter.observe(turn, Origin::prompt);
      failed = watch.allocations() >= fail_at;
    }
    for (int i = 0; i < 30; ++i) run_round(drafter, target);
    drafter.begin(turns.front());
    std::size_t accepted = 0;
    for (int i = 0; i < 100; ++i) accepted += run_round(drafter, target).accepted.size();
    EXPECT_GT(accepted, 100U) << "allocation " << fail_at << " failed";
  }
}

/// Makes each allocation fail in turn while a drafter is copied. The copy must continue with the memory it has.
template <class Strategy>
void expect_usable_copies(const RankedText& target) {
  Lent<Strategy> drafter;
  drafter.begin(std::vector<Token>{1, 2, 3});
  for (int i = 0; i < 50; ++i) run_round(drafter, target);
  for_each_copy_without_memory(drafter.strategy(), [&](const Strategy& made) {
    Lent<Strategy> copy(made);
    copy.observe(drafter.context());
    for (int i = 0; i < 20; ++i) run_round(copy, target);
    copy.truncate(2);
    static_cast<void>(copy.propose({}, 8));
  });
}

/// A suite for the drafter `Case::Drafter`, whose targets have `Case::vocabulary` tokens.
template <class Case>
class RankedMemory : public ::testing::Test {};
TYPED_TEST_SUITE_P(RankedMemory);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RankedMemory);  // some programs use only the functions above

TYPED_TEST_P(RankedMemory, IsNotAskedForInProposeAndFeedback) {
  const RankedText target{.order = 2, .vocabulary = 10 * TypeParam::vocabulary};
  Lent<typename TypeParam::Drafter> drafter;
  drafter.begin(std::vector<Token>{1, 2, 3});
  std::vector<DraftNode> storage(64);
  std::size_t drafted = 0;
  for (int i = 0; i < 100; ++i) {
    run_round(drafter, target);
    Draft draft(storage, {});
    drafter.propose(draft);
    drafted += draft.size();
    std::vector<NodeIndex> all;
    for (std::size_t node = 0; node < draft.size(); ++node) all.push_back(static_cast<NodeIndex>(node));
    const auto revealed = revealed_by(target, drafter.context(), draft.view(), all, 8);
    const AllocationWatch watch;
    drafter.propose(draft);
    drafter.feedback({draft.view(), all, {}, 1, Cut::none, revealed});
    EXPECT_EQ(watch.allocations(), 0U);
  }
  EXPECT_GT(drafted, 200U);
}

TYPED_TEST_P(RankedMemory, IsNotAskedForInFeedbackByTokensThatAreNew) {
  Lent<typename TypeParam::Drafter> drafter;
  drafter.begin(std::vector<Token>{1, 2, 3});
  const DraftNode node{.token = 70'000};
  const NodeIndex sent = 0;
  const Outcome::RankedToken revealed[] = {{anchor_parent, 0, 90'000}, {0, 0, 80'000}};
  const AllocationWatch watch;
  drafter.feedback({DraftView({&node, 1}, DraftKind::ordered), {&sent, 1}, {}, 1, Cut::none, revealed});
  EXPECT_EQ(watch.allocations(), 0U);
}

TYPED_TEST_P(RankedMemory, MayRunOutAndThenTheDrafterKnowsLessUntilTheNextSequence) {
  expect_recovery_from_failures<typename TypeParam::Drafter>({.order = 1, .vocabulary = TypeParam::vocabulary},
                                                             {std::vector<Token>(300, 4), {TypeParam::vocabulary - 1}});
}

TYPED_TEST_P(RankedMemory, MayRunOutInACopy) {
  expect_usable_copies<typename TypeParam::Drafter>({.order = 1, .vocabulary = TypeParam::vocabulary});
}

REGISTER_TYPED_TEST_SUITE_P(RankedMemory, IsNotAskedForInProposeAndFeedback, IsNotAskedForInFeedbackByTokensThatAreNew,
                            MayRunOutAndThenTheDrafterKnowsLessUntilTheNextSequence, MayRunOutInACopy);

/// Expects that a drafter that has memory for 500 tokens observes 400 and is truncated without asking for more.
template <class Strategy>
void expect_none_where_it_was_reserved(Strategy strategy) {
  Lent<Strategy> drafter{std::move(strategy)};
  drafter.reserve(500);
  drafter.begin(std::vector<Token>{1, 2});
  const std::vector<Token> more(400, 999);
  const AllocationWatch watch;
  drafter.observe(more, Origin::output);
  drafter.truncate(100);
  EXPECT_EQ(watch.allocations(), 0U);
}

}  // namespace reprise::testing
