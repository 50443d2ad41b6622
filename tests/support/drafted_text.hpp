// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"

/// \file Decoding by hand, without any code of the loop: for tests of engines.
namespace reprise::testing {

/// Returns random tokens of a vocabulary.
inline std::vector<Token> random_tokens(std::size_t count, std::uint64_t seed, std::size_t vocabulary = 64) {
  Random random(seed);
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(random.below(vocabulary)));
  return tokens;
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

}  // namespace reprise::testing
