// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "reprise_methods/token_table_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/streams.hpp"

namespace reprise::token_table_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using Tokens = std::vector<Token>;

TEST(TokenTableMemory, IsAskedForOnceWhenItIsMade) {
  const Tokens text = testing::make_stream(testing::Stream::zipf, 5000, 1);
  const AllocationWatch watch;
  auto table = TokenTable::make({.bytes = 8192});
  EXPECT_EQ(watch.allocations(), 1U);
  table->learn(text);
  EXPECT_FALSE(table->find(TokenSpan(text).first(3)));
  table->clear();
  EXPECT_EQ(watch.allocations(), 1U);
}

TEST(TokenTableMemory, MayNotBeThere) {
  // The last one is the largest that is not refused.
  for (const std::size_t bytes : {TokenTableOptions{}.bytes, std::size_t{1} << 37}) {
    const AllocationWatch watch(1);
    const auto table = TokenTable::make({.bytes = bytes});
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(table.error().value, bytes);
  }
}

/// Returns the drafted tokens, and expects no allocation.
template <class Strategy>
std::array<Token, 32> drafted_by(Strategy& strategy, TokenSpan context) {
  std::array<DraftNode, 32> storage;
  Draft draft(storage, {});
  strategy.propose(context, draft);
  std::array<Token, 32> tokens{};
  for (std::size_t i = 0; i < draft.size(); ++i) tokens[i] = draft[i].token;
  return tokens;
}

TEST(TokenTableMemory, IsNeverAskedForByTheDrafter) {
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8};
  TokenTable table = TokenTable::make({.ngram = 3, .bytes = 1 << 16}).value();
  table.learn(text);
  Tokens context = {1, 2, 3};
  TokenTableDrafter drafter(&table);
  drafter.begin(context);
  const auto before = drafted_by(drafter, context);
  ASSERT_EQ(before[0], 4);
  context.insert(context.end(), 1000, 9);
  context.insert(context.end(), {1, 2, 3});
  {
    const AllocationWatch watch(1, 100'000);
    drafter.observe(TokenSpan(context).first(1003), 1000, Origin::output);
    drafter.observe(context, 3, Origin::output);
    EXPECT_EQ(drafted_by(drafter, context), before) << "no token between can be missing";
    drafter.truncate(context, 3);
    EXPECT_EQ(drafted_by(drafter, TokenSpan(context).first(3)), before);
    EXPECT_EQ(watch.allocations(), 0U);
  }
}

}  // namespace
}  // namespace reprise::token_table_drafter_allocation_test
