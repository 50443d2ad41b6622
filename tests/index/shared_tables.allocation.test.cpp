// SPDX-License-Identifier: Apache-2.0
// The allocations of NextTokenCounts and RankedRows, which only make() and copy() perform.
#include <gtest/gtest.h>

#include <cstddef>

#include "support/allocation_counter.hpp"
#include "support/table_kinds.hpp"

namespace reprise::shared_tables_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::table_of;

template <class Kind>
class SharedTableAllocations : public ::testing::Test {};
using Kinds = ::testing::Types<testing::CountTables, testing::RowTables>;
TYPED_TEST_SUITE(SharedTableAllocations, Kinds);

TYPED_TEST(SharedTableAllocations, NoneToAddToReadToMergeAndToClear) {
  auto table = table_of<TypeParam>(64, 100);
  const auto other = table_of<TypeParam>(64, 200);
  std::size_t known = 0;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    TypeParam::teach(table, 1, 2);
    static_cast<void>(table.merge(other));
    for (Token last = 0; last < 50; ++last)
      for (Token before = 0; before < 50; ++before)
        known += (TypeParam::knows(table, last) ? 1U : 0U) + (TypeParam::knows(table, before, last) ? 1U : 0U);
    table.clear();
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_GT(known, 100U);
}

TYPED_TEST(SharedTableAllocations, AnErrorWhereOneFails) {
  const auto table = table_of<TypeParam>(64);
  ErrorCode copying{};
  // The last size is the largest that is not refused.
  for (const std::size_t bytes : {std::size_t{1} << 12, std::size_t{1} << 38}) {
    ErrorCode making{};
    {
      const AllocationWatch watch(1);
      const auto made = TypeParam::Table::make({.max_bytes = bytes});
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

}  // namespace
}  // namespace reprise::shared_tables_allocation_test
