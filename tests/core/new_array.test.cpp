// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/detail/new_array.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

namespace reprise::new_array_test {
namespace {

constexpr std::size_t most_bytes = std::numeric_limits<std::ptrdiff_t>::max();
constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

/// The compiler keeps the number of objects beside those that have a destructor, so that adds to the bytes.
template <class T>
class NewArray : public ::testing::Test {};
using Types = ::testing::Types<char, std::array<char, 3>, std::array<double, 100>, std::string>;
TYPED_TEST_SUITE(NewArray, Types);

TYPED_TEST(NewArray, IsNullIfItsBytesCannotBeCounted) {
  constexpr std::size_t size = sizeof(TypeParam);
  for (const std::size_t count : {all, all / size, all / size - 1, most_bytes / size + 1})
    EXPECT_EQ(detail::new_array<TypeParam>(count), nullptr) << count;
}
TYPED_TEST(NewArray, HoldsObjectsOtherwise) {
  EXPECT_NE(detail::new_array<TypeParam>(0), nullptr);
  const auto array = detail::new_array<TypeParam>(1000);
  ASSERT_NE(array, nullptr);
  array[999] = TypeParam();
}

TEST(OwnedArray, IsFreedOnceWhoeverHoldsIt) {
  static int alive;
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
  };
  alive = 0;
  {
    auto first = detail::new_array<Counted>(3);
    auto second = detail::new_array<Counted>(4);
    EXPECT_EQ(alive, 7);
    second = std::move(first);
    EXPECT_EQ(alive, 3) << "the array before is freed";
    auto& same = second;
    second = std::move(same);
    EXPECT_EQ(alive, 3) << "moved onto itself";
    const auto third = std::move(second);
    EXPECT_NE(third, nullptr);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace reprise::new_array_test
