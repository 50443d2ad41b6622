// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/detail/buffer.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::buffer_allocation_test {
namespace {

using Ints = std::vector<int>;

Ints contents(const detail::Buffer<int>& buffer) { return {buffer.begin(), buffer.end()}; }

detail::Buffer<int> full_buffer() {
  detail::Buffer<int> buffer;
  EXPECT_TRUE(buffer.reserve(4));
  for (const int value : {1, 2, 3, 4}) buffer.push_reserved(value);
  return buffer;
}

/// Calls `grow` with the first allocation failing, and expects an unchanged buffer.
template <class Grow>
void fails_and_changes_nothing(Grow&& grow) {
  detail::Buffer<int> buffer = full_buffer();
  bool done = true;
  {
    const testing::AllocationWatch watch(1);
    done = grow(buffer);
  }
  EXPECT_FALSE(done);
  EXPECT_EQ(contents(buffer), (Ints{1, 2, 3, 4}));
  EXPECT_EQ(buffer.capacity(), 4U);
  EXPECT_TRUE(grow(buffer)) << "with memory it works";
}

TEST(BufferWithoutMemory, ReserveChangesNothing) {
  fails_and_changes_nothing([](detail::Buffer<int>& buffer) { return buffer.reserve(100); });
}

TEST(BufferWithoutMemory, AssignChangesNothing) {
  const Ints values(100, 7);
  fails_and_changes_nothing([&](detail::Buffer<int>& buffer) { return buffer.assign(values); });
}

TEST(BufferWithoutMemory, GrowthContentsItselfWithWhatIsNeeded) {
  detail::Buffer<int> buffer = full_buffer();
  {
    const testing::AllocationWatch watch(1);
    EXPECT_TRUE(buffer.append(std::span<const int>(std::array{5}))) << "the second, smaller request is met";
  }
  EXPECT_EQ(contents(buffer), (Ints{1, 2, 3, 4, 5}));
  EXPECT_EQ(buffer.capacity(), 5U);
}

TEST(BufferWithMemory, MovingAndSwappingAllocateNothing) {
  detail::Buffer<int> first = full_buffer();
  detail::Buffer<int> second;
  const testing::AllocationWatch watch;
  second = std::move(first);
  first.swap(second);
  second.truncate(0);
  first.release();
  EXPECT_EQ(watch.allocations(), 0U);
}

}  // namespace
}  // namespace reprise::buffer_allocation_test
