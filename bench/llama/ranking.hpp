// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::llama {

/// Ranks the tokens of a row of logits. Memory: 4 bytes for each token of the vocabulary. Threads: one at a time.
class Ranking {
 public:
  /// Returns the `most` tokens with the highest logits, highest first, or all if there are fewer. The lowest id wins a
  /// tie, and NaN loses to every number, so the first token is argmax(). Valid until the next call.
  [[nodiscard]] TokenSpan likeliest(std::span<const float> logits, std::size_t most) {
    order_.resize(logits.size());
    std::iota(order_.begin(), order_.end(), Token{0});
    const std::size_t count = std::min(most, order_.size());
    const auto better = [&](Token a, Token b) {
      const float x = logits[static_cast<std::size_t>(a)];
      const float y = logits[static_cast<std::size_t>(b)];
      if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
      if (x > y || x < y) return x > y;
      return a < b;
    };
    std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(count), order_.end(), better);
    return TokenSpan(order_).first(count);
  }

 private:
  std::vector<Token> order_;
};

}  // namespace reprise::llama
