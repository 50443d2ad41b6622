// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/index/detail/token_counts.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::token_counts_allocation_test {
namespace {

using detail::TokenCounts;
using testing::AllocationWatch;

// A failed growth is tried again with the smallest sufficient size. A token is lost only if both allocations fail.
constexpr std::size_t always = 1000;

TEST(TokenCountsWithoutMemory, CountNothingAtFirstAndGoOnWhenThereIsMemory) {
  TokenCounts counts;
  {
    const AllocationWatch watch(1, always);
    counts.add(3);
  }
  EXPECT_EQ(counts.count(3), 0U);
  EXPECT_EQ(counts.total(), 0U);
  EXPECT_TRUE(counts.frequent().empty());
  counts.add(3);
  EXPECT_EQ(counts.count(3), 1U);
}

TEST(TokenCountsWithoutMemory, CountKnownTokensOnly) {
  TokenCounts counts;
  Token known = 0;
  // Adds tokens until the next one makes the table grow.
  for (std::size_t grown = 0; grown == 0; ++known) {
    TokenCounts copy = counts;
    const AllocationWatch watch;
    copy.add(known);
    grown = known == 0 ? 0 : watch.allocations();
    if (grown == 0) counts.add(known);
  }
  --known;
  {
    const AllocationWatch watch(1, always);
    counts.add(known);
    counts.add(0);
  }
  EXPECT_EQ(counts.count(known), 0U);
  EXPECT_EQ(counts.count(0), 2U);
  EXPECT_EQ(counts.total(), static_cast<std::uint64_t>(known) + 1);
  counts.remove(std::vector<Token>{0, known});
  EXPECT_EQ(counts.count(0), 1U);
  EXPECT_EQ(counts.total(), static_cast<std::uint64_t>(known));
  counts.add(known);
  EXPECT_EQ(counts.count(known), 1U);
}

TEST(TokenCountsWithoutMemory, SurviveACopyThatGotNone) {
  TokenCounts counts;
  for (Token token = 0; token < 200; ++token) counts.add(token % 60);
  const auto copy_without = [&] {
    const AllocationWatch watch(1, always);
    return TokenCounts(counts);
  };
  TokenCounts copy = copy_without();
  for (Token token = 0; token < 500; ++token) copy.add(token);
  copy.remove(std::vector<Token>{1, 2, 3, 900});
  EXPECT_GE(copy.frequent().size(), 1U);
  copy.clear();
  for (Token token = 0; token < 500; ++token) copy.add(token % 7);
  EXPECT_EQ(copy.total(), 500U);
  EXPECT_EQ(copy.count(0), 72U);
  EXPECT_EQ(copy.frequent().size(), 7U);
}

TEST(TokenCountsWithMemory, AddNothingToTheHeapAfterReserve) {
  TokenCounts counts;
  ASSERT_TRUE(counts.reserve(1000));
  const AllocationWatch watch;
  for (Token token = 0; token < 1000; ++token) counts.add(token);
  counts.clear();
  for (Token token = 0; token < 1000; ++token) counts.add(-token);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(TokenCountsWithoutMemory, ReserveSaysSo) {
  TokenCounts counts;
  bool done = true;
  {
    const AllocationWatch watch(1, always);
    done = counts.reserve(1000).has_value();
  }
  EXPECT_FALSE(done);
  EXPECT_TRUE(counts.reserve(1000));
}

}  // namespace
}  // namespace reprise::token_counts_allocation_test
