// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/detail/match_weight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reprise/draft/detail/followed_context.hpp"

namespace reprise::detail::match_weight_test {
namespace {

constexpr std::size_t far = std::numeric_limits<std::size_t>::max();
constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

static_assert(length_class(5) == 5 && base_weight(100) > 0 && frequency_weight(1, 1000) > 0,
              "all of it can be computed at compile time");

template <class Visit>
void for_each_distance(Visit&& visit) {
  for (std::size_t distance = 0; distance < 100; ++distance) visit(distance);
  for (int shift = 7; shift < 64; ++shift) visit(std::size_t{1} << shift);
  visit(far);
}

TEST(LengthClass, NeverFallsAndKnowsEveryLength) {
  std::size_t before = 0;
  for (std::size_t length = 0; length < 2000; ++length) {
    ASSERT_GE(length_class(length), before);
    ASSERT_LT(length_class(length), std::tuple_size_v<LengthWeights>);
    before = length_class(length);
  }
  EXPECT_EQ(length_class(far), before);
  EXPECT_EQ(before, std::tuple_size_v<LengthWeights> - 1);
}

TEST(LengthWeights, ExistForEveryNumberOfAgreements) {
  EXPECT_EQ(&length_weights(0), &weights_by_length[0]);
  EXPECT_EQ(&length_weights(3), &length_weights(4));
  EXPECT_EQ(&length_weights(5), &length_weights(8));
  EXPECT_EQ(&length_weights(9), &length_weights(32));
  EXPECT_EQ(&length_weights(32), &weights_by_length.back());
}

TEST(LengthWeights, ArePositiveAndMoreForTheLongestThanForTheShortest) {
  for (int earlier = 0; earlier <= 32; ++earlier) {
    const LengthWeights& weights = length_weights(earlier);
    for (const VoteWeight weight : weights) EXPECT_GT(weight, 0U);
    EXPECT_GT(weights.back(), weights.front());
  }
}

TEST(BaseWeight, IsPositiveAtEveryDistance) {
  for_each_distance([](std::size_t distance) { ASSERT_GT(base_weight(distance), 0U) << distance; });
}

TEST(BaseWeight, OfAllFollowedPlacesTogetherStaysBelowTwoToThe28) {
  std::uint64_t most = 0;
  for_each_distance([&](std::size_t distance) {
    for (const LengthWeights& weights : weights_by_length)
      for (const VoteWeight weight : weights)
        most = std::max(most, std::uint64_t{base_weight(distance)} * weight >> 12);
  });
  EXPECT_LT(LiveMatches::capacity * (most + 1) + weight_one, std::uint64_t{1} << 28);
}

TEST(FrequencyWeight, IsPositiveForAnyCounts) {
  for (int c = 0; c < 64; ++c)
    for (int t = 0; t < 64; ++t)
      ASSERT_GT(frequency_weight(std::uint64_t{1} << c, std::uint64_t{1} << t), 0U) << c << ' ' << t;
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1}, largest})
    for (const std::uint64_t total : {std::uint64_t{0}, std::uint64_t{1}, largest})
      EXPECT_GT(frequency_weight(count, total), 0U);
}

TEST(FrequencyWeight, NeverFallsWithTheCount) {
  for (std::uint64_t total = 1; total < std::uint64_t{1} << 60; total = total * 3 + 1) {
    VoteWeight before = 0;
    for (std::uint64_t count = 1; count <= total; count += count / 16 + 1) {
      ASSERT_GE(frequency_weight(count, total), before) << count << " of " << total;
      before = frequency_weight(count, total);
    }
  }
}

TEST(FrequencyWeight, NeverRisesWithTheTotal) {
  VoteWeight before = std::numeric_limits<VoteWeight>::max();
  for (std::uint64_t total = 100; total < std::uint64_t{1} << 60; total += total / 16) {
    ASSERT_LE(frequency_weight(100, total), before) << total;
    before = frequency_weight(100, total);
  }
}

}  // namespace
}  // namespace reprise::detail::match_weight_test
