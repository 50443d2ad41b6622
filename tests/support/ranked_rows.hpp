// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// The naive reference: the latest ranking of each context. Ranking::none as first token: a context of one token.
using RankedModel = std::map<std::pair<Token, Token>, Ranking>;

inline void add_to(RankedModel& model, const std::vector<RankedRows::Row>& rows) {
  for (const RankedRows::Row& row : rows) model[{row.before_last, row.last}] = row.ranking;
}

/// Reads the ranking after a context, which has two tokens unless `before_last` is Ranking::none.
inline Ranking ranking_after(const RankedRows& table, Token before_last, Token last) {
  return before_last == Ranking::none ? table.after(last) : table.after(before_last, last);
}

/// Returns a ranking of random tokens, some of them repeated. Some ranks hold no token, but at least one does.
inline Ranking random_ranking(Random& random, std::uint64_t vocabulary) {
  Ranking ranking;
  while (ranking.empty())
    for (Token& token : ranking.tokens)
      token = random.chance(80) ? static_cast<Token>(random.below(vocabulary)) : Ranking::none;
  return ranking;
}

/// Returns valid rows after random contexts.
inline std::vector<RankedRows::Row> random_rows(Random& random, std::size_t count, std::uint64_t vocabulary) {
  std::vector<RankedRows::Row> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const Token before = random.chance(50) ? Ranking::none : static_cast<Token>(random.below(vocabulary));
    rows.push_back({before, static_cast<Token>(random.below(vocabulary)), random_ranking(random, vocabulary)});
  }
  return rows;
}

inline bool same_rows(const RankedRows& a, const RankedRows& b) {
  if (a.lines() != b.lines()) return false;
  for (std::size_t line = 0; line < a.lines(); ++line)
    if (a.line(line) != b.line(line)) return false;
  return true;
}

}  // namespace reprise::testing
