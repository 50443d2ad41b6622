// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::testing::detail {

/// Lends copies of a context. Each call receives the tokens at a different address from the previous call, and the copy
/// is overwritten after the call. So a strategy that keeps the span and reads it later drafts different tokens from one
/// that does not. With contexts of up to `longest` tokens, an old span still points into memory of this class: a report
/// is more useful than a crash.
///
/// Cost: writes the context twice per call. Threads: one at a time.
class LentCopy {
 public:
  explicit LentCopy(std::size_t longest = 0) {
    for (std::vector<Token>& place : places_) place.reserve(longest);
  }

  /// Calls `call(copy)`, then overwrites the copy.
  template <class Call>
  void lend(TokenSpan context, Call&& call) {
    at_ = (at_ + 1) % places_.size();
    std::vector<Token>& place = places_[at_];
    place.assign(context.begin(), context.end());
    call(TokenSpan(place));
    poison_ = poison_ % 1000 + 1;
    std::fill(place.begin(), place.end(), static_cast<Token>(-1000 - poison_));
  }

 private:
  std::array<std::vector<Token>, 3> places_;
  std::size_t at_ = 0;
  Token poison_ = 0;
};

}  // namespace reprise::testing::detail
