// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/choices.hpp"

namespace reprise::testing {

/// A model of a random world: the next token follows from the last two.
class RandomTarget {
 public:
  explicit RandomTarget(Choices& choices) : vocabulary_(choices.between(2, 6)), seed_(choices.below(1000)) {}

  [[nodiscard]] std::size_t vocabulary() const { return vocabulary_; }
  /// Returns the token that the model picks after a text.
  [[nodiscard]] Token pick(std::span<const Token> text) const {
    const std::size_t n = text.size();
    const auto last = static_cast<std::uint64_t>(text[n - 1]);
    const std::uint64_t before = n < 2 ? 7 : static_cast<std::uint64_t>(text[n - 2]);
    return static_cast<Token>((mix(seed_ * 64 + last * 8 + before) >> 7) % vocabulary_);
  }
  /// Appends what a pass with this draft commits, and returns the number of tokens.
  std::size_t run_pass(std::vector<Token>& text, std::span<const Token> draft) const {
    const std::size_t before = text.size();
    bool agrees = true;
    for (std::size_t i = 0; agrees && i <= draft.size(); ++i) {
      text.push_back(pick(text));
      agrees = i < draft.size() && draft[i] == text.back();
    }
    return text.size() - before;
  }
  std::vector<Token> some_tokens(Choices& choices, std::size_t least, std::size_t most) const {
    std::vector<Token> tokens(choices.between(least, most));
    for (Token& token : tokens) token = static_cast<Token>(choices.below(vocabulary_));
    return tokens;
  }

 private:
  std::size_t vocabulary_;
  std::uint64_t seed_;
};

}  // namespace reprise::testing
