// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"

namespace reprise::peers {

/// The matrix of Token Recycling and RACER. For each token, it has the 8 tokens that the target ranked highest after
/// its latest row of that token. A token without a row has eight zeros, as in the authors' code, whose matrix starts
/// with zeros.
///
/// Cost: row() is one table access; learn() copies the reported tokens. Memory: 32 bytes for each token up to the
/// highest one seen, or up to a quarter more. Only grow() allocates. Without memory, rows that do not fit are zeros.
/// Threads: one at a time; copies are independent.
class RankMatrix {
 public:
  static constexpr std::size_t ranks = 8;  ///< tokens of a row

  /// `max_bytes`: upper limit of the memory. Rows that do not fit are not stored, nor are rows of negative tokens.
  explicit RankMatrix(std::size_t max_bytes) noexcept : most_rows_(max_bytes / (ranks * sizeof(Token))) {}

  /// Sets all rows to zeros.
  void clear() noexcept { std::fill(cells_.begin(), cells_.end(), Token{0}); }
  /// Lets the next grow() make a row for `token`.
  void want(Token token) noexcept {
    if (token >= 0 && static_cast<std::size_t>(token) < most_rows_)
      wanted_ = std::max(wanted_, static_cast<std::size_t>(token) + 1);
  }
  /// Allocates the wanted rows. Grows by at least a quarter if possible, so that growth is rare.
  void grow() noexcept {
    if (wanted_ <= rows()) return;
    const std::size_t generous = std::min(most_rows_, std::max(wanted_, rows() + rows() / 4));
    for (const std::size_t size : {generous, wanted_})
      if (cells_.reserve(size * ranks)) {
        static_cast<void>(cells_.resize(size * ranks, 0));
        return;
      }
  }
  /// Makes rows for the tokens 0 ... vocabulary - 1 and for those of `tokens`, as far as the byte limit allows.
  void grow(std::size_t vocabulary, TokenSpan tokens) noexcept {
    wanted_ = std::max(wanted_, std::min(vocabulary, most_rows_));
    for (const Token token : tokens) want(token);
    grow();
  }

  /// Returns the row of `token`, likeliest token first. Valid until the matrix changes.
  [[nodiscard]] std::span<const Token, ranks> row(Token token) const noexcept {
    if (!has_row(token)) return zeros;
    return std::span<const Token, ranks>(cells_.data() + static_cast<std::size_t>(token) * ranks, ranks);
  }
  /// Replaces the row of `token`. Ranks that `likeliest` lacks become zero, but an empty list changes nothing.
  void learn(Token token, TokenSpan likeliest) noexcept {
    for (std::size_t rank = 0; rank < std::min(likeliest.size(), ranks); ++rank) put(token, rank, likeliest[rank]);
  }
  /// Replaces the rows of all tokens for which the pass reported a row, accepted or rejected. `anchor` is the last
  /// committed token. If several rows of the pass hold the same token, the row reported last wins.
  void learn(Token anchor, const Outcome& outcome) noexcept {
    for (const Outcome::RankedToken& candidate : outcome.top_k) {
      if (candidate.after == anchor_parent)
        put(anchor, candidate.rank, candidate.token);
      else if (candidate.after >= 0 && static_cast<std::size_t>(candidate.after) < outcome.draft.size())
        put(outcome.draft[static_cast<std::size_t>(candidate.after)].token, candidate.rank, candidate.token);
    }
  }

  /// Returns the number of rows, which belong to the tokens 0 ... rows() - 1.
  [[nodiscard]] std::size_t rows() const noexcept { return cells_.size() / ranks; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return cells_.memory_bytes(); }

 private:
  static constexpr std::array<Token, ranks> zeros{};

  [[nodiscard]] bool has_row(Token token) const noexcept {
    return token >= 0 && static_cast<std::size_t>(token) < rows();
  }
  /// Writes one token of a row. Rank 0 clears the row first.
  void put(Token token, std::size_t rank, Token likely) noexcept {
    want(token);
    want(likely);
    if (!has_row(token) || rank >= ranks) return;
    Token* const row = cells_.data() + static_cast<std::size_t>(token) * ranks;
    if (rank == 0) std::fill_n(row, ranks, Token{0});
    row[rank] = likely;
  }

  std::size_t most_rows_;
  std::size_t wanted_ = 0;  // the highest token seen + 1
  detail::Buffer<Token> cells_;
};

}  // namespace reprise::peers
