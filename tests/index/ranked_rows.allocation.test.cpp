// SPDX-License-Identifier: Apache-2.0
// The allocations of a table of ranked rows, which only make() and copy() perform.
#include <gtest/gtest.h>

#include <cstddef>

#include "reprise/index/ranked_rows.hpp"
#include "support/allocation_counter.hpp"
#include "support/ranked_rows.hpp"

namespace reprise::ranked_rows_allocation_test {
namespace {

using testing::AllocationWatch;

TEST(RankedRowsAllocations, NoneToAddToReadToMergeAndToClear) {
  testing::Random random(1);
  const auto rows = testing::random_rows(random, 1'000, 50);
  auto table = RankedRows::make({.max_bytes = 1 << 12});
  auto other = RankedRows::make({.max_bytes = 1 << 12});
  ASSERT_TRUE(table && other);
  std::size_t found = 0;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    table->add(rows);
    other->add(rows);
    static_cast<void>(table->merge(*other));
    for (const RankedRows::Row& row : rows)
      found += testing::ranking_after(*table, row.before_last, row.last).empty() ? 0U : 1U;
    table->clear();
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_GE(found, 50U);
}

TEST(RankedRowsAllocations, AnErrorWhereOneFails) {
  const auto table = RankedRows::make({.max_bytes = 1 << 12});
  ASSERT_TRUE(table);
  ErrorCode making{};
  ErrorCode copying{};
  {
    const AllocationWatch watch(1);
    const auto made = RankedRows::make({.max_bytes = 1 << 12});
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
}  // namespace reprise::ranked_rows_allocation_test
