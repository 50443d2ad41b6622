// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::llama {

/// When an output counts as a loop. Two rules, either of them is enough:
///
/// exact: its last `window` tokens, taken as one block, have been said `sayings` times in this output (overlaps
/// count), and so many times more than in the context. Text of period p is found after window + (sayings - 1) x p
/// tokens, so that short blocks have to come more often: 50 equal tokens, 7 equal table rows of 10 tokens, 3 equal
/// paragraphs.
///
/// counting: its last W = max(counted_window, 3 x p) tokens are those p tokens earlier, but for at most one in
/// `counted_change`: "Item 12: see above. Item 13: see above. ...". Of them, none may end a block of `window` tokens
/// that the context has as often. An approximate tandem repeat of Hamming distance, at least four periods long.
///
/// The context (prompts and earlier turns) is weighed against the output because text that is copied from an input
/// that repeats itself, such as a file with three equal blocks, is no loop.
struct LoopRule {
  std::size_t window = 48;          ///< 1 or more
  std::size_t sayings = 3;          ///< 2 or more
  std::size_t counted_window = 96;  ///< `seed` or more
  std::size_t counted_change = 12;
  std::size_t seed = 8;  ///< p is the distance to where the last `seed` tokens were said before
};

struct Loop {
  std::size_t found = 0;   ///< tokens of the output with which it was found
  std::size_t period = 0;  ///< from one saying to the next
  std::size_t keep = 0;    ///< tokens of the output up to where it begins to repeat itself: the block stands there once
};

/// Watches one turn's output as it is generated. Cost of add(): two rolling hashes and two look-ups; where the last
/// `seed` tokens were said before, up to W comparisons on top. Memory: about 100 bytes a token of context and output.
/// Threads: one at a time.
///
/// The exact rule generalises what engines stop at, a block that is said several times in a row (vLLM's
/// repetition_detection), to blocks with other text between them.
class LoopDetector {
 public:
  explicit LoopDetector(TokenSpan context = {}, const LoopRule& rule = {});

  /// The next token of the output. Answers the loop with the token that makes it one; what is added behind that one
  /// is judged again.
  std::optional<Loop> add(Token token);

 private:
  struct Sayings {
    std::size_t context = 0;
    std::size_t output = 0;
  };
  /// The hash of the last `length` tokens of a text that grows.
  class Hash {
   public:
    explicit Hash(std::size_t length);
    /// After `text` got one longer; false as long as it is shorter than `length`.
    bool roll(TokenSpan text);
    [[nodiscard]] std::uint64_t value() const { return value_; }

   private:
    std::size_t length_;
    std::uint64_t leading_ = 1;
    std::uint64_t value_ = 0;
  };

  [[nodiscard]] std::optional<Loop> exact(std::size_t in_context) const;
  [[nodiscard]] std::optional<Loop> counting(std::size_t period) const;

  LoopRule rule_;
  std::vector<Token> output_;
  Hash block_;
  Hash seed_;
  std::unordered_map<std::uint64_t, Sayings> blocks_;
  std::unordered_map<std::uint64_t, std::size_t> seeds_;  ///< tokens up to the end of the latest saying
  std::size_t own_ = 0;                                   ///< tokens since the context has had the last block as often
};

/// The first loop of a whole output: that at which generating would have stopped.
std::optional<Loop> find_loop(TokenSpan output, TokenSpan context = {}, const LoopRule& rule = {});

}  // namespace reprise::llama
