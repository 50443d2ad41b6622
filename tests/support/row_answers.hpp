// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"
#include "reprise_testing/random.hpp"
#include "support/layers.hpp"

namespace reprise::testing {

/// The settings of picking tokens from scores.
struct SamplerOptions {
  bool sampled = false;   ///< true: draws; false: the highest score, of equal ones the lowest id
  float temperature = 1;  ///< temperature of the draw
  float penalty = 0;      ///< subtracted from a token's score for each occurrence in the last 8 tokens
  std::uint64_t seed = 1;
  std::size_t candidates = 4;  ///< top-k tokens of each row
};

/// The part of an engine after the forward pass: the answers to each row of its last pass, from the anchor's on. A pick
/// is drawn when it is read, with one random number. Penalties use the text up to the row, including the path of a
/// tree. A pass that is not settled is void: its random numbers are drawn again. Threads: one at a time.
class RowAnswers {
 public:
  /// Number of tokens that penalties use.
  static constexpr std::size_t penalized = 8;

  /// Picks that are computed when they are read. Valid until the next pass.
  class LazyPicks {
   public:
    explicit LazyPicks(RowAnswers& answers) noexcept : answers_(&answers) {}
    Token operator[](std::size_t i) const { return answers_->pick(i); }

   private:
    RowAnswers* answers_;
  };

  explicit RowAnswers(const SamplerOptions& options = {}) : options_(options), random_(options.seed) {}

  /// Begins a pass.
  void clear() {
    void_pass();
    rows_.clear();
    before_.assign(1, random_);
    open_ = true;
  }
  /// Adds the answer to the next row: the model's scores, and the end of the text up to that row.
  void add(Vector scores, TokenSpan text) {
    if (options_.sampled)
      for (const Token token : text.last(std::min(text.size(), penalized)))
        scores[static_cast<std::uint32_t>(token) % scores.size()] -= options_.penalty;
    rows_.push_back({std::move(scores), {}, {}});
  }
  /// Ends the pass with this many committed tokens. The random numbers of later picks are drawn again.
  void settle(std::size_t committed) {
    if (committed < before_.size()) random_ = before_[committed];
    open_ = false;
  }
  /// Undoes the pass.
  void void_pass() {
    if (open_) random_ = before_.front();
    open_ = false;
  }

  [[nodiscard]] bool open() const noexcept { return open_; }
  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }

  [[nodiscard]] Token pick(std::size_t i) {
    if (!options_.sampled) return ranked(i, 1).front();
    const auto shares = probabilities(i);
    double left = uniform();
    before_.push_back(random_);
    Token last = 0;
    for (std::size_t token = 0; token < shares.size(); ++token) {
      if (shares[token] <= 0) continue;
      last = static_cast<Token>(token);
      left -= static_cast<double>(shares[token]);
      if (left < 0) break;
    }
    return last;
  }
  /// Returns the distribution that pick(i) draws from; of a greedy engine, all the weight is on one token.
  [[nodiscard]] std::span<const float> probabilities(std::size_t i) {
    Row& row = rows_[i];
    if (row.probabilities.empty() && options_.sampled)
      row.probabilities = softmax(row.scores, 1 / options_.temperature);
    if (row.probabilities.empty()) {
      row.probabilities.resize(row.scores.size());
      row.probabilities[static_cast<std::size_t>(pick(i))] = 1;
    }
    return row.probabilities;
  }
  /// Returns a number in [0, 1).
  [[nodiscard]] double uniform() { return static_cast<double>(random_.next() >> 11) / 9007199254740992.0; }
  /// Returns the best tokens first; the first is the greedy pick.
  [[nodiscard]] TokenSpan top_k(std::size_t i) {
    if (rows_[i].candidates.empty()) rows_[i].candidates = ranked(i, options_.candidates);
    return rows_[i].candidates;
  }
  [[nodiscard]] std::span<const float> scores(std::size_t i) const { return rows_[i].scores; }
  /// Returns the best score minus the second best.
  [[nodiscard]] double margin(std::size_t i) const {
    const std::vector<Token> best = ranked(i, 2);
    return static_cast<double>(score(i, best[0]) - score(i, best[1]));
  }

 private:
  struct Row {
    Vector scores;
    Vector probabilities;  // computed on the first call
    std::vector<Token> candidates;
  };
  [[nodiscard]] float score(std::size_t i, Token token) const {
    return rows_[i].scores[static_cast<std::size_t>(token)];
  }
  [[nodiscard]] std::vector<Token> ranked(std::size_t i, std::size_t count) const {
    std::vector<Token> tokens(rows_[i].scores.size());
    for (std::size_t token = 0; token < tokens.size(); ++token) tokens[token] = static_cast<Token>(token);
    count = std::min(count, tokens.size());
    std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count), tokens.end(),
                      [&](Token a, Token b) { return score(i, a) != score(i, b) ? score(i, a) > score(i, b) : a < b; });
    tokens.resize(count);
    return tokens;
  }

  SamplerOptions options_;
  Random random_;
  std::vector<Row> rows_;
  std::vector<Random> before_;  // the state before the first pick of the pass, before the second, ...
  bool open_ = false;
};

}  // namespace reprise::testing
