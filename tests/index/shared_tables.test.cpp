// SPDX-License-Identifier: Apache-2.0
// What NextTokenCounts and RankedRows have in common.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>

#include "reprise/index/next_tokens.hpp"
#include "support/fails.hpp"
#include "support/table_kinds.hpp"

namespace reprise::shared_tables_test {
namespace {

using testing::Random;
using testing::table_of;

template <class Kind>
class SharedTable : public ::testing::Test {};
using Kinds = ::testing::Types<testing::CountTables, testing::RowTables>;
TYPED_TEST_SUITE(SharedTable, Kinds);

TYPED_TEST(SharedTable, TakesTheBytesOfItsOption) {
  using Table = typename TypeParam::Table;
  EXPECT_EQ(typename TypeParam::Options().max_bytes, std::size_t{4} << 20);
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{100}, std::size_t{1000}, std::size_t{4} << 20})
    EXPECT_EQ(Table::make({.max_bytes = bytes}).value().memory_bytes(), bytes / 64 * 64);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{63}}) {
    EXPECT_THAT(Table::make({.max_bytes = bytes}), testing::fails(ErrorCode::size_out_of_range, bytes, 64U));
  }
}

// A table at the limit of its bytes: shared_tables.allocation.test.cpp.
TYPED_TEST(SharedTable, RefusesMoreThanItsLimits) {
  using Table = typename TypeParam::Table;
  constexpr std::uint64_t most = std::uint64_t{1} << 38;
  if constexpr (unlimited > most) {
    for (const std::uint64_t bytes : {most + 1, std::uint64_t{unlimited}})
      EXPECT_THAT(Table::make({.max_bytes = static_cast<std::size_t>(bytes)}),
                  testing::fails(ErrorCode::size_out_of_range, bytes, most, "max_bytes of the table is above"));
  } else {
    EXPECT_THAT(Table::make({.max_bytes = unlimited}), testing::fails(ErrorCode::out_of_memory, unlimited));
  }
  const std::uint32_t tokens = typename TypeParam::Options().vocabulary;
  EXPECT_TRUE(Table::make({.max_bytes = 64, .vocabulary = tokens}));
  for (const std::uint32_t vocabulary : {tokens + 1, ~std::uint32_t{0}})
    EXPECT_THAT(Table::make({.max_bytes = 64, .vocabulary = vocabulary}),
                testing::fails(ErrorCode::size_out_of_range, vocabulary, tokens, "::vocabulary is above"));
}

/// With the key 0, the plain hash of token 0 is 0. Contexts that contain this token must still differ.
TYPED_TEST(SharedTable, TellsContextsWithTokenZeroApartUnderKeyZero) {
  auto table = table_of<TypeParam>(64, 0, 0);
  TypeParam::teach(table, 5, 1);
  TypeParam::teach(table, 0, 2);
  EXPECT_TRUE(TypeParam::knows(table, 5));
  EXPECT_TRUE(TypeParam::knows(table, 0));
  EXPECT_FALSE(TypeParam::knows(table, 0, 5));
  EXPECT_FALSE(TypeParam::knows(table, 5, 0));
  EXPECT_FALSE(TypeParam::knows(table, 0, 0));
}

TYPED_TEST(SharedTable, IsCopied) {
  auto table = table_of<TypeParam>(64, 300);
  auto copy = table.copy();
  ASSERT_TRUE(copy);
  EXPECT_TRUE(TypeParam::same(*copy, table));
  EXPECT_EQ(copy->options(), table.options());
  Random one(1);
  Random two(1);
  TypeParam::teach(*copy, one, 10);
  EXPECT_FALSE(TypeParam::same(*copy, table)) << "a copy has its own memory";
  TypeParam::teach(table, two, 10);
  EXPECT_TRUE(TypeParam::same(*copy, table)) << "both go on alike";
}

