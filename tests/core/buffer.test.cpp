// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/detail/buffer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace reprise::buffer_test {
namespace {

using Ints = std::vector<int>;

static_assert(std::is_nothrow_move_constructible_v<detail::Buffer<int>> &&
              std::is_nothrow_move_assignable_v<detail::Buffer<int>>);
static_assert(std::is_nothrow_copy_constructible_v<detail::Buffer<int>>);

detail::Buffer<int> buffer_of(const Ints& values) {
  detail::Buffer<int> buffer;
  EXPECT_TRUE(buffer.append(values));
  return buffer;
}

Ints contents(const detail::Buffer<int>& buffer) { return {buffer.begin(), buffer.end()}; }

TEST(Buffer, StartsEmptyAndOwnsNothing) {
  const detail::Buffer<int> buffer;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), 0U);
  EXPECT_EQ(buffer.memory_bytes(), 0U);
  EXPECT_EQ(buffer.begin(), buffer.end());
}

TEST(Buffer, AppendingKeepsWhatWasThere) {
  detail::Buffer<int> buffer;
  Ints expected;
  for (int i = 0; i < 1000; ++i) {
    const Ints values(static_cast<std::size_t>(i % 7), i);
    ASSERT_TRUE(buffer.append(values));
    expected.insert(expected.end(), values.begin(), values.end());
  }
  EXPECT_EQ(contents(buffer), expected);
}

TEST(Buffer, AppendsAPartOfItselfAlsoWhereItGrows) {
  for (const std::size_t room : {0U, 1000U}) {
    Ints expected = {1, 2, 3, 4, 5, 6, 7};
    detail::Buffer<int> buffer = buffer_of(expected);
    ASSERT_TRUE(buffer.reserve(room));
    for (std::size_t i = 0; i < 40; ++i) {
      const std::size_t first = i % 7;
      const std::size_t count = std::min<std::size_t>(i, expected.size() - first);
      ASSERT_TRUE(buffer.append({buffer.data() + first, count}));
      for (std::size_t k = 0; k < count; ++k) expected.push_back(expected[first + k]);
      ASSERT_EQ(contents(buffer), expected);
    }
    while (expected.size() < 10'000) {
      ASSERT_TRUE(buffer.append(buffer));
      const Ints before = expected;
      expected.insert(expected.end(), before.begin(), before.end());
      ASSERT_EQ(contents(buffer), expected);
    }
  }
}

TEST(Buffer, AppendingNothingToNothingAllocatesNothing) {
  detail::Buffer<int> buffer;
  EXPECT_TRUE(buffer.append({}));
  EXPECT_EQ(buffer.capacity(), 0U);
}

TEST(Buffer, GrowsGeometricallyAndLeavesAtMostAFifthUnused) {
  detail::Buffer<int> buffer;
  std::size_t growths = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::size_t before = buffer.capacity();
    ASSERT_TRUE(buffer.append(std::span(&i, 1)));
    if (buffer.capacity() == before) continue;
    ++growths;
    if (buffer.size() > 64) {
      EXPECT_LE(buffer.capacity() * 4, buffer.size() * 5);
    }
  }
  EXPECT_LT(growths, 50U);
}

TEST(Buffer, ReservesExactlyWhatIsAskedFor) {
  detail::Buffer<std::uint64_t> buffer;
  ASSERT_TRUE(buffer.reserve(1001));
  EXPECT_EQ(buffer.capacity(), 1001U);
  EXPECT_EQ(buffer.memory_bytes(), 8008U);
  EXPECT_TRUE(buffer.empty());
  ASSERT_TRUE(buffer.reserve(5));
  EXPECT_EQ(buffer.capacity(), 1001U);
}

TEST(Buffer, DoesNotGrowWithinItsReserve) {
  detail::Buffer<int> buffer;
  ASSERT_TRUE(buffer.reserve(100));
  const int* const data = buffer.data();
  ASSERT_TRUE(buffer.append(Ints(100, 7)));
  EXPECT_EQ(buffer.data(), data);
}

