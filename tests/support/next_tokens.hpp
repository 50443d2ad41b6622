// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reprise/index/next_tokens.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing {

using reprise::detail::NextTokenWord;

// Counts

/// The naive reference: counts of all next tokens of all contexts of one and two tokens.
class NextTokenModel {
 public:
  using Counts = std::map<Token, std::uint32_t>;

  void add(TokenSpan text, std::size_t begin = 0) {
    for (std::size_t i = std::max<std::size_t>(begin, 1); i < text.size(); ++i) {
      ++counts_[{text[i - 1]}][text[i]];
      if (i >= 2) ++counts_[{text[i - 2], text[i - 1]}][text[i]];
    }
  }
  [[nodiscard]] const std::map<std::vector<Token>, Counts>& counts() const { return counts_; }

 private:
  std::map<std::vector<Token>, Counts> counts_;
};

/// Reads the counts after a context of one or two tokens.
inline NextTokens::CountedTokens counts_after(const NextTokens& table, const std::vector<Token>& context) {
  return (context.size() == 1 ? table.after(context[0]) : table.after(context[0], context[1])).counts();
}

inline NextTokenModel::Counts listed_counts(const NextTokens::CountedTokens& next) {
  NextTokenModel::Counts counts;
  for (const NextTokens::CountedToken& token : next.listed()) counts[token.token] = token.count;
  return counts;
}

/// Returns a fault in a list that a reader has got, or an empty string.
inline std::string check_next(const NextTokens::CountedTokens& next) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    const NextTokens::CountedToken token = next.listed()[i];
    sum += token.count;
    if (token.count == 0) return "a token without a count";
    if (i > 0 && token.count > next.listed()[i - 1].count) return "counts that rise";
    for (std::size_t j = 0; j < i; ++j)
      if (next.listed()[j].token == token.token) return "a token that is listed twice";
  }
  return next.total() < sum ? "a total below the sum" : "";
}

/// Returns the counts in a line of a table.
inline NextTokens::Line counts_in(const NextTokens& table, std::size_t line) {
  return table.words(NextTokens::Part::counts, line);
}

/// Returns a fault in the counts of a table, or an empty string.
inline std::string check_counts(const NextTokens& table) {
  for (std::size_t line = 0; line < table.lines(); ++line) {
    const auto words = counts_in(table, line);
    for (const NextTokenWord word : words) {
      if (word.empty()) {
        if (word != NextTokenWord()) return "an empty word with content";
        continue;
      }
      if (!word.valid()) return "a word that is not valid";
      const auto same = [word](NextTokenWord other) { return word.same_key(other); };
      if (std::count_if(words.begin(), words.end(), same) != 1) return "two words for one count";
      const auto listed = [word](NextTokenWord other) { return other.has_tag(word.tag()) && !other.is_unlisted(); };
      if (word.is_unlisted() && std::none_of(words.begin(), words.end(), listed)) return "a total without tokens";
    }
  }
  return {};
}

/// Returns true if both tables have the same counts, in any order within a line.
inline bool same_counts(const NextTokens& a, const NextTokens& b) {
  if (a.lines() != b.lines()) return false;
  const auto sorted = [](NextTokens::Line words) {
    std::sort(words.begin(), words.end(), [](NextTokenWord x, NextTokenWord y) { return x.bits() < y.bits(); });
    return words;
  };
  for (std::size_t line = 0; line < a.lines(); ++line)
    if (sorted(counts_in(a, line)) != sorted(counts_in(b, line))) return false;
  return true;
}

// Rankings

/// The naive reference: the latest ranking of each context. Ranking::none as first token: a context of one token.
using RankedModel = std::map<std::pair<Token, Token>, Ranking>;

inline void add_to(RankedModel& model, const std::vector<NextTokens::RankedRow>& rows) {
  for (const NextTokens::RankedRow& row : rows) model[{row.before_last, row.last}] = row.ranking;
}

/// Reads the ranking after a context, which has two tokens unless `before_last` is Ranking::none.
inline Ranking ranking_after(const NextTokens& table, Token before_last, Token last) {
  return (before_last == Ranking::none ? table.after(last) : table.after(before_last, last)).ranking();
}

