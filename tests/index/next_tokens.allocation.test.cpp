// SPDX-License-Identifier: Apache-2.0
// The allocations of NextTokens, which only make() and copy() perform.
#include <gtest/gtest.h>

#include <cstddef>

#include "support/allocation_counter.hpp"
#include "support/next_tokens.hpp"

namespace reprise::next_tokens_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::table_of;

TEST(NextTokenAllocations, NoneToAddToReadToMergeAndToClear) {
  for (const bool rankings : {false, true}) {
    NextTokens table = table_of(rankings, 64, 100);
    const NextTokens other = table_of(rankings, 64, 200);
    std::size_t counted = 0;
    std::size_t ranked = 0;
    std::size_t allocations = 1;
    {
      const AllocationWatch watch;
      testing::teach(table, 1, 2);
      static_cast<void>(table.merge(other));
      for (Token last = 0; last < 50; ++last)
        for (Token before = 0; before < 50; ++before)
          for (const NextTokens::Context& context : {table.after(last), table.after(before, last)}) {
            context.prefetch();
            counted += context.counts().empty() ? 0U : 1U;
            ranked += context.ranking().empty() ? 0U : 1U;
          }
      table.clear();
      allocations = watch.allocations();
    }
    EXPECT_EQ(allocations, 0U);
    EXPECT_GT(counted, 100U);
    EXPECT_EQ(ranked > 100, rankings);
  }
}

TEST(NextTokenAllocations, AnErrorWhereOneFails) {
  for (const bool rankings : {false, true}) {
    const NextTokens table = table_of(rankings, 64);
    ErrorCode copying{};
    // The last size is the largest that is not refused.
    for (const std::size_t bytes : {std::size_t{1} << 12, std::size_t{1} << 38}) {
      ErrorCode making{};
      {
        const AllocationWatch watch(1);
        const auto made = NextTokens::make({.max_bytes = bytes, .rankings = rankings});
        if (!made) making = made.error().code;
      }
      EXPECT_EQ(making, ErrorCode::out_of_memory) << bytes;
    }
    {
      const AllocationWatch watch(1);
      const auto copy = table.copy();
      if (!copy) copying = copy.error().code;
    }
    EXPECT_EQ(copying, ErrorCode::out_of_memory);
  }
}

}  // namespace
}  // namespace reprise::next_tokens_allocation_test
