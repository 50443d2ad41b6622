// SPDX-License-Identifier: Apache-2.0
// The promises of the rolling-hash index alone; lookup_index.test.cpp tests the shared contract.

#include "reprise/index/rolling_hash.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/index_queries.hpp"
#include "support/streams.hpp"

namespace rolling_hash_test {
namespace {

using reprise::IndexOptions;
using reprise::Match;
using reprise::MatchLimits;
using reprise::RollingHashIndex;
using reprise::Token;
using reprise::testing::index_of;
using reprise::testing::make_stream;
using reprise::testing::matches;
using reprise::testing::Stream;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(RollingHashIndex, FindsNothingForOrdersItWasNotMadeFor) {
  const auto index = index_of<RollingHashIndex>({.orders = {1, 3}}, {1, 2, 3, 1, 2, 3});
  EXPECT_THAT(matches(index, {.shortest = 1}), ElementsAre(Match{3, 3}));
  EXPECT_THAT(matches(index, {.shortest = 2}), IsEmpty());
  EXPECT_THAT(matches(index, {.shortest = 3}), ElementsAre(Match{3, 3}));
}

TEST(RollingHashIndex, WithoutAnyOrderItHoldsTheTokensAndFindsNothing) {
  const auto index = index_of<RollingHashIndex>({.orders = {}}, {1, 1});
  EXPECT_EQ(index.tokens().size(), 2u);
  EXPECT_THAT(matches(index, {}), IsEmpty());
}

TEST(RollingHashIndex, FindsTheEarliestOnlyWhenMadeForIt) {
  const auto index = index_of<RollingHashIndex>({.earliest = false}, {1, 1, 1});
  EXPECT_THAT(matches(index, {.order = MatchLimits::Order::earliest}), IsEmpty());
}

TEST(RollingHashIndex, TakesAtMostFortyBytesATokenOnTextThatRepeats) {
  const std::vector<Token> tokens = make_stream(Stream::trace_like, 200000, 1, 50000);
  RollingHashIndex at_once;
  at_once.append(tokens);
  EXPECT_LE(at_once.memory_bytes(), 40 * tokens.size());
  RollingHashIndex one_by_one;
  for (const Token token : tokens) one_by_one.append({&token, 1});
  EXPECT_LE(one_by_one.memory_bytes(), 40 * tokens.size());
}

TEST(RollingHashIndex, TakesAtMostThirtySevenBytesATokenWhenReserved) {
  RollingHashIndex index;
  ASSERT_TRUE(index.reserve(100000));
  EXPECT_LE(index.memory_bytes(), 37u * 100000u);
}

std::size_t indexed_until_full(RollingHashIndex& index) {
  for (Token token = 1000; !index.exhausted(); ++token) index.append({&token, 1});
  return index.tokens().size();
}

TEST(RollingHashIndex, HoldsAsMuchUnderACeilingWhateverItHeldBefore) {
  IndexOptions options;
  options.max_bytes = 1 << 18;
  RollingHashIndex fresh(options);
  const std::size_t tokens = indexed_until_full(fresh);
  EXPECT_LE(fresh.memory_bytes(), options.max_bytes);

  RollingHashIndex used(options);
  const std::vector<Token> repeated(tokens, 5);
  used.append(repeated);
  used.clear();
  EXPECT_EQ(indexed_until_full(used), tokens);
}

TEST(RollingHashIndex, RefusesAReservationOverTheCeilingBeforeItSpendsAnything) {
  IndexOptions options;
  options.max_bytes = 1 << 18;
  RollingHashIndex fresh(options);
  RollingHashIndex greedy(options);
  EXPECT_FALSE(greedy.reserve(1 << 15));
  EXPECT_EQ(greedy.memory_bytes(), 0u);
  EXPECT_EQ(indexed_until_full(greedy), indexed_until_full(fresh));
}

}  // namespace
}  // namespace rolling_hash_test
