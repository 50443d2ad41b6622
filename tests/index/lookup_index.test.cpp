// SPDX-License-Identifier: Apache-2.0
// The contract of lookup_index.hpp, clause by clause, for every index of the library.

#include "reprise/index/lookup_index.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "support/index_queries.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace lookup_index_test {
namespace {

using reprise::IndexOptions;
using reprise::Match;
using reprise::MatchLimits;
using reprise::NgramOrders;
using reprise::Token;
using reprise::testing::index_of;
using reprise::testing::matches;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

IndexOptions both_orders() { return {.orders = {1, 2, 3, 32}, .earliest = true}; }

template <class I>
class AnyIndex : public testing::Test {
 public:
  static I of(const std::vector<Token>& tokens) { return index_of<I>(both_orders(), tokens); }
};

using Indexes = testing::Types<reprise::testing::NaiveIndex, reprise::RollingHashIndex, reprise::SuffixArrayIndex>;
struct IndexNames {
  template <class I>
  static std::string GetName(int i) {
    return std::vector<std::string>{"naive", "rolling_hash", "suffix_array"}[static_cast<std::size_t>(i)];
  }
};
TYPED_TEST_SUITE(AnyIndex, Indexes, IndexNames);

TYPED_TEST(AnyIndex, WorksWithItsDefaults) {
  TypeParam index;
  index.append(std::vector<Token>{4, 4});
  EXPECT_THAT(matches(index, {}), ElementsAre(Match{1, 1}));
}

TYPED_TEST(AnyIndex, WritesNoMoreThanThereIsRoomFor) {
  const auto index = TestFixture::of({1, 1, 1, 1});
  std::vector<Match> out(3, Match{77, 77});
  EXPECT_EQ(index.find({}, std::span(out).first(2)), 2u);
  EXPECT_THAT(out, ElementsAre(Match{3, 3}, Match{2, 2}, Match{77, 77}));
  EXPECT_EQ(index.find({}, {}), 0u);
}

TYPED_TEST(AnyIndex, FindsNothingForOrdersThatDoNotExist) {
  const auto index = TestFixture::of(std::vector<Token>(100, 1));
  EXPECT_THAT(matches(index, {.shortest = 0}), IsEmpty());
  EXPECT_THAT(matches(index, {.shortest = NgramOrders::largest + 1, .longest = 64}), IsEmpty());
  EXPECT_THAT(matches(index, {.shortest = 0xffffffff, .longest = 0xffffffff}), IsEmpty());
}

TYPED_TEST(AnyIndex, AssignmentReplacesTheSequenceAndTheOptions) {
  TypeParam index(IndexOptions{.orders = {5}, .max_bytes = 0});
  index = TestFixture::of({1, 2, 1, 2});
  EXPECT_FALSE(index.exhausted());
  EXPECT_THAT(matches(index, {.shortest = 2}), ElementsAre(Match{2, 2}));
  const TypeParam& same = index;
  index = same;
  EXPECT_THAT(matches(index, {.shortest = 2}), ElementsAre(Match{2, 2}));
}

TYPED_TEST(AnyIndex, OneThatWasMovedFromIsEmptyAndUsable) {
  auto index = TestFixture::of({1, 2, 1});
  const TypeParam moved = std::move(index);
  EXPECT_THAT(matches(moved, {}), ElementsAre(Match{1, 1}));
  EXPECT_TRUE(index.tokens().empty());  // NOLINT(bugprone-use-after-move): the point of the test
  EXPECT_FALSE(index.exhausted());
  index.append(std::vector<Token>{6, 6});
  EXPECT_THAT(matches(index, {}), ElementsAre(Match{1, 1}));
}

TYPED_TEST(AnyIndex, FindsNothingWhenItsCeilingIsZero) {
  TypeParam index(IndexOptions{.max_bytes = 0});
  EXPECT_FALSE(index.reserve(1));
  EXPECT_FALSE(index.exhausted());
  index.append(std::vector<Token>{1, 1, 1});
  EXPECT_TRUE(index.exhausted());
  EXPECT_THAT(matches(index, {}), IsEmpty());
  EXPECT_EQ(index.memory_bytes(), 0u);
  index.clear();
  EXPECT_FALSE(index.exhausted());
}

TYPED_TEST(AnyIndex, StopsAtItsCeilingAndStaysBelowIt) {
  constexpr std::size_t ceiling = 64 * 1024;
  TypeParam index(IndexOptions{.max_bytes = ceiling});
  const std::vector<Token> tokens = reprise::testing::make_stream(reprise::testing::Stream::zipf, 20000, 3);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    index.append({&tokens[i], 1});
    ASSERT_LE(index.memory_bytes(), ceiling);
  }
  EXPECT_TRUE(index.exhausted());
  EXPECT_THAT(matches(index, {}), IsEmpty());
  const std::size_t indexed = index.tokens().size();
  EXPECT_GE(indexed, ceiling / 64) << "gave up long before the ceiling";

