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

/// Runs 100 rounds in which propose() must not allocate. Returns the number of proposed nodes.
template <class Strategy>
std::size_t propose_without_allocating(Lent<Strategy>& drafter, const RankedText& target) {
  std::vector<DraftNode> storage(64);
  std::size_t drafted = 0;
  for (int i = 0; i < 100; ++i) {
    run_round(drafter, target);
    Draft draft(storage, {});
    const AllocationWatch proposing;
    drafter.propose(draft);
    EXPECT_EQ(proposing.allocations(), 0U);
    drafted += draft.size();
  }
  return drafted;
}

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

}  // namespace reprise::testing
