// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>

#include "common/any_strategy.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::any_strategy_allocation_test {
namespace {

/// Always drafts one token.
struct Seven : archetype::Strategy {
  void propose(TokenSpan, Draft& draft) { draft.extend({.token = 7}); }
};

std::size_t drafted_by(AnyStrategy& strategy) {
  std::array<DraftNode, 4> storage;
  Draft draft(storage, {});
  strategy.propose({}, draft);
  return draft.size();
}

// Volatile pointers keep these calls opaque. Otherwise a compiler that sees an object made and destroyed may omit its
// new-expression (clang does), and there is no allocation to count or to fail.
AnyStrategy (*volatile make)() = [] { return AnyStrategy(Seven()); };
AnyStrategy (*volatile copy_of)(const AnyStrategy&) = [](const AnyStrategy& strategy) { return strategy; };

/// Returns the result of `build` with its first allocation failing.
template <class Build>
AnyStrategy without_memory(Build&& build) {
  const testing::AllocationWatch watch(1);
  return build();
}

TEST(AnyStrategyWithoutMemory, DraftsNothing) {
  AnyStrategy strategy = without_memory(make);
  EXPECT_EQ(drafted_by(strategy), 0U);
  strategy.begin({});
  strategy.truncate({}, 0);
  EXPECT_EQ(strategy.memory_bytes(), 0U);
}

TEST(AnyStrategyWithoutMemory, ACopyDraftsNothingAndTheOriginalGoesOn) {
  AnyStrategy strategy = Seven();
  AnyStrategy copy = without_memory([&] { return copy_of(strategy); });
  EXPECT_EQ(drafted_by(copy), 0U);
  EXPECT_EQ(drafted_by(strategy), 1U);
  copy = strategy;
  EXPECT_EQ(drafted_by(copy), 1U) << "with memory it works";
}

TEST(AnyStrategyWithMemory, AllocatesOnceForEachCopyAndNeverForACall) {
  const testing::AllocationWatch watch;
  AnyStrategy strategy = make();
  AnyStrategy copy = copy_of(strategy);
  EXPECT_EQ(watch.allocations(), 2U);
  AnyStrategy moved = std::move(copy);
  EXPECT_EQ(drafted_by(moved), 1U);
  moved.begin({});
  moved.feedback({}, {});
  EXPECT_EQ(watch.allocations(), 2U);
}

}  // namespace
}  // namespace reprise::any_strategy_allocation_test
