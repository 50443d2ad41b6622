// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <reprise/reprise.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// An engine for examples about drafters: the "model" recites a text, and a token is a character.
class Player {
 public:
  Player(std::string_view text, std::size_t prompt) : text_(text), cached_(prompt - 1) {}

  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    picks_.clear();
    first_ = cached_ + batch.size() - drafted;
    for (std::size_t i = 0; i <= drafted; ++i) picks_.push_back(at(first_ + i));
    return picks_;
  }
  void commit(std::size_t keep) { cached_ += keep; }
  // Optional: turns are edited (truncate), and check_verifier() tells a near tie from a mistake (margin).
  void truncate(std::size_t size) { cached_ = size; }
  [[nodiscard]] double margin(std::size_t /*i*/) const { return 1; }

  // The likeliest tokens after row (anchor + i), for drafters that learn from them. This model knows only one.
  reprise::TokenSpan top_k(std::size_t i) { return reprise::TokenSpan(picks_).subspan(i, 1); }

 private:
  [[nodiscard]] reprise::Token at(std::size_t i) const { return i < text_.size() ? reprise::Token{text_[i]} : 0; }

  std::string text_;
  std::size_t cached_ = 0;  // rows in the cache
  std::size_t first_ = 0;   // the place in the text of the first pick of the last pass
  std::vector<reprise::Token> picks_;
};
static_assert(reprise::Verifier<Player> && reprise::TopKVerifier<Player>);
static_assert(reprise::TruncatableVerifier<Player> && reprise::MarginVerifier<Player>);

inline std::vector<reprise::Token> to_tokens(std::string_view text) { return {text.begin(), text.end()}; }