TEST(Buffer, RefusesSizesThatDoNotFitTheAddressSpace) {
  detail::Buffer<int> buffer = buffer_of({1, 2, 3});
  const std::size_t capacity = buffer.capacity();
  const std::size_t most = std::numeric_limits<std::size_t>::max();
  EXPECT_FALSE(buffer.reserve(most));
  EXPECT_FALSE(buffer.reserve(most / sizeof(int) + 1));
  EXPECT_FALSE(buffer.reserve_extra(most));
  EXPECT_FALSE(buffer.reserve_extra(most - 3));
  EXPECT_FALSE(buffer.resize(most, 0));
  EXPECT_EQ(contents(buffer), (Ints{1, 2, 3}));
  EXPECT_EQ(buffer.capacity(), capacity);
}

TEST(Buffer, CopiesGoOnIndependently) {
  detail::Buffer<int> first = buffer_of({1, 2, 3});
  detail::Buffer<int> second = first;
  second[0] = 9;
  ASSERT_TRUE(second.append(Ints{4}));
  EXPECT_EQ(contents(first), (Ints{1, 2, 3}));
  EXPECT_EQ(contents(second), (Ints{9, 2, 3, 4}));
}

TEST(Buffer, MovingLeavesTheSourceEmptyAndUsable) {
  detail::Buffer<int> first = buffer_of({1, 2, 3});
  const int* const data = first.data();
  detail::Buffer<int> second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): this is what is tested
  EXPECT_EQ(first.capacity(), 0U);
  ASSERT_TRUE(first.append(Ints{5}));
  EXPECT_EQ(contents(first), (Ints{5}));
  EXPECT_EQ(contents(second), (Ints{1, 2, 3}));
}

TEST(Buffer, AssignsByCopyAndByMove) {
  detail::Buffer<int> first = buffer_of({1, 2});
  detail::Buffer<int> second = buffer_of({3, 4, 5});
  second = first;
  EXPECT_EQ(contents(second), (Ints{1, 2}));
  const detail::Buffer<int>& same = second;
  second = same;
  EXPECT_EQ(contents(second), (Ints{1, 2}));
  second = buffer_of({6});
  EXPECT_EQ(contents(second), (Ints{6}));
}

TEST(Buffer, AssignReplacesTheContents) {
  detail::Buffer<int> buffer = buffer_of({1, 2, 3});
  ASSERT_TRUE(buffer.assign(Ints{4}));
  EXPECT_EQ(contents(buffer), (Ints{4}));
  ASSERT_TRUE(buffer.assign(Ints(50, 8)));
  EXPECT_EQ(contents(buffer), Ints(50, 8));
  ASSERT_TRUE(buffer.assign({}));
  EXPECT_TRUE(buffer.empty());
}

TEST(Buffer, ResizeFillsTheNewElementsOnly) {
  detail::Buffer<int> buffer = buffer_of({1, 2});
  ASSERT_TRUE(buffer.resize(4, 7));
  EXPECT_EQ(contents(buffer), (Ints{1, 2, 7, 7}));
  ASSERT_TRUE(buffer.resize(1, 9));
  EXPECT_EQ(contents(buffer), (Ints{1}));
}

TEST(Buffer, TruncateNeverGrows) {
  detail::Buffer<int> buffer = buffer_of({1, 2, 3});
  buffer.truncate(9);
  EXPECT_EQ(contents(buffer), (Ints{1, 2, 3}));
  buffer.truncate(1);
  EXPECT_EQ(contents(buffer), (Ints{1}));
}

TEST(Buffer, ClearKeepsTheMemoryAndReleaseGivesItBack) {
  detail::Buffer<int> buffer = buffer_of(Ints(100, 1));
  const std::size_t capacity = buffer.capacity();
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), capacity);
  buffer.release();
  EXPECT_EQ(buffer.capacity(), 0U);
}

TEST(Buffer, PushesIntoReservedRoom) {
  detail::Buffer<int> buffer;
  ASSERT_TRUE(buffer.reserve(2));
  buffer.push_reserved(1);
  buffer.push_reserved(2);
  EXPECT_EQ(contents(buffer), (Ints{1, 2}));
}

}  // namespace
}  // namespace reprise::buffer_test
