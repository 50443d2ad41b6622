// SPDX-License-Identifier: Apache-2.0
#include "reprise/index/next_tokens.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/next_tokens.hpp"

namespace reprise::next_token_rankings_test {
namespace {

using testing::Random;
using testing::random_rows;
using testing::RankedModel;
using testing::ranking_after;
using testing::ranking_in;
using testing::same_rankings;
using Tokens = std::vector<Token>;
using Rows = std::vector<NextTokens::RankedRow>;

constexpr Token none = Ranking::none;

/// Returns a table with so many bytes for rankings.
NextTokens table_of(std::size_t bytes, std::uint64_t key = 7,
                    std::uint32_t vocabulary = NextTokenOptions().vocabulary) {
  return NextTokens::make({.max_bytes = 2 * bytes, .key = key, .vocabulary = vocabulary, .rankings = true}).value();
}
Ranking ranking_of(const Tokens& tokens) { return Ranking(tokens); }

TEST(RankingOfTokens, TakesTheFirstEightAndNoNegativeOnes) {
  EXPECT_EQ(ranking_of({3, 1, 2}).tokens, (std::array<Token, 8>{3, 1, 2, none, none, none, none, none}));
  EXPECT_EQ(ranking_of({9, 8, 7, 6, 5, 4, 3, 2, 1}).tokens, (std::array<Token, 8>{9, 8, 7, 6, 5, 4, 3, 2}));
  EXPECT_EQ(ranking_of({5, -1, 5, -7, 0}).tokens, (std::array<Token, 8>{5, 5, 0, none, none, none, none, none}));
  EXPECT_TRUE(Ranking().empty());
  EXPECT_TRUE(ranking_of({-3, -1}).empty());
  EXPECT_FALSE(ranking_of({0}).empty());
}

/// A table with room for all rows has the latest ranking of every context, and no other. A few rows of the same line
/// are replaced, so their contexts must have no ranking.
TEST(NextTokenRankings, AreThoseOfANaiveReference) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    NextTokens table = table_of(1 << 20, seed);
    RankedModel model;
    for (int round = 0; round < 5; ++round) {
      const Rows rows = random_rows(random, 100, 20);
      table.add(rows);
      testing::add_to(model, rows);
    }
    std::size_t missing = 0;
    for (Token before = none; before < 20; ++before)
      for (Token last = 0; last < 20; ++last) {
        const Ranking found = ranking_after(table, before, last);
        const auto known = model.find({before, last});
        if (known == model.end()) {
          ASSERT_TRUE(found.empty());
        } else if (found.empty()) {
          ++missing;
        } else {
          ASSERT_EQ(found, known->second);
        }
      }
    EXPECT_GT(model.size(), 150U);
    EXPECT_LE(missing, 5U) << "of " << model.size() << " rows in " << table.lines() << " lines";
  }
}

TEST(NextTokenRankings, MayHaveRanksWithoutATokenAndRepeatedTokens) {
  NextTokens table = table_of(1 << 12);
  Ranking gaps;
  gaps.tokens[1] = 4;
  gaps.tokens[3] = 4;
  gaps.tokens[7] = 0;
  table.add(Rows{{none, 4, gaps}, {4, 4, ranking_of({4, 4, 4, 4, 4, 4, 4, 4})}});
  EXPECT_EQ(table.after(4).ranking(), gaps);
  EXPECT_EQ(table.after(4, 4).ranking(), ranking_of({4, 4, 4, 4, 4, 4, 4, 4}));
}

TEST(NextTokenRankings, WithoutAContextOrARankingAreLeftOut) {
  NextTokens table = table_of(1 << 12);
  table.add(Rows{{none, 1, ranking_of({5})}});
  const auto before = table.copy().value();
  table.add(Rows());
  table.add(Rows{NextTokens::RankedRow(), {none, 1, Ranking()}, {2, 1, Ranking()}, {none, none, ranking_of({6})}});
  table.add(Rows{{3, none, ranking_of({6})}});
  EXPECT_TRUE(same_rankings(table, before));
}

TEST(NextTokenRankings, WithTokensOutsideTheVocabularyAreLeftOut) {
  constexpr Token largest = std::numeric_limits<Token>::max();
  for (const std::uint32_t vocabulary : {100U, 0x7fffffffU}) {
    NextTokens table = table_of(1 << 12, 7, vocabulary);
    const Token last_known = vocabulary == 100 ? 99 : largest - 1;
    Ranking negative = ranking_of({1, 2});
    negative.tokens[4] = -2;
    Rows rows = {{none, -2, ranking_of({1})},
                 {-2, 1, ranking_of({1})},
                 {std::numeric_limits<Token>::min(), 1, ranking_of({1})},
                 {none, 1, negative},
                 {none, largest, ranking_of({1})},
                 {largest, 1, ranking_of({1})},
                 {none, 1, ranking_of({1, largest})}};
    if (vocabulary == 100)
      for (const NextTokens::RankedRow& row :
           Rows{{none, 100, ranking_of({1})}, {100, 1, ranking_of({1})}, {none, 1, ranking_of({1, 100})}})
        rows.push_back(row);
    table.add(rows);
    EXPECT_TRUE(same_rankings(table, NextTokens::make(table.options()).value())) << vocabulary;
    table.add(Rows{{last_known, last_known, ranking_of({last_known, 0})}});
    EXPECT_EQ(table.after(last_known, last_known).ranking(), ranking_of({last_known, 0}));
  }
}

/// A table far too small for its rows: each ranking found is that of its context.
TEST(NextTokenRankings, OfFullTablesAreThoseOfTheirContext) {
  Random random(1);
  NextTokens table = table_of(64 * 50);
  RankedModel model;
  std::size_t found = 0;
  for (int round = 0; round < 200; ++round) {
    const Rows rows = random_rows(random, 20, 60);
    table.add(rows);
    testing::add_to(model, rows);
    for (const auto& [context, ranking] : model) {
      const Ranking kept = ranking_after(table, context.first, context.second);
      ASSERT_TRUE(kept.empty() || kept == ranking);
      found += kept.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(found, 200U * 20U);
}

/// Lines that both tables have used hold the row of the newer table. All other lines hold the only row.
TEST(NextTokenRankingsMerged, AreThoseOfTheNewerTableWhereBothHaveOne) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    NextTokens first = table_of(64 * 100);
    NextTokens second = table_of(64 * 100);
    first.add(random_rows(random, 60, 30));
    second.add(random_rows(random, 60, 30));
    const auto before = first.copy().value();
    ASSERT_TRUE(first.merge(second));
    for (std::size_t line = 0; line < first.lines(); ++line)
      ASSERT_EQ(ranking_in(first, line),
                ranking_in(second, line).ranking.empty() ? ranking_in(before, line) : ranking_in(second, line));
  }
}

TEST(NextTokenRankings, AreTheSameForTheSameRowsOnEveryMachine) {
  Random random(1);
  NextTokens table = table_of(1 << 12, 5);
  table.add(random_rows(random, 1'000, 300));
  std::uint64_t digest = 0;
  for (std::size_t line = 0; line < table.lines(); ++line) {
    const testing::RankedLine row = ranking_in(table, line);
    digest = testing::mix(digest ^ row.tag);
    for (const Token token : row.ranking.tokens) digest = testing::mix(digest ^ static_cast<std::uint32_t>(token));
  }
  EXPECT_EQ(digest, 14319462586641159982U);
}

}  // namespace
}  // namespace reprise::next_token_rankings_test
