// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "reprise/testing/random.hpp"

/// \file Decoding by hand, without any code of the loop: for tests of engines.
namespace reprise::testing {

/// Returns random tokens of a vocabulary.
inline std::vector<Token> random_tokens(std::size_t count, std::uint64_t seed, std::size_t vocabulary = 64) {
  Random random(seed);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(random.below(vocabulary)));
  return tokens;
}

/// Returns how many tokens equal the token after the last earlier occurrence of the two tokens before them.
inline std::size_t said_as_before(TokenSpan text) {
  std::size_t copied = 0;
  for (std::size_t i = 2; i < text.size(); ++i)
    for (std::size_t at = i - 1; at >= 2; --at)
      if (text[at - 1] == text[i - 1] && text[at - 2] == text[i - 2]) {
        copied += text[at] == text[i] ? 1 : 0;
        break;
      }
  return copied;
}
/// Returns the number of different runs of three tokens.
inline std::size_t distinct_triples(TokenSpan text) {
  std::set<std::vector<Token>> triples;
  for (std::size_t i = 0; i + 3 <= text.size(); ++i) triples.insert({text[i], text[i + 1], text[i + 2]});
  return triples.size();
}

/// Returns the next `count` tokens, one per pass, of an engine that holds all of `prompt` but the last token.
template <class Engine>
std::vector<Token> plain_text(Engine& engine, TokenSpan prompt, std::size_t count) {
  std::vector<Token> text(1, prompt.back());
  while (text.size() <= count) {
    const Token anchor = text.back();
    auto picks = engine.verify(TokenSpan(&anchor, 1), 0);
    text.push_back(picks[0]);
    static_cast<void>(engine.commit(1));
  }
  text.erase(text.begin());
  return text;
}

/// Drafted rows in the form that a TreeVerifier takes.
struct DraftedRows {
  std::vector<Token> tokens;
  std::vector<NodeIndex> parents;

  void add(Token token, NodeIndex parent) {
    tokens.push_back(token);
    parents.push_back(parent);
  }
  /// Returns the row after `parent` with this token, or anchor_parent if there is none.
  [[nodiscard]] NodeIndex child(NodeIndex parent, Token token) const {
    for (std::size_t row = 0; row < tokens.size(); ++row)
      if (parents[row] == parent && tokens[row] == token) return static_cast<NodeIndex>(row);
    return anchor_parent;
  }
};

/// Returns a tree around a possible continuation: some of its tokens, and wrong ones before, beside and after them.
inline DraftedRows tree_around(TokenSpan text, Random& random) {
  DraftedRows rows;
  NodeIndex last = anchor_parent;
  const std::size_t right = random.below(std::min<std::size_t>(text.size(), 4) + 1);
  for (std::size_t i = 0; i <= right; ++i) {
    const std::size_t wrong = random.below(3);
    for (std::size_t k = 0; k < wrong; ++k) rows.add(static_cast<Token>(random.below(64)), last);
    if (wrong > 0 && random.chance(50))
      rows.add(static_cast<Token>(random.below(64)), static_cast<NodeIndex>(rows.tokens.size() - 1));
    if (i == right) break;
    if (rows.child(last, text[i]) == anchor_parent || random.chance(50)) rows.add(text[i], last);
    last = rows.child(last, text[i]);
  }
  return rows;
}

/// The path of a draft that agrees with the picks of an engine.
struct WalkedPath {
  std::vector<std::size_t> rows;  ///< kept rows, counted from the anchor's, which is first
  std::vector<Token> tokens;      ///< committed tokens, ending with the pick after the path
};
template <class Picks>
WalkedPath walk_picks(const DraftedRows& draft, Picks& picks) {
  WalkedPath path{{0}, {picks[0]}};
  for (NodeIndex row = draft.child(anchor_parent, path.tokens.back()); row != anchor_parent;
       row = draft.child(row, path.tokens.back())) {
    path.rows.push_back(static_cast<std::size_t>(row) + 1);
    path.tokens.push_back(picks[path.rows.back()]);
  }
  return path;
}

}  // namespace reprise::testing