TYPED_TEST(SharedTable, IsMoved) {
  auto table = table_of<TypeParam>(64, 300);
  const auto copy = table.copy().value();
  auto moved = std::move(table);
  EXPECT_TRUE(TypeParam::same(copy, moved));
  EXPECT_EQ(moved.options(), copy.options());
  EXPECT_EQ(table.memory_bytes(), 0U);  // NOLINT(bugprone-use-after-move)
  TypeParam::teach(table, 1, 2);
  EXPECT_FALSE(TypeParam::knows(table, 1));
  typename TypeParam::Table assigned;
  assigned = std::move(moved);
  EXPECT_TRUE(TypeParam::same(copy, assigned));
  EXPECT_EQ(assigned.options(), copy.options());
  EXPECT_EQ(moved.lines(), 0U);  // NOLINT(bugprone-use-after-move)
}

TYPED_TEST(SharedTable, IsLikeANewOneWhenCleared) {
  auto table = table_of<TypeParam>(64, 300);
  table.clear();
  EXPECT_TRUE(TypeParam::same(table, table_of<TypeParam>(64)));
}

TYPED_TEST(SharedTable, WithoutLinesKeepsNothing) {
  typename TypeParam::Table none;
  Random random(1);
  TypeParam::teach(none, random, 10);
  TypeParam::teach(none, 1, 2);
  none.prefetch(1);
  none.prefetch(1, 2);
  none.clear();
  EXPECT_FALSE(TypeParam::knows(none, 1));
  EXPECT_FALSE(TypeParam::knows(none, 1, 2));
  EXPECT_EQ(none.memory_bytes(), 0U);
  EXPECT_TRUE(none.copy());
}

TYPED_TEST(SharedTable, IsMergedOnlyWithOneOfItsKeyAndSize) {
  auto table = table_of<TypeParam>(2, 1, 1);
  const auto before = table.copy().value();
  for (const auto& [lines, key] : {std::pair<std::size_t, std::uint64_t>{2, 2}, {1, 1}, {3, 1}}) {
    const auto merged = table.merge(table_of<TypeParam>(lines, 3, key));
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(merged.error().value, lines);
    EXPECT_EQ(merged.error().limit, 2U);
    EXPECT_TRUE(TypeParam::same(table, before)) << "nothing was merged";
  }
}

/// Two readers read while a writer adds, evicts, merges and clears. What follows a token shows this token: a reader
/// must not get tokens of another context, or tokens that were never added.
TYPED_TEST(SharedTable, IsReadWhileItIsWritten) {
  auto table = table_of<TypeParam>(8, 0, 7, 20'000);
  auto other = table_of<TypeParam>(8, 0, 7, 20'000);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> found = 0;
  const auto read = [&](std::uint64_t seed) {
    Random random(seed);
    while (!done.load()) {
      const auto last = static_cast<Token>(random.below(20));
      table.prefetch(last);
      for (const Token next : TypeParam::after(table, static_cast<Token>(random.below(3)), last)) {
        ASSERT_EQ(next / 1000, last);
        found.fetch_add(1, std::memory_order_relaxed);
      }
    }
  };
  std::thread one(read, 1);
  std::thread two(read, 2);
  Random random(3);
  for (int i = 0; i < 1000 || (found.load() < 1000 && i < 300'000); ++i) {
    for (std::size_t rest = random.below(30); rest > 0; --rest) {
      const auto last = static_cast<Token>(random.below(20));
      const auto before = static_cast<Token>(random.below(3));
      const auto next =
          static_cast<Token>(1000 * last + static_cast<Token>(random.below(random.chance(50) ? 5 : 1000)));
      for (auto* each : {&table, &other}) TypeParam::teach(*each, before, last, next);
    }
    if (i % 50 == 0) {
      ASSERT_TRUE(table.merge(other));
    }
    if (i % 200 == 0) table.clear();
  }
  done.store(true);
  one.join();
  two.join();
  EXPECT_GT(found.load(), 0U);
}

}  // namespace
}  // namespace reprise::shared_tables_test