  index.truncate(indexed + 1);
  EXPECT_TRUE(index.exhausted()) << "one token is still missing";
  index.truncate(indexed);
  EXPECT_FALSE(index.exhausted());
  reprise::testing::NaiveIndex reference;
  reference.append(std::span(tokens).first(indexed));
  std::size_t found = 0;
  for (std::size_t cut = 0; cut < 20; ++cut) {
    index.truncate(indexed - cut);
    reference.truncate(indexed - cut);
    EXPECT_EQ(matches(index, {}), matches(reference, {}));
    found += matches(index, {}).size();
  }
  EXPECT_GE(found, 20u);
}

TYPED_TEST(AnyIndex, ReservesBelowItsCeilingOnly) {
  TypeParam index(IndexOptions{.max_bytes = 1 << 20});
  const auto reserved = index.reserve(1 << 20);
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code, reprise::ErrorCode::out_of_memory);
  EXPECT_EQ(reserved.error().value, 1u << 20);
  EXPECT_THAT(std::string(reserved.error().message), testing::HasSubstr("raise max_bytes"));
  EXPECT_LE(index.memory_bytes(), std::size_t{1} << 20);
  EXPECT_TRUE(index.reserve(1 << 13));
  EXPECT_FALSE(index.exhausted());
}

TYPED_TEST(AnyIndex, AForkOfAnExhaustedOneIsExhausted) {
  TypeParam index(IndexOptions{.max_bytes = 16 * 1024});
  for (Token token = 0; token < 10000; ++token) index.append({&token, 1});
  ASSERT_TRUE(index.exhausted());
  TypeParam fork = index;
  EXPECT_TRUE(fork.exhausted());
  fork.truncate(fork.tokens().size());
  EXPECT_FALSE(fork.exhausted());
  EXPECT_TRUE(index.exhausted());
}

/// The same for indexes with room for 100 tokens.
template <class I>
class ShortIndex : public testing::Test {};
using ShortIndexes = testing::Types<reprise::testing::BasicNaiveIndex<100>, reprise::detail::BasicRollingHashIndex<100>,
                                    reprise::detail::BasicSuffixArrayIndex<100>>;
TYPED_TEST_SUITE(ShortIndex, ShortIndexes, IndexNames);

TYPED_TEST(ShortIndex, HoldsAsManyTokensAsItHasPositions) {
  TypeParam index;
  EXPECT_TRUE(index.reserve(100));
  EXPECT_FALSE(index.reserve(101));
  index.append(std::vector<Token>(100, 1));
  EXPECT_FALSE(index.exhausted());
  EXPECT_THAT(matches(index, {}), SizeIs(16));
}

