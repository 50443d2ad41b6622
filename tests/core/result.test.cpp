// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/result.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace reprise::result_test {
namespace {

static_assert(std::is_trivially_copyable_v<Error>, "an error costs no allocation, wherever it goes");
static_assert(is_result<Result<int>> && is_result<Result<void>>);
static_assert(!is_result<int> && !is_result<Error>);
static_assert(std::is_same_v<Result<int>::value_type, int> && std::is_void_v<Result<void>::value_type>);
static_assert(!std::is_convertible_v<Result<int>, bool>, "a result is not silently a number");
static_assert(std::is_convertible_v<const std::string&, Result<std::string>>);
static_assert(!std::is_convertible_v<const std::unique_ptr<int>&, Result<std::unique_ptr<int>>>, "it has to be moved");

Result<int> half(int number) {
  if (number % 2 != 0) return Error{ErrorCode::invalid_argument, "an odd number has no half", 7, 2};
  return number / 2;
}

Result<void> accept(bool good) {
  if (!good) return Error{ErrorCode::finished, "not good"};
  return {};
}

TEST(Result, HoldsAValue) {
  const Result<int> result = half(8);
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, 4);
  EXPECT_EQ(result.value(), 4);
}

TEST(Result, OrAnErrorWithItsNumbers) {
  const Result<int> result = half(7);
  ASSERT_FALSE(result.has_value());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(result.error().message, "an odd number has no half");
  EXPECT_EQ(result.error().value, 7U);
  EXPECT_EQ(result.error().limit, 2U);
}

TEST(Result, LetsItsValueBeChanged) {
  Result<std::string> result = std::string("a");
  *result += "b";
  result->append("c");
  EXPECT_EQ(result.value(), "abc");
}

TEST(Result, GivesMoveOnlyValuesAway) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, OfNothingIsSuccessOrAnError) {
  EXPECT_TRUE(accept(true).has_value());
  const Result<void> refused = accept(false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::finished);
  EXPECT_EQ(refused.error().message, "not good");
  EXPECT_EQ(refused.error().value, 0U);
}

}  // namespace
}  // namespace reprise::result_test
