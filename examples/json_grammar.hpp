// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A grammar over tokens, with the functions that grammar engines offer (xgrammar, llguidance): accept, roll
/// back, mask, the allowed length of a run, the forced tokens. It knows one form of document, a JSON list of items with
/// fixed keys. That is enough for the example and for the tests. Nothing here depends on drafts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"

namespace json_grammar {

using reprise::Token;
using reprise::TokenSpan;

/// The vocabulary. Each entry is one character for the kind, which the grammar names, then the token's text. Kind '.'
/// ends the document, and no grammar allows kind '?'.
inline const std::vector<std::string_view> words = [] {
  constexpr std::string_view all =
      ".|[[|]]|{{|}}|,,|i\"id\":|k\"kind\":|t\"title\":\"|o,\"open\":|q\"|btrue|bfalse|c\"bug\"|c\"wish\"|"
      "c\"question\"|"
      "d1|d2|d3|d4|d5|d6|d7|d8|d9|wThe |wlamp |wking |wis |won |wsinging |wopen |wring |? |?\n|?: |?True|?as JSON: |";
  std::vector<std::string_view> split;
  for (std::size_t from = 0, to = 0; (to = all.find('|', from)) != all.npos; from = to + 1)
    split.push_back(all.substr(from, to - from));
  return split;
}();
inline constexpr Token end = 0;  ///< ends the document; it has no text

inline char kind_of(std::size_t token) { return words[token][0]; }
inline std::string_view text_of(std::size_t token) { return words[token].substr(1); }
inline std::string text_of(TokenSpan tokens) {
  std::string text;
  for (const Token token : tokens) text += text_of(static_cast<std::size_t>(token));
  return text;
}
/// Splits the text into tokens, the longest match first. Characters that begin no token are left out.
inline std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  while (!text.empty()) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
      if (text.starts_with(text_of(i)) && text_of(i).size() > text_of(best).size()) best = i;
    if (best != 0) tokens.push_back(static_cast<Token>(best));
    text.remove_prefix(best == 0 ? 1 : text_of(best).size());
  }
  return tokens;
}

/// A list of `least` to `most` items in brackets. An item is a string of kinds: "{id,b}" is an opening brace, the key
/// "id", digits, a comma, a boolean and a closing brace. Digits and words come one to five in a row.
struct Grammar {
  std::string item;
  std::size_t least, most;

  struct State {
    enum Phase : std::uint8_t { before, in_item, after_item, closed, ended } phase = before;
    std::size_t at = 0;       // index of the next kind in `item`
    std::size_t repeats = 0;  // how often the digit or word before it has been read
    std::size_t items = 0;    // complete items
  };
  static constexpr std::size_t most_repeats = 5;

  /// Reads a token and advances `state`. Returns false, with `state` unchanged, if the token is not allowed here.
  [[nodiscard]] bool read(State& state, Token token) const noexcept {
    if (token < 0 || static_cast<std::size_t>(token) >= words.size()) return false;  // drafts may hold any value
    const char kind = kind_of(static_cast<std::size_t>(token));
    const auto moves = [&](bool allowed, State::Phase to) { return allowed && (state.phase = to, state.at = 0, true); };
    switch (state.phase) {
      case State::before:
        return moves(kind == '[', State::in_item);
      case State::after_item:
        if (kind == ',') return moves(state.items < most, State::in_item);
        return moves(kind == ']' && state.items >= least, State::closed);
      case State::closed:
        return moves(kind == '.', State::ended);
      case State::ended:
        return false;
      case State::in_item:
        break;
    }
    if (state.repeats > 0 && state.repeats < most_repeats && kind == item[state.at - 1]) return ++state.repeats, true;
    if (kind != item[state.at]) return false;
    state.repeats = kind == 'd' || kind == 'w' ? 1 : 0;
    if (++state.at == item.size()) state.phase = State::after_item, ++state.items;
    return true;
  }
};

/// Follows one document under a grammar, which must outlive it. To look ahead, it reads on in a copy of its state.
class Matcher {
 public:
  explicit Matcher(const Grammar& grammar) : grammar_(&grammar), states_(1) {}

  [[nodiscard]] bool accept(Token token) {
    Grammar::State state = states_.back();
    return grammar_->read(state, token) && (states_.push_back(state), true);
  }
  void rollback(std::size_t tokens) { states_.resize(states_.size() - tokens); }
  /// Returns the tokens that may come next, for samplers.
  [[nodiscard]] std::vector<Token> mask() const { return mask(states_.back()); }
  /// Returns how many tokens of `path` the grammar allows one after the other, for drafts. Needs no mask.
  [[nodiscard]] std::size_t allowed(TokenSpan path) const noexcept {
    Grammar::State state = states_.back();
    std::size_t count = 0;
    while (count < path.size() && grammar_->read(state, path[count])) ++count;
    return count;
  }
  /// Writes the forced tokens, each the only one that is allowed, until `out` is full. Returns their number.
  [[nodiscard]] std::size_t forced(std::span<Token> out) const {
    Grammar::State state = states_.back();
    for (std::size_t count = 0;; ++count) {
      const std::vector<Token> next = mask(state);
      if (count == out.size() || next.size() != 1 || !grammar_->read(state, next.front())) return count;
      out[count] = next.front();
    }
  }

 private:
  [[nodiscard]] std::vector<Token> mask(const Grammar::State& from) const {
    std::vector<Token> allowed;
    for (Token token = 0; static_cast<std::size_t>(token) < words.size(); ++token)
      if (Grammar::State state = from; grammar_->read(state, token)) allowed.push_back(token);
    return allowed;
  }

  const Grammar* grammar_;
  std::vector<Grammar::State> states_;  // the state before the first token, and after each
};

}  // namespace json_grammar
