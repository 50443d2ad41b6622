// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/random.hpp"
#include "support/next_tokens.hpp"
#include "support/ranked_rows.hpp"

namespace reprise::testing {

/// What tests of every kind of table must know of a table of next-token counts.
struct CountTables {
  using Table = NextTokenCounts;
  using Options = NextTokenOptions;

  /// Adds text with 20 times `rows` tokens below 50.
  static void teach(Table& table, Random& random, std::size_t rows) {
    std::vector<Token> text(20 * rows);
    for (Token& token : text) token = static_cast<Token>(random.below(1 + random.below(50)));
    table.add(text);
  }
  static void teach(Table& table, Token last, Token next) { table.add(last, next); }
  static void teach(Table& table, Token before, Token last, Token next) {
    table.add(last, next);
    table.add(before, last, next);
  }
  /// Returns the tokens that a reader finds after `last`, and after `before` and `last`.
  static std::vector<Token> after(const Table& table, Token before, Token last) {
    std::vector<Token> tokens;
    for (const NextTokenCounts::NextTokens& next : {table.next(last), table.next(before, last)})
      for (const NextTokenCounts::NextToken& token : next.listed()) tokens.push_back(token.token);
    return tokens;
  }
  static bool knows(const Table& table, Token last) { return !table.next(last).empty(); }
  static bool knows(const Table& table, Token before, Token last) { return !table.next(before, last).empty(); }
  static bool same(const Table& a, const Table& b) { return same_counts(a, b); }
};

/// The same for a table of ranked rows.
struct RowTables {
  using Table = RankedRows;
  using Options = RankedRowsOptions;

  static void teach(Table& table, Random& random, std::size_t rows) { table.add(random_rows(random, rows, 50)); }
  static void teach(Table& table, Token last, Token next) {
    const RankedRows::Row row{Ranking::none, last, Ranking(TokenSpan(&next, 1))};
    table.add(std::span(&row, 1));
  }
  /// The ranking has tokens of the same thousand as `next`.
  static void teach(Table& table, Token before, Token last, Token next) {
    Ranking ranking;
    for (Token rank = 0; rank < Token{Ranking::most}; ++rank)
      ranking.tokens[static_cast<std::size_t>(rank)] = next - next % 1000 + (next + rank) % 1000;
    const std::array<RankedRows::Row, 2> rows = {RankedRows::Row{Ranking::none, last, ranking},
                                                 RankedRows::Row{before, last, ranking}};
    table.add(rows);
  }
  static std::vector<Token> after(const Table& table, Token before, Token last) {
    std::vector<Token> tokens;
    for (const Ranking& ranking : {table.after(last), table.after(before, last)})
      for (const Token token : ranking.tokens)
        if (token != Ranking::none) tokens.push_back(token);
    return tokens;
  }
  static bool knows(const Table& table, Token last) { return !table.after(last).empty(); }
  static bool knows(const Table& table, Token before, Token last) { return !table.after(before, last).empty(); }
  static bool same(const Table& a, const Table& b) { return same_rows(a, b); }
};

/// Returns a table of `lines` lines that was taught `rows` rows.
template <class Kind>
typename Kind::Table table_of(std::size_t lines, std::size_t rows = 0, std::uint64_t key = 7,
                              std::uint32_t vocabulary = 1000) {
  using Table = typename Kind::Table;
  auto table = Table::make({.max_bytes = Table::line_bytes * lines, .key = key, .vocabulary = vocabulary}).value();
  Random random(lines + rows);
  Kind::teach(table, random, rows);
  return table;
}

}  // namespace reprise::testing
