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

namespace reprise::testing {

using reprise::detail::NextTokenWord;

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

/// Reads the next tokens of a context of one or two tokens.
inline NextTokenCounts::NextTokens next_of(const NextTokenCounts& table, const std::vector<Token>& context) {
  return context.size() == 1 ? table.next(context[0]) : table.next(context[0], context[1]);
}

inline NextTokenModel::Counts listed_counts(const NextTokenCounts::NextTokens& next) {
  NextTokenModel::Counts counts;
  for (const NextTokenCounts::NextToken& token : next.listed()) counts[token.token] = token.count;
  return counts;
}

/// Returns a fault in a list that a reader has got, or an empty string.
inline std::string check_next(const NextTokenCounts::NextTokens& next) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < next.size(); ++i) {
    const NextTokenCounts::NextToken token = next.listed()[i];
    sum += token.count;
    if (token.count == 0) return "a token without a count";
    if (i > 0 && token.count > next.listed()[i - 1].count) return "counts that rise";
    for (std::size_t j = 0; j < i; ++j)
      if (next.listed()[j].token == token.token) return "a token that is listed twice";
  }
  return next.total() < sum ? "a total below the sum" : "";
}

/// Returns a fault in the words of a table, or an empty string.
inline std::string check_words(const NextTokenCounts& table) {
  for (std::size_t line = 0; line < table.lines(); ++line) {
    const auto words = table.words(line);
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

/// Returns true if both tables have the same words, in any order within a line.
inline bool same_counts(const NextTokenCounts& a, const NextTokenCounts& b) {
  if (a.lines() != b.lines()) return false;
  const auto sorted = [](const NextTokenCounts& table, std::size_t line) {
    auto words = table.words(line);
    std::sort(words.begin(), words.end(), [](NextTokenWord x, NextTokenWord y) { return x.bits() < y.bits(); });
    return words;
  };
  for (std::size_t line = 0; line < a.lines(); ++line)
    if (sorted(a, line) != sorted(b, line)) return false;
  return true;
}

}  // namespace reprise::testing
