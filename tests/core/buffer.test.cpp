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

#include "reprise_testing/random.hpp"

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
  detail::Buffer<int> appended;
  EXPECT_TRUE(appended.append({}));
  EXPECT_EQ(appended.capacity(), 0U);
}

TEST(Buffer, IsAVectorWhateverIsCalled) {
  testing::Random random(1);
  for (int round = 0; round < 300; ++round) {
    detail::Buffer<int> buffer;
    Ints model;
    for (int step = 0; step < 40; ++step) {
      const std::size_t size = random.below(model.size() + 4);
      const Ints values(random.below(random.chance(10) ? 300 : 9), step);
      switch (random.below(9)) {
        case 0:
          ASSERT_TRUE(buffer.assign(values));
          model = values;
          break;
        case 1:
          ASSERT_TRUE(buffer.resize(size, -step));
          model.resize(size, -step);
          break;
        case 2:
          buffer.truncate(size);
          model.resize(std::min(model.size(), size));
          break;
        case 3: {  // a part of itself, with room for it or not
          const std::size_t from = random.below(model.size() + 1);
          const std::size_t count = random.below(model.size() - from + 1);
          if (random.chance(50)) {
            ASSERT_TRUE(buffer.reserve(model.size() + count));
          }
          ASSERT_TRUE(buffer.append({buffer.data() + from, count}));
          for (std::size_t i = 0; i < count; ++i) model.push_back(model[from + i]);
          break;
        }
        case 4: {
          detail::Buffer<int> copy = buffer;
          ASSERT_TRUE(copy.append(Ints{7}));
          if (!model.empty()) copy[0] = 9;
          ASSERT_EQ(contents(buffer), model) << "a copy has its own memory";
          const detail::Buffer<int>& same = buffer;
          buffer = same;
          copy = buffer;
          buffer = std::move(copy);
          EXPECT_EQ(copy.capacity(), 0U);  // NOLINT(bugprone-use-after-move): this is what is tested
          ASSERT_TRUE(copy.append(values));
          ASSERT_EQ(contents(copy), values) << "usable";
          break;
        }
        case 5:
          ASSERT_TRUE(buffer.reserve(model.size() + 1));
          buffer.push_reserved(step);
          model.push_back(step);
          break;
        default:
          ASSERT_TRUE(buffer.append(values));
          model.insert(model.end(), values.begin(), values.end());
      }
      ASSERT_EQ(contents(buffer), model) << round << ", " << step;
    }
  }
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
  const std::uint64_t* const data = buffer.data();
  ASSERT_TRUE(buffer.append(std::vector<std::uint64_t>(1001, 7)));
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

TEST(Buffer, ClearKeepsTheMemoryAndReleaseGivesItBack) {
  detail::Buffer<int> buffer = buffer_of(Ints(100, 1));
  const std::size_t capacity = buffer.capacity();
  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.capacity(), capacity);
  buffer.release();
  EXPECT_EQ(buffer.capacity(), 0U);
}

}  // namespace
}  // namespace reprise::buffer_test