/// The contents of a line of rankings. An empty ranking is an empty line, with the tag 0.
struct RankedLine {
  std::uint16_t tag = 0;
  Ranking ranking;
  friend bool operator==(const RankedLine&, const RankedLine&) = default;
};
inline RankedLine ranking_in(const NextTokens& table, std::size_t line) {
  RankedLine found;
  const NextTokens::Line words = table.words(NextTokens::Part::rankings, line);
  for (std::size_t rank = 0; rank < words.size(); ++rank) {
    if (words[rank].empty()) continue;
    found.tag = words[rank].tag();
    found.ranking.tokens[rank] = words[rank].token();
  }
  return found;
}

/// Returns a fault in the rankings of a table with this vocabulary, or an empty string.
inline std::string check_rankings(const NextTokens& table, Token vocabulary) {
  for (std::size_t line = 0; line < table.lines(); ++line) {
    const std::uint16_t tag = ranking_in(table, line).tag;
    for (const NextTokenWord word : table.words(NextTokens::Part::rankings, line)) {
      if (word.empty() && word != NextTokenWord()) return "an empty word with content";
      if (!word.empty() && (word.tag() != tag || word.count() != 1)) return "a word of another kind";
      if (!word.empty() && (word.token() < 0 || word.token() >= vocabulary)) return "a token outside the vocabulary";
    }
  }
  return {};
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
inline std::vector<NextTokens::RankedRow> random_rows(Random& random, std::size_t count, std::uint64_t vocabulary) {
  std::vector<NextTokens::RankedRow> rows;
  for (std::size_t i = 0; i < count; ++i) {
    const Token before = random.chance(50) ? Ranking::none : static_cast<Token>(random.below(vocabulary));
    rows.push_back({before, static_cast<Token>(random.below(vocabulary)), random_ranking(random, vocabulary)});
  }
  return rows;
}

inline bool same_rankings(const NextTokens& a, const NextTokens& b) {
  if (a.lines() != b.lines()) return false;
  for (std::size_t line = 0; line < a.lines(); ++line)
    if (ranking_in(a, line) != ranking_in(b, line)) return false;
  return true;
}

// Both

inline bool same_tables(const NextTokens& a, const NextTokens& b) { return same_counts(a, b) && same_rankings(a, b); }

/// Adds text with 20 times `rows` tokens below 50, and `rows` rows.
inline void teach(NextTokens& table, Random& random, std::size_t rows) {
  std::vector<Token> text(20 * rows);
  for (Token& token : text) token = static_cast<Token>(random.below(1 + random.below(50)));
  table.add(text);
  table.add(random_rows(random, rows, 50));
}
/// Adds `next` after `last`.
inline void teach(NextTokens& table, Token last, Token next) {
  table.add(std::array{last, next});
  table.add(std::array{NextTokens::RankedRow{Ranking::none, last, Ranking(TokenSpan(&next, 1))}});
}
/// Adds `next` after `last`, and after `before` and `last`. Its ranking has tokens of the same thousand.
inline void teach(NextTokens& table, Token before, Token last, Token next) {
  table.add(std::array{before, last, next}, 2);
  Ranking ranking;
  for (Token rank = 0; rank < Token{Ranking::most}; ++rank)
    ranking.tokens[static_cast<std::size_t>(rank)] = next - next % 1000 + (next + rank) % 1000;
  table.add(
      std::array{NextTokens::RankedRow{Ranking::none, last, ranking}, NextTokens::RankedRow{before, last, ranking}});
}

/// Returns a table with `lines` lines for each part. It was taught `rows` rows.
inline NextTokens table_of(bool rankings, std::size_t lines, std::size_t rows = 0, std::uint64_t key = 7,
                           std::uint32_t vocabulary = 1000) {
  const std::size_t bytes = NextTokens::line_bytes * (rankings ? 2 * lines : lines);
  auto table =
      NextTokens::make({.max_bytes = bytes, .key = key, .vocabulary = vocabulary, .rankings = rankings}).value();
  Random random(lines + rows);
  teach(table, random, rows);
  return table;
}

}  // namespace reprise::testing
