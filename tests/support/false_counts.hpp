// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "reprise/index/next_tokens.hpp"
#include "support/choices.hpp"

namespace reprise::testing {

using reprise::detail::NextTokenWord;

/// Fills a table of next-token counts with counts of text that was never said. The contexts are real: they consist of
/// the tokens that the caller passes.
class FalseCounts {
 public:
  enum class Kind : std::uint8_t { random_tokens, one_token, random_words, one_context };
  static constexpr std::size_t kinds = 4;

  FalseCounts(Choices& choices, std::vector<Token> said) : choices_(choices), said_(std::move(said)) {
    if (said_.empty()) said_.push_back(0);
  }
  void add_to(NextTokenCounts& table, Kind kind) {
    if (table.lines() == 0) return;
    switch (kind) {
      case Kind::random_tokens:
        for (std::size_t i = choices_.below(200); i > 0; --i) {
          // A statement for each choice: compilers evaluate arguments in different orders.
          Token next = any();
          table.add(known(), next);
          next = any();
          const Token last = known();
          table.add(known(), last, next);
        }
        break;
      case Kind::one_token: {
        const Token token = choices_.chance(50) ? known() : any();
        for (const Token last : said_) {
          table.add(last, token);
          for (const Token before_last : said_) table.add(before_last, last, token);
        }
        break;
      }
      case Kind::random_words:
        for (std::size_t line = 0; line < table.lines(); ++line) {
          NextTokenCounts::Words words;
          for (NextTokenWord& word : words) word = random_word(static_cast<std::uint16_t>(choices_.below(1U << 16)));
          table.merge_line(line, words);
        }
        break;
      case Kind::one_context:
        for (std::size_t i = choices_.between(1, 8); i > 0; --i) fill_line(table);
        break;
    }
  }

 private:
  Token known() { return said_[choices_.below(said_.size())]; }
  /// Returns a token that is said, a token of a small vocabulary, or any token that a table can store.
  Token any() {
    if (choices_.chance(40)) return known();
    return static_cast<Token>(choices_.below(choices_.chance(50) ? 50 : NextTokenWord::most_tokens));
  }
  /// Returns a valid word with this tag, sometimes with the largest count.
  NextTokenWord random_word(std::uint16_t tag) {
    const auto count = static_cast<std::uint32_t>(choices_.chance(20) ? NextTokenWord::most_count
                                                                      : choices_.between(1, NextTokenWord::most_count));
    return choices_.chance(20) ? NextTokenWord::unlisted(tag, count) : NextTokenWord(tag, any(), count);
  }
  /// Adds a line of words that all have the tag of a context of one or two tokens. Tokens can be repeated.
  void fill_line(NextTokenCounts& table) {
    const Token last = known();
    NextTokenCounts probe = *NextTokenCounts::make(table.options());
    choices_.chance(50) ? probe.add(last, last) : probe.add(known(), last, last);
    for (std::size_t line = 0; line < probe.lines(); ++line)
      for (const NextTokenWord found : probe.words(line)) {
        if (found.empty()) continue;
        NextTokenCounts::Words words;
        for (NextTokenWord& word : words)
          if (choices_.chance(90)) word = random_word(found.tag());
        return table.merge_line(line, words);
      }
  }

  Choices& choices_;
  std::vector<Token> said_;
};

}  // namespace reprise::testing
