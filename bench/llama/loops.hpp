// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::llama {

/// The rules by which an output counts as a loop. Either rule is enough.
///
/// exact: the last `window` output tokens form a block that occurs at least `sayings` more times in the output than in
/// the context. Overlapping occurrences count. Text of period p is found after window + (sayings - 1) x p tokens. So
/// short blocks must repeat more often: 50 equal tokens, 7 equal table rows of 10 tokens, 3 equal paragraphs.
///
/// counting: the last W = max(counted_window, 3 x p) tokens equal the tokens p places earlier, except at most one in
/// `counted_change`: "Item 12: see above. Item 13: see above. ...". If a block of `window` tokens occurs in the context
/// at least as often as in the output so far, none of the W tokens may end it. This is an approximate tandem repeat of
/// Hamming distance, at least four periods long.
///
/// The context holds prompts and earlier turns. Occurrences in it are discounted because a copy of repetitive input is
/// no loop: for example, a file with three equal blocks.
struct LoopRule {
  std::size_t window = 48;          ///< 1 or more
  std::size_t sayings = 3;          ///< 2 or more
  std::size_t counted_window = 96;  ///< `seed` or more
  std::size_t counted_change = 12;
  std::size_t seed = 8;  ///< p is the distance from the previous occurrence of the last `seed` tokens
};

struct Loop {
  std::size_t found = 0;   ///< output tokens when the loop was found
  std::size_t period = 0;  ///< distance between occurrences
  std::size_t keep = 0;    ///< output tokens before it begins to repeat itself: one occurrence stays
};

/// Watches one turn's output as it is generated.
///
/// Cost of add(): two rolling hashes and two look-ups, plus up to W comparisons if the last `seed` tokens occurred
/// before. Memory: about 100 bytes per token of context and output. Threads: one at a time.
///
/// vLLM's repetition_detection stops at a block that occurs several times in a row. The exact rule generalises this to
/// blocks with other text between them.
class LoopDetector {
 public:
  explicit LoopDetector(TokenSpan context = {}, const LoopRule& rule = {});

  /// Adds the next token of the output. Returns the loop if this token completes one. Later tokens are judged again.
  std::optional<Loop> add(Token token);

 private:
  struct Sayings {
    std::size_t context = 0;
    std::size_t output = 0;
  };
  /// The hash of the last `length` tokens of a growing text.
  class Hash {
   public:
    explicit Hash(std::size_t length);
    /// Call after each token added to `text`. Returns false while `text` is shorter than `length`.
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
  std::unordered_map<std::uint64_t, std::size_t> seeds_;  ///< output length at the end of the latest occurrence
  std::size_t own_ = 0;                                   ///< tokens since the last block that the context has as often
};

/// The first loop of a whole output, at which generation would have stopped.
std::optional<Loop> find_loop(TokenSpan output, TokenSpan context = {}, const LoopRule& rule = {});

}  // namespace reprise::llama
