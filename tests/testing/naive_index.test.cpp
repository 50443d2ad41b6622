// SPDX-License-Identifier: Apache-2.0
// The reference is compared with answers written by hand, here and in lookup_index.test.cpp.

#include "support/naive_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/index_queries.hpp"

namespace naive_index_test {
namespace {

using reprise::Match;
using reprise::MatchLimits::Order;
using reprise::testing::index_of;
using reprise::testing::matches;
using reprise::testing::NaiveIndex;
using testing::ElementsAre;

TEST(NaiveIndex, FindsEveryOccurrenceOfAWordWithItsOwnLength) {
  //                                               a  b  c  b  c  x  a  b  c  y  a  b  c
  const auto index = index_of<NaiveIndex>({}, {1, 2, 3, 2, 3, 9, 1, 2, 3, 8, 1, 2, 3});
  EXPECT_THAT(matches(index, {.shortest = 2, .longest = 8}), ElementsAre(Match{9, 3}, Match{5, 2}, Match{3, 3}));
  EXPECT_THAT(matches(index, {.shortest = 3, .longest = 8, .order = MatchLimits::Order::earliest}),
              ElementsAre(Match{3, 3}, Match{9, 3}));
}

TEST(NaiveIndex, AnswersOrdersItWasNotMadeFor) {
  const auto index = index_of<NaiveIndex>({.orders = {3}}, {4, 4});
  EXPECT_THAT(matches(index, {.shortest = 1}), ElementsAre(Match{1, 1}));
}

}  // namespace
}  // namespace naive_index_test
