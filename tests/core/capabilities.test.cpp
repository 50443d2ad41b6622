// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace reprise::capabilities_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AllowedWidths, AllowEverythingWhenEmpty) {
  const AllowedWidths widths;
  EXPECT_TRUE(widths.empty());
  EXPECT_THAT(widths.values(), IsEmpty());
}

TEST(AllowedWidths, AreSortedWhateverTheOrderTheyComeIn) {
  EXPECT_THAT(AllowedWidths({8, 1, 4, 2}).values(), ElementsAre(1, 2, 4, 8));
  AllowedWidths widths = {4};
  EXPECT_TRUE(widths.add(16));
  EXPECT_TRUE(widths.add(2));
  EXPECT_THAT(widths.values(), ElementsAre(2, 4, 16));
}

TEST(AllowedWidths, HoldEachWidthOnce) {
  AllowedWidths widths = {4, 4, 2};
  EXPECT_TRUE(widths.add(2));
  EXPECT_THAT(widths.values(), ElementsAre(2, 4));
}

TEST(AllowedWidths, RefuseAPassWithoutRows) {
  AllowedWidths widths = {3};
  EXPECT_FALSE(widths.add(0));
  EXPECT_THAT(widths.values(), ElementsAre(3));
}

TEST(AllowedWidths, RefuseMoreThanTheyHaveRoomFor) {
  AllowedWidths widths;
  for (std::size_t width = AllowedWidths::capacity; width > 0; --width) EXPECT_TRUE(widths.add(width));
  EXPECT_FALSE(widths.add(AllowedWidths::capacity + 1));
  EXPECT_TRUE(widths.add(7)) << "one that is there already";
  EXPECT_EQ(widths.values().size(), AllowedWidths::capacity);
  EXPECT_EQ(widths.values().front(), 1U);
  EXPECT_EQ(widths.values().back(), AllowedWidths::capacity);
}

TEST(AllowedWidths, CanBeWorkedOutByTheCompiler) {
  constexpr AllowedWidths widths = {2, 1};
  static_assert(widths.values()[0] == 1 && widths.values()[1] == 2);
  EXPECT_FALSE(widths.empty());
}

TEST(Capabilities, DescribeAnEngineWithoutLimitsThatTrims) {
  const Capabilities capabilities;
  EXPECT_EQ(capabilities.max_rows, unlimited);
  EXPECT_EQ(capabilities.max_context, unlimited);
  EXPECT_EQ(capabilities.max_depth, unlimited);
  EXPECT_EQ(capabilities.max_rollback, unlimited);
  EXPECT_EQ(capabilities.max_leaves, 1U) << "chains only";
  EXPECT_FALSE(capabilities.pad_token.has_value());
  EXPECT_EQ(capabilities.rollback, Rollback::trim);
  EXPECT_TRUE(capabilities.deterministic);
}

TEST(PassShape, IsOneSequenceOfOneRowByDefault) {
  const PassShape shape;
  EXPECT_EQ(shape.sequences, 1U);
  EXPECT_EQ(shape.rows, 1U);
  EXPECT_EQ(shape.context, 0U);
}

}  // namespace
}  // namespace reprise::capabilities_test
