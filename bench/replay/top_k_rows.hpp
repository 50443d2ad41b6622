// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::replay {

/// The rows of an output: for each output token, the target's likeliest tokens at the row that picked it, likeliest
/// first. All rows are in one array, so a row costs its tokens and 8 bytes.
class TopKRows {
 public:
  /// The number of rows.
  [[nodiscard]] std::size_t size() const { return ends_.size(); }
  /// The tokens of row `i`. Valid until the rows change. Requires i < size().
  [[nodiscard]] TokenSpan operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return TokenSpan(tokens_).subspan(begin, ends_[i] - begin);
  }
  /// Appends a token to the last row, which end_row() has not ended yet.
  void add(Token token) { tokens_.push_back(token); }
  void end_row() { ends_.push_back(tokens_.size()); }
  /// Appends a whole row.
  void add_row(TokenSpan row) {
    tokens_.insert(tokens_.end(), row.begin(), row.end());
    end_row();
  }
  /// Keeps the first `rows` rows. Has no effect if there are fewer.
  void truncate(std::size_t rows) {
    if (rows >= size()) return;
    ends_.resize(rows);
    tokens_.resize(rows == 0 ? 0 : ends_.back());
  }
  void reserve(std::size_t rows) { ends_.reserve(rows); }

  friend bool operator==(const TopKRows&, const TopKRows&) = default;

 private:
  std::vector<Token> tokens_;
  std::vector<std::size_t> ends_;  // the end of each row in tokens_
};

}  // namespace reprise::replay
