// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/extras/repetition_gate.hpp"
#include "reprise/extras/token_table_drafter.hpp"
#include "reprise/testing/check_strategy.hpp"
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
  const AllocationWatch watch(1);
  const auto table = TokenTable::make();
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(table.error().value, TokenTableOptions{}.bytes);
}

template <class Make>
void expect_none_in_propose(Make make) {
  testing::StrategyCheck check;
  check.allocations = testing::allocations_so_far;
  const testing::Report report = testing::check_strategy(make, check);
  EXPECT_EQ(report.verdict(), testing::Verdict::exact) << report.to_string();
  EXPECT_EQ(report.find("propose() does not allocate")->verdict, testing::Verdict::exact);
}

TEST(TokenTableMemory, IsNotAskedForInPropose) {
  TokenTable table = TokenTable::make({.ngram = 2, .bytes = 8192}).value();
  table.learn(testing::make_stream(testing::Stream::random_small, 300, 1));
  expect_none_in_propose([&] { return TokenTableDrafter(&table); });
  expect_none_in_propose([&] { return RepetitionGate(TokenTableDrafter(&table)); });
}

TEST(TokenTableMemory, IsNotAskedForInObserveAfterReserve) {
  TokenTable table = TokenTable::make({.ngram = 2, .bytes = 8192}).value();
  const Tokens text = testing::make_stream(testing::Stream::all_distinct, 4000, 1);
  RepetitionGate drafter(TokenTableDrafter(&table, {.learn_into = &table}));
  drafter.begin(TokenSpan(text).first(8));
  drafter.reserve(text.size());
  const AllocationWatch watch;
  for (std::size_t size = 12; size <= text.size(); size += 4)
    drafter.observe(TokenSpan(text).first(size), 4, Origin::prompt);
  EXPECT_EQ(watch.allocations(), 0U);
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

TEST(TokenTableMemory, MayEndAndComeBackWithTheNextSequence) {
  const Tokens text = testing::make_stream(testing::Stream::trace_like, 700, 3, 20);
  TokenTable table = TokenTable::make({.ngram = 3, .bytes = 1 << 16}).value();
  table.learn(text);
  const RepetitionGate fresh(TokenTableDrafter(&table, {.learn_into = &table}));
  auto expected = fresh;
  expected.begin(text);
  const auto wanted = drafted_by(expected, text);
  ASSERT_NE(wanted[0], 0);
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    for (const std::size_t failures : {1U, 3U, 100'000U}) {
      auto strategy = fresh;
      {
        const AllocationWatch watch(fail_at, failures);
        strategy.begin(TokenSpan(text).first(50));
        for (std::size_t size = 55; size <= 600; size += 5) {
          const TokenSpan context = TokenSpan(text).first(size);
          strategy.observe(context, 5, Origin::output);
          drafted_by(strategy, context);
          strategy.feedback(context, {});
        }
        failed = watch.allocations() >= fail_at;
        auto copy = strategy;
        const TokenSpan context = TokenSpan(text).first(600);
        drafted_by(copy, context);
        copy.truncate(context, 40);
        copy.observe(text, text.size() - 40, Origin::prompt);
        drafted_by(copy, text);
        strategy.truncate(context, 200);
        drafted_by(strategy, context.first(200));
      }
      strategy.begin(text);
      EXPECT_EQ(drafted_by(strategy, text), wanted) << "allocation " << fail_at << " failed";
    }
  }
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
