// SPDX-License-Identifier: Apache-2.0
// The table as a whole, with rankings and without. next_token_counts.test.cpp and next_token_rankings.test.cpp test
// what its two parts hold.
#include "reprise/index/next_tokens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "support/fails.hpp"
#include "support/next_tokens.hpp"

namespace reprise::next_tokens_test {
namespace {

using testing::Random;
using testing::same_tables;
using testing::table_of;
using testing::teach;
using Part = NextTokens::Part;
using Rows = std::vector<NextTokens::RankedRow>;

/// Expects that readers find counts after a context, and a ranking if the table keeps them; or neither.
void expect_known(const NextTokens::Context& context, bool counts, bool ranking) {
  EXPECT_EQ(!context.counts().empty(), counts);
  EXPECT_EQ(context.counts().total() != 0, counts);
  EXPECT_EQ(!context.ranking().empty(), ranking);
}

/// Tables without rankings and with them.
class NextTokenTable : public ::testing::TestWithParam<bool> {
 protected:
  static NextTokens table(std::size_t lines, std::size_t rows = 0, std::uint64_t key = 7,
                          std::uint32_t vocabulary = 1000) {
    return table_of(GetParam(), lines, rows, key, vocabulary);
  }
  static auto make(std::size_t max_bytes, std::uint32_t vocabulary = NextTokenOptions().vocabulary) {
    return NextTokens::make({.max_bytes = max_bytes, .vocabulary = vocabulary, .rankings = GetParam()});
  }
  static void expect_known(const NextTokens::Context& context, bool known) {
    next_tokens_test::expect_known(context, known, known && GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(Rankings, NextTokenTable, ::testing::Bool());

TEST(NextTokens, HaveNoRankingsUnlessTheOptionsSaySo) {
  EXPECT_EQ(NextTokenOptions().max_bytes, std::size_t{4} << 20);
  NextTokens table = NextTokens::make({.max_bytes = 1 << 12}).value();
  EXPECT_EQ(table.lines(), 64U);
  table.add(Rows{{Ranking::none, 1, Ranking(std::vector<Token>{2})}});
  EXPECT_TRUE(table.after(1).ranking().empty());
  EXPECT_EQ(table.words(Part::rankings, 0), NextTokens::Line{});
  EXPECT_TRUE(same_tables(table, table_of(false, 64)));
}

/// One budget: with rankings, half of the lines are for them.
TEST_P(NextTokenTable, TakesTheBytesOfItsOption) {
  const std::size_t least = GetParam() ? 128 : 64;
  for (const std::size_t bytes : {least, std::size_t{191}, std::size_t{1000}, std::size_t{4} << 20}) {
    const NextTokens table = make(bytes).value();
    EXPECT_EQ(table.lines(), bytes / least);
    EXPECT_EQ(table.memory_bytes(), bytes / least * least);
  }
  for (const std::size_t bytes : {std::size_t{0}, least - 1})
    EXPECT_THAT(make(bytes), testing::fails(ErrorCode::size_out_of_range, bytes, least));
}

// A table at the limit of its bytes: next_tokens.allocation.test.cpp.
TEST_P(NextTokenTable, RefusesMoreThanItsLimits) {
  constexpr std::uint64_t most = std::uint64_t{1} << 38;
  if constexpr (unlimited > most) {
    for (const std::uint64_t bytes : {most + 1, std::uint64_t{unlimited}})
      EXPECT_THAT(make(static_cast<std::size_t>(bytes)),
                  testing::fails(ErrorCode::size_out_of_range, bytes, most, "max_bytes of the table is above"));
  } else {
    EXPECT_THAT(make(unlimited), testing::fails(ErrorCode::out_of_memory, unlimited));
  }
  const std::uint32_t tokens = NextTokenOptions().vocabulary;
  EXPECT_EQ(tokens, 0x7fffffffU);
  EXPECT_TRUE(make(128, tokens));
  for (const std::uint32_t vocabulary : {tokens + 1, ~std::uint32_t{0}})
    EXPECT_THAT(make(128, vocabulary),
                testing::fails(ErrorCode::size_out_of_range, vocabulary, tokens, "::vocabulary is above"));
}

/// The counts and the ranking of a context are in lines with the same number, and their words have the same tag.
TEST(NextTokens, OfOneContextHaveOnePlaceInBothParts) {
  Random random(3);
  for (std::uint64_t key = 0; key < 200; ++key) {
    NextTokens table = table_of(true, 1 + random.below(50), 0, key);
    const std::array<Token, 3> text = {static_cast<Token>(random.below(9)), static_cast<Token>(random.below(9)), 4};
    const bool two = random.chance(50);
    table.add(text, 2);
    table.add(Rows{{two ? text[0] : Ranking::none, text[1], Ranking(std::vector<Token>{4})}});
    std::size_t shared = 0;
    for (std::size_t line = 0; line < table.lines(); ++line) {
      const NextTokens::Line counts = table.words(Part::counts, line);
      const detail::NextTokenWord ranked = table.words(Part::rankings, line)[0];  // a ranked word has a count of 1
      if (!ranked.empty()) shared += std::find(counts.begin(), counts.end(), ranked) != counts.end() ? 1U : 0U;
    }
    EXPECT_EQ(shared, 1U) << key;
    expect_known(table.after(text[0], text[1]), true, two);
    expect_known(table.after(text[1]), true, !two);
  }
}

/// Rankings change no count, and counts change no ranking.
TEST(NextTokens, KeepTheirPartsApart) {
  Random random(5);
  NextTokens both = table_of(true, 40);
  NextTokens counts = table_of(false, 40);
  NextTokens rankings = table_of(true, 40);
  for (int i = 0; i < 50; ++i) {
    std::vector<Token> text(100);
    for (Token& token : text) token = static_cast<Token>(random.below(50));
    const Rows rows = testing::random_rows(random, 20, 50);
    both.add(text);
    both.add(rows);
    counts.add(text);
    rankings.add(rows);
  }
  EXPECT_TRUE(testing::same_counts(both, counts));
  EXPECT_TRUE(testing::same_rankings(both, rankings));
  EXPECT_EQ(both.evictions(), counts.evictions());
  EXPECT_GT(both.evictions(), 0U);
}

/// With the key 0, the plain hash of token 0 is 0. Contexts that contain this token must still differ.
TEST_P(NextTokenTable, TellsContextsWithTokenZeroApartUnderKeyZero) {
  NextTokens all = table(64, 0, 0);
  teach(all, 5, 1);
  teach(all, 0, 2);
  expect_known(all.after(5), true);
  expect_known(all.after(0), true);
  expect_known(all.after(0, 5), false);
  expect_known(all.after(5, 0), false);
  expect_known(all.after(0, 0), false);
}

TEST_P(NextTokenTable, IsCopied) {
  NextTokens all = table(64, 300);
  auto copy = all.copy();
  ASSERT_TRUE(copy);
  EXPECT_TRUE(same_tables(*copy, all));
  EXPECT_EQ(copy->options(), all.options());
  Random one(1);
  Random two(1);
  teach(*copy, one, 10);
  EXPECT_FALSE(same_tables(*copy, all)) << "a copy has its own memory";
  teach(all, two, 10);
  EXPECT_TRUE(same_tables(*copy, all)) << "both go on alike";
}

TEST_P(NextTokenTable, IsMoved) {
  NextTokens all = table(64, 300);
  const NextTokens copy = all.copy().value();
  NextTokens moved = std::move(all);
  EXPECT_TRUE(same_tables(copy, moved));
  EXPECT_EQ(moved.options(), copy.options());
  EXPECT_EQ(all.memory_bytes(), 0U);  // NOLINT(bugprone-use-after-move)
  teach(all, 1, 2);
  expect_known(all.after(1), false);
  NextTokens assigned;
  assigned = std::move(moved);
  EXPECT_TRUE(same_tables(copy, assigned));
  EXPECT_EQ(assigned.options(), copy.options());
  EXPECT_EQ(moved.lines(), 0U);  // NOLINT(bugprone-use-after-move)
}

TEST_P(NextTokenTable, IsLikeANewOneWhenCleared) {
  NextTokens all = table(64, 300);
  all.clear();
  EXPECT_TRUE(same_tables(all, table(64)));
}

TEST_P(NextTokenTable, WithoutLinesKeepsNothing) {
  NextTokens none = table(64);
  const NextTokens with_lines = std::move(none);  // NOLINTBEGIN(bugprone-use-after-move)
  EXPECT_EQ(none.options(), with_lines.options());
  Random random(1);
  teach(none, random, 10);
  teach(none, 1, 2);
  for (const NextTokens::Context& context : {none.after(1), none.after(1, 2), NextTokens::Context()}) {
    context.prefetch();
    expect_known(context, false);
  }
  none.clear();
  EXPECT_EQ(none.memory_bytes(), 0U);
  EXPECT_EQ(none.evictions(), 0U);
  const auto copy = none.copy();
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->options(), with_lines.options());
  EXPECT_TRUE(none.merge(*copy));
  EXPECT_TRUE(NextTokens().merge(NextTokens()));
  // NOLINTEND(bugprone-use-after-move)
}

TEST_P(NextTokenTable, IsMergedOnlyWithOneOfItsKeyAndSize) {
  NextTokens all = table(2, 1, 1);
  const NextTokens before = all.copy().value();
  for (const auto& [lines, key] : {std::pair<std::size_t, std::uint64_t>{2, 2}, {1, 1}, {3, 1}}) {
    EXPECT_THAT(all.merge(table(lines, 3, key)), testing::fails(ErrorCode::invalid_argument, lines, 2U));
    EXPECT_TRUE(same_tables(all, before)) << "nothing was merged";
  }
}

/// Of a table with rankings and one without, only the counts are merged.
TEST(NextTokens, AreMergedWithATableOfCountsAlone) {
  for (const bool rankings : {false, true}) {
    NextTokens all = table_of(rankings, 30, 20);
    const NextTokens before = all.copy().value();
    const NextTokens other = table_of(!rankings, 30, 25);
    NextTokens counts = table_of(false, 30, 20);
    ASSERT_TRUE(all.merge(other));
    ASSERT_TRUE(counts.merge(table_of(false, 30, 25)));
    EXPECT_FALSE(testing::same_counts(all, before));
    EXPECT_TRUE(testing::same_counts(all, counts));
    EXPECT_TRUE(testing::same_rankings(all, before));
  }
}

/// Two readers read while a writer adds, evicts, merges and clears. What follows a token shows this token: a reader
/// must not get tokens of another context, or tokens that were never added.
TEST_P(NextTokenTable, IsReadWhileItIsWritten) {
  NextTokens all = table(8, 0, 7, 20'000);
  NextTokens other = table(8, 0, 7, 20'000);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> counted = 0;
  std::atomic<std::uint64_t> ranked = 0;
  const auto read = [&](std::uint64_t seed) {
    Random random(seed);
    while (!done.load()) {
      const auto last = static_cast<Token>(random.below(20));
      for (const NextTokens::Context& context :
           {all.after(last), all.after(static_cast<Token>(random.below(3)), last)}) {
        context.prefetch();
        const NextTokens::CountedTokens counts = context.counts();
        for (const NextTokens::CountedToken& next : counts.listed()) ASSERT_EQ(next.token / 1000, last);
        counted.fetch_add(counts.size(), std::memory_order_relaxed);
        for (const Token next : context.ranking().tokens) {
          if (next == Ranking::none) continue;
          ASSERT_EQ(next / 1000, last);
          ranked.fetch_add(1, std::memory_order_relaxed);
        }
      }
    }
  };
  std::thread one(read, 1);
  std::thread two(read, 2);
  Random random(3);
  const auto found = [&] { return GetParam() ? std::min(counted.load(), ranked.load()) : counted.load(); };
  for (int i = 0; i < 1000 || (found() < 1000 && i < 300'000); ++i) {
    for (std::size_t rest = random.below(30); rest > 0; --rest) {
      const auto last = static_cast<Token>(random.below(20));
      const auto before = static_cast<Token>(random.below(3));
      const auto next =
          static_cast<Token>(1000 * last + static_cast<Token>(random.below(random.chance(50) ? 5 : 1000)));
      for (NextTokens* each : {&all, &other}) teach(*each, before, last, next);
    }
    if (i % 50 == 0) {
      ASSERT_TRUE(all.merge(other));
    }
    if (i % 200 == 0) all.clear();
  }
  done.store(true);
  one.join();
  two.join();
  EXPECT_GT(counted.load(), 0U);
  EXPECT_EQ(ranked.load() > 0, GetParam());
}

}  // namespace
}  // namespace reprise::next_tokens_test
