// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>

#include "reprise/draft/any_strategy.hpp"
#include "support/allocation_counter.hpp"

namespace reprise {
namespace {

/// Drafts one token, always.
struct Seven {
  void begin(TokenSpan) {}
  void observe(TokenSpan, Origin) {}
  void propose(const DraftBudget&, Draft& draft) { draft.extend({.token = 7}); }
  void feedback(const Outcome&) {}
  void truncate(std::size_t) {}
};

std::size_t drafted_by(AnyStrategy& strategy) {
  std::array<DraftNode, 4> storage;
  Draft draft(storage);
  strategy.propose({}, draft);
  return draft.size();
}

template <class Make>
AnyStrategy without_memory(Make&& make) {
  const testing::AllocationWatch watch(1);
  return make();
}

TEST(AnyStrategyWithoutMemory, DraftsNothing) {
  // Behind a volatile pointer, or clang sees both ends of the allocation and leaves it out.
  AnyStrategy (*volatile make)() = [] { return AnyStrategy(Seven()); };
  AnyStrategy strategy = without_memory(make);
  EXPECT_EQ(drafted_by(strategy), 0U);
  strategy.begin({});
  strategy.truncate(0);
  EXPECT_EQ(strategy.memory_bytes(), 0U);
}

TEST(AnyStrategyWithoutMemory, ACopyDraftsNothingAndTheOriginalGoesOn) {
  AnyStrategy strategy = Seven();
  AnyStrategy copy = without_memory([&] { return AnyStrategy(strategy); });
  EXPECT_EQ(drafted_by(copy), 0U);
  EXPECT_EQ(drafted_by(strategy), 1U);
  copy = strategy;
  EXPECT_EQ(drafted_by(copy), 1U) << "with memory it works";
}

TEST(AnyStrategyWithMemory, AllocatesAtMostOnceForEachCopyAndNeverForACall) {
  const testing::AllocationWatch watch;
  AnyStrategy strategy = Seven();
  AnyStrategy copy = strategy;
  const std::size_t allocations = watch.allocations();
  EXPECT_LE(allocations, 2U) << "fewer where the compiler leaves a new-expression out, as clang may";
  AnyStrategy moved = std::move(copy);
  EXPECT_EQ(drafted_by(moved), 1U);
  moved.begin({});
  moved.feedback({});
  EXPECT_EQ(watch.allocations(), allocations);
}

}  // namespace
}  // namespace reprise
