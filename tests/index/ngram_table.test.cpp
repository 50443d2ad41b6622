// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/detail/ngram_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace ngram_table_test {
namespace {

using reprise::Position;
using reprise::detail::NgramTable;

constexpr auto any = [](Position) { return true; };
constexpr auto none = [](Position) { return false; };

TEST(NgramTable, HasRoomForWhatItWasMadeFor) {
  for (std::size_t distinct = 0; distinct < 3000; ++distinct) {
    NgramTable table;
    ASSERT_TRUE(table.reset(NgramTable::slots_for(distinct)));
    EXPECT_GE(table.room(), distinct);
    EXPECT_LT(table.room(), table.slots()) << "a probe ends at a vacant slot";
  }
}

TEST(NgramTable, ReplacesTheLastOccurrenceAndAnswersTheOneBefore) {
  NgramTable table;
  ASSERT_TRUE(table.reset(8));
  EXPECT_EQ(table.replace(42, 1, any), 0u);
  EXPECT_EQ(table.replace(42, 5, any), 1u);
  EXPECT_EQ(table.guess(42), 5u);
  EXPECT_EQ(table.distinct(), 1u);
}

TEST(NgramTable, UndoesInReverseAcrossCollisionsAndTheLastSlot) {
  NgramTable table;
  ASSERT_TRUE(table.reset(8));
  constexpr std::uint64_t at_the_last_slot = ~std::uint64_t{0};
  for (Position end = 1; end <= 6; ++end) static_cast<void>(table.replace(at_the_last_slot, end, none));
  static_cast<void>(table.replace(at_the_last_slot, 7, [](Position held) { return held == 3; }));
  table.undo(at_the_last_slot, 7, 3);
  for (Position end = 6; end > 0; --end) {
    EXPECT_EQ(table.distinct(), end);
    EXPECT_EQ(table.guess(at_the_last_slot), 1u);
    table.undo(at_the_last_slot, end, 0);
  }
  EXPECT_EQ(table.distinct(), 0u);
  EXPECT_EQ(table.guess(at_the_last_slot), 0u);
}

TEST(NgramTable, RefusesMoreSlotsThanAHashCanName) {
  if (sizeof(std::size_t) <= 4) GTEST_SKIP() << "no number of slots is too large";
  NgramTable table;
  EXPECT_FALSE(table.reset(NgramTable::most_slots + std::size_t{1}));
  EXPECT_EQ(table.slots(), 0u);
  EXPECT_EQ(table.memory_bytes(), 0u);
}

}  // namespace
}  // namespace ngram_table_test