TYPED_TEST(ShortIndex, IsExhaustedByOneTokenTooMany) {
  TypeParam index;
  index.append(std::vector<Token>(99, 1));
  index.append(std::vector<Token>{1});
  EXPECT_FALSE(index.exhausted());
  index.append(std::vector<Token>{1});
  EXPECT_TRUE(index.exhausted());
  EXPECT_THAT(matches(index, {}), IsEmpty());
  index.append(std::vector<Token>{1});
  index.truncate(101);
  EXPECT_TRUE(index.exhausted());
  index.truncate(100);
  EXPECT_FALSE(index.exhausted());
  EXPECT_THAT(matches(index, {}), SizeIs(16));
}

TYPED_TEST(ShortIndex, IsExhaustedByALongAppend) {
  TypeParam index;
  index.append(std::vector<Token>(1000, 1));
  EXPECT_TRUE(index.exhausted());
  index.clear();
  index.append(std::vector<Token>{1, 1});
  EXPECT_THAT(matches(index, {}), ElementsAre(Match{1, 1}));
}

/// I7, for the indexes that accept a query for any n-gram.
template <class I>
class LatestOccurrence : public testing::Test {};
using NgramIndexes = testing::Types<reprise::testing::NaiveIndex, reprise::RollingHashIndex>;
TYPED_TEST_SUITE(LatestOccurrence, NgramIndexes, IndexNames);

reprise::Position latest(const auto& index, const std::vector<Token>& ngram) { return index.latest(ngram); }

TYPED_TEST(LatestOccurrence, IsNoneInAnEmptyIndexOrOfNothing) {
  EXPECT_EQ(latest(TypeParam({.orders = {1, 2}}), {1}), 0u);
  EXPECT_EQ(latest(TypeParam({.orders = {1, 2}}), {}), 0u);
  const auto index = index_of<TypeParam>({.orders = {1, 2}}, {1});
  EXPECT_EQ(latest(index, {}), 0u);
  EXPECT_EQ(latest(index, {1, 1}), 0u) << "longer than the context";
}

TYPED_TEST(LatestOccurrence, IsNoneOrRightForOrdersThatAreNotIndexed) {
  const auto index = index_of<TypeParam>({.orders = {2}}, {1, 2, 3, 1, 2});
  EXPECT_THAT(latest(index, {1}), testing::AnyOf(0u, 4u));
  EXPECT_THAT(latest(index, {3, 1, 2}), testing::AnyOf(0u, 5u));
  EXPECT_EQ(latest(index, {9, 9, 9}), 0u);
}

TYPED_TEST(LatestOccurrence, IsNoneWhenExhaustedUntilATruncation) {
  TypeParam index({.orders = {1}, .max_bytes = 4096});
  index.append(std::vector<Token>{1, 2});
  index.append(std::vector<Token>(100'000, 3));
  ASSERT_TRUE(index.exhausted());
  EXPECT_EQ(latest(index, {1}), 0u);
  EXPECT_EQ(latest(index, {3}), 0u);
  index.truncate(2);
  ASSERT_FALSE(index.exhausted());
  EXPECT_EQ(latest(index, {1}), 1u);
  EXPECT_EQ(latest(index, {3}), 0u);
}

TEST(NgramOrders, KeepsOrdersSortedDistinctAndInRange) {
  NgramOrders orders = {8, 3, 3, 1};
  for (const std::uint32_t n : {0u, 33u, 3u}) EXPECT_FALSE(orders.add(n)) << n;
  EXPECT_THAT(std::vector<std::uint32_t>(orders.begin(), orders.end()), ElementsAre(1u, 3u, 8u));
  EXPECT_TRUE(orders.contains(3));
  EXPECT_FALSE(orders.contains(2));
}

TEST(NgramOrders, HoldsEightAtMost) {
  NgramOrders orders = {32, 8, 7, 6, 5, 4, 3, 2};
  EXPECT_FALSE(orders.add(1));
  EXPECT_EQ(orders.size(), 8u);
  EXPECT_FALSE(orders.contains(1));
}

}  // namespace
}  // namespace lookup_index_test
