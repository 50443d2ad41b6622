// SPDX-License-Identifier: Apache-2.0
// The allocations of a table of next-token counts, which only make() and copy() perform.
#include <gtest/gtest.h>

#include <cstddef>

#include "reprise/index/next_token_counts.hpp"
#include "support/allocation_counter.hpp"
#include "support/streams.hpp"

namespace reprise::next_token_counts_allocation_test {
namespace {

using testing::AllocationWatch;

TEST(NextTokenAllocations, NoneToCountToReadToMergeAndToClear) {
  const auto tokens = testing::make_stream(testing::Stream::zipf, 5'000, 1);
  auto table = NextTokenCounts::make({.max_bytes = 1 << 12});
  auto other = NextTokenCounts::make({.max_bytes = 1 << 12});
  ASSERT_TRUE(table && other);
  std::size_t listed = 0;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    table->add(tokens);
    other->add(tokens);
    static_cast<void>(table->merge(*other));
    for (const Token token : tokens) listed += table->next(token).size() + table->next(token, token).size();
    table->clear();
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_GT(listed, 1000U);
}

TEST(NextTokenAllocations, AnErrorWhereOneFails) {
  const auto table = NextTokenCounts::make({.max_bytes = 1 << 12});
  ASSERT_TRUE(table);
  ErrorCode making{};
  ErrorCode copying{};
  {
    const AllocationWatch watch(1);
    const auto made = NextTokenCounts::make({.max_bytes = 1 << 12});
    if (!made) making = made.error().code;
  }
  {
    const AllocationWatch watch(1);
    const auto copy = table->copy();
    if (!copy) copying = copy.error().code;
  }
  EXPECT_EQ(making, ErrorCode::out_of_memory);
  EXPECT_EQ(copying, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace reprise::next_token_counts_allocation_test
