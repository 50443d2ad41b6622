// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A JSON grammar over tokens, with the functions that grammar engines offer to a sampler (xgrammar, llguidance):
/// accept, roll back, mask, how much of a run is allowed, which tokens are forced. Small and slow, but a whole one: for
/// the example beside it and for the tests. Nothing here knows of drafts; that is the point.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/core/token.hpp"

namespace json_grammar {

using reprise::Token;
using reprise::TokenSpan;

/// The text of each token. Tokens do not end where JSON's words do: `":"` and `},{"` are tokens like any other.
class Vocabulary {
 public:
  static constexpr Token end = 0;  ///< ends the document; it has no text
  static constexpr std::size_t longest = 16;

  /// Every byte that shall be written has to be a token of its own, or a document could get stuck.
  explicit Vocabulary(const std::vector<std::string>& texts) : texts_{""} {
    texts_.insert(texts_.end(), texts.begin(), texts.end());
  }
  /// Printable ASCII, a newline, the two bytes of an e with an acute accent, and what JSON is often made of.
  static Vocabulary common() {
    std::vector<std::string> texts = {
        "\n",     "\xc3",  "\xa9",  "true", "false", "null",  "\":",  "\":\"",  "\",\"", "{\"",     "\"}",  "},{\"",
        "},",     "[{\"",  "}]",    "],[",  ", ",    ": ",    "\": ", "\": \"", "id",    "title",   "kind", "open",
        "bug",    "wish",  "quest", "ion",  "the",   " the",  "The ", " is",    " on",   "\":true", "ing",  "er",
        "\",\"k", "\":tr", "10",    "20",   "  ",    "\\u00", "\\\"", "\\n",    "True",  "False"};
    for (char byte = ' '; byte <= '~'; ++byte) texts.emplace_back(1, byte);
    return Vocabulary(texts);
  }

  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }
  [[nodiscard]] bool has_text(Token token) const noexcept {
    return token > end && static_cast<std::size_t>(token) < texts_.size();
  }
  [[nodiscard]] std::string_view text(Token token) const noexcept {
    return has_text(token) ? std::string_view(texts_[static_cast<std::size_t>(token)]) : std::string_view();
  }
  [[nodiscard]] std::string text(TokenSpan tokens) const {
    std::string all;
    for (const Token token : tokens) all += text(token);
    return all;
  }
  /// The longest token that `text` begins with.
  [[nodiscard]] std::optional<Token> longest_prefix(std::string_view text) const noexcept {
    std::optional<Token> found;
    for (std::size_t i = 1; i < texts_.size(); ++i)
      if (text.substr(0, texts_[i].size()) == texts_[i] && (!found || texts_[i].size() > this->text(*found).size()))
        found = static_cast<Token>(i);
    return found;
  }
  /// Always the longest token that fits; bytes that no token has are left out.
  [[nodiscard]] std::vector<Token> tokens(std::string_view text) const {
    std::vector<Token> all;
    while (!text.empty()) {
      const auto token = longest_prefix(text);
      if (token) all.push_back(*token);
      text.remove_prefix(token ? this->text(*token).size() : 1);
    }
    return all;
  }

 private:
  std::vector<std::string> texts_;
};

/// Which bytes a document may be made of: JSON as RFC 8259 has it, or what a schema leaves of it. A pushdown automaton
/// that reads one byte at a time. Rules are made first, from the leaves to the root:
///
///   Grammar grammar;
///   grammar.root(grammar.list(grammar.record({{"id", grammar.integer()}, {"open", grammar.boolean()}})));
///
/// Members of a record come in the order given, all of them: so their keys are forced, as in most engines.
class Grammar {
 public:
  using RuleId = std::uint16_t;
  /// Values within values; deeper ones are refused.
  static constexpr std::size_t max_depth = 32;

 private:
  struct Frame {
    RuleId rule = 0;
    std::uint8_t phase = 0;  // 0: not a byte of it has been read
    std::uint8_t left = 0;   // bytes that are still to come of a character
    std::uint8_t low = 0;    // and between which the next one lies
    std::uint8_t high = 0;
    std::uint16_t first = 0;  // words that are still possible: from here ...
    std::uint16_t last = 0;   // ... to before here
    std::uint32_t count = 0;  // characters, digits, items, members or bytes of a word so far
  };

 public:
  /// Where a document stands. A value: to look ahead, or to fork a sequence, copy it.
  class State {
    friend class Grammar;
    std::array<Frame, max_depth> frames_{};
    std::uint32_t depth_ = 0;
    std::uint32_t spaces_ = 0;  // in a row
  };
  struct Member {
    std::string key;
    RuleId value = 0;
  };

  /// `max_whitespace`: bytes of it in a row, wherever JSON allows some. Models that may write any amount sometimes
  /// write nothing else any more.
  explicit Grammar(std::size_t max_whitespace = 0) : max_whitespace_(max_whitespace) {
    // What any() is made of, in the order of the names below.
    rules_.push_back({.kind = Kind::any});
    static_cast<void>(text());
    static_cast<void>(number());
    static_cast<void>(one_of({"false", "null", "true"}));
    static_cast<void>(list(any_value));
    rules_.push_back({.kind = Kind::map});
  }

  [[nodiscard]] RuleId any() const noexcept { return any_value; }
  /// One of these JSON texts, none of which may begin another.
  RuleId one_of(std::vector<std::string> words) {
    std::sort(words.begin(), words.end());
    return add({.kind = Kind::one_of, .words = std::move(words)});
  }
  RuleId boolean() { return one_of({"false", "true"}); }
  RuleId text(std::size_t max_length = reprise::unlimited) { return add({.kind = Kind::text, .most = max_length}); }
  RuleId integer(std::size_t max_digits = reprise::unlimited) {
    return add({.kind = Kind::integer, .most = max_digits});
  }
  RuleId number() { return add({.kind = Kind::number}); }
  RuleId list(RuleId item, std::size_t min_items = 0, std::size_t max_items = reprise::unlimited) {
    return add({.kind = Kind::list, .least = min_items, .most = max_items, .item = item});
  }
  RuleId record(const std::vector<Member>& members) {
    Rule rule{.kind = Kind::record};
    for (const Member& member : members) rule.members.emplace_back(one_of({'"' + member.key + '"'}), member.value);
    return add(std::move(rule));
  }
  /// What a document is; any value, unless this is called.
  void root(RuleId rule) noexcept { root_ = rule; }

  [[nodiscard]] State start() const noexcept {
    State state;
    static_cast<void>(push(state, root_));
    return state;
  }
  /// Reads one byte. False: it is not allowed here, and `state` is of no use any more.
  [[nodiscard]] bool read(State& state, char byte) const noexcept;
  /// Whether the document may end here.
  [[nodiscard]] bool complete(const State& state) const noexcept {
    return state.depth_ == 0 || (state.depth_ == 1 && is_number(rule(top(state))) && may_end(top(state)));
  }
  /// The byte that has to come next; none where there is a choice, and to end the document is one.
  [[nodiscard]] std::optional<char> only_byte(const State& state) const noexcept {
    if (complete(state)) return {};
    std::optional<char> only;
    for (int value = 0; value < 256; ++value) {
      const char byte = static_cast<char>(value);
      State next = state;
      if (!read(next, byte)) continue;
      if (only) return {};
      only = byte;
    }
    return only;
  }

 private:
  enum class Kind : std::uint8_t { any, one_of, text, integer, number, list, record, map };
  struct Rule {
    Kind kind = Kind::any;
    std::size_t least = 0;
    std::size_t most = reprise::unlimited;
    std::vector<std::string> words = {};
    std::vector<std::pair<RuleId, RuleId>> members = {};
    RuleId item = 0;
  };
  static constexpr RuleId any_value = 0, any_text = 1, any_number = 2, any_word = 3, any_list = 4, any_map = 5;

  // Phases, behind 0: of a text, of a number, of a list, record or map.
  enum : std::uint8_t { inside = 1, escape, hex, continuation };
  enum : std::uint8_t { sign = 1, zero, digits, point, fraction, e, e_sign, exponent };
  enum : std::uint8_t { opened = 1, colon, comma };

  RuleId add(Rule rule) {
    rules_.push_back(std::move(rule));
    return static_cast<RuleId>(rules_.size() - 1);
  }
  [[nodiscard]] const Rule& rule(const Frame& frame) const noexcept { return rules_[frame.rule]; }
  static Frame& top(State& state) noexcept { return state.frames_[state.depth_ - 1]; }
  static const Frame& top(const State& state) noexcept { return state.frames_[state.depth_ - 1]; }
  [[nodiscard]] bool push(State& state, RuleId id) const noexcept {
    if (state.depth_ == max_depth) return false;
    state.frames_[state.depth_++] = {.rule = id, .last = static_cast<std::uint16_t>(rules_[id].words.size())};
    return true;
  }
  static bool pop(State& state) noexcept {
    --state.depth_;
    return true;
  }
  static bool go(Frame& frame, std::uint8_t phase) noexcept {
    frame.phase = phase;
    return true;
  }
  static bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }
  static bool is_space(char byte) noexcept { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }
  static bool is_number(const Rule& rule) noexcept { return rule.kind == Kind::integer || rule.kind == Kind::number; }
  static bool may_end(const Frame& number) noexcept {
    return number.phase == zero || number.phase == digits || number.phase == fraction || number.phase == exponent;
  }
  /// Between the words of JSON, where whitespace may be.
  [[nodiscard]] bool between_words(const Frame& frame) const noexcept {
    const Kind kind = rule(frame).kind;
    return frame.phase == 0 || kind == Kind::list || kind == Kind::record || kind == Kind::map;
  }
  static RuleId value_that_begins_with(char byte) noexcept {
    if (byte == '{') return any_map;
    if (byte == '[') return any_list;
    if (byte == '"') return any_text;
    if (byte == '-' || is_digit(byte)) return any_number;
    return any_word;
  }
  bool read_word(State& state, char byte) const noexcept;
  bool read_text(State& state, char byte) const noexcept;
  bool read_number(Frame& frame, char byte) const noexcept;

  std::size_t max_whitespace_;
  std::vector<Rule> rules_;
  RuleId root_ = any_value;
};

inline bool Grammar::read(State& state, char byte) const noexcept {
  const std::uint32_t spaces = std::exchange(state.spaces_, 0);
  for (;;) {  // a number ends where something else begins, and a list's item begins with the byte that begins it
    if (is_space(byte) && (state.depth_ == 0 || between_words(top(state)))) {
      state.spaces_ = spaces + 1;
      return spaces < max_whitespace_;
    }
    if (state.depth_ == 0) return false;
    Frame& frame = top(state);
    const Rule& rule = this->rule(frame);
    switch (rule.kind) {
      case Kind::any:
        --state.depth_;
        static_cast<void>(push(state, value_that_begins_with(byte)));
        break;
      case Kind::one_of:
        return read_word(state, byte);
      case Kind::text:
        return read_text(state, byte);
      case Kind::integer:
      case Kind::number:
        if (read_number(frame, byte)) return true;
        if (!may_end(frame)) return false;
        --state.depth_;
        break;
      case Kind::list:
        if (frame.phase == 0) return byte == '[' && go(frame, opened);
        if (byte == ']') return frame.count >= rule.least && pop(state);
        if (frame.count == rule.most || (frame.phase == comma && byte != ',')) return false;
        ++frame.count;
        if (std::exchange(frame.phase, comma) == comma) return push(state, rule.item);
        if (!push(state, rule.item)) return false;
        break;
      case Kind::record:
      case Kind::map: {
        const bool record = rule.kind == Kind::record;
        if (frame.phase == 0) return byte == '{' && go(frame, opened);
        if (frame.phase == colon)
          return byte == ':' && go(frame, comma) &&
                 push(state, record ? rule.members[frame.count++].second : any_value);
        const bool all = frame.count == rule.members.size();
        if (byte == '}' && (all || !record)) return pop(state);
        if ((all && record) || (frame.phase == comma && byte != ',')) return false;
        if (!push(state, record ? rule.members[frame.count].first : any_text)) return false;
        if (std::exchange(frame.phase, colon) == comma) return true;
        break;
      }
    }
  }
}

inline bool Grammar::read_word(State& state, char byte) const noexcept {
  Frame& frame = top(state);
  const std::vector<std::string>& words = rule(frame).words;
  while (frame.first < frame.last && words[frame.first][frame.count] != byte) ++frame.first;
  while (frame.first < frame.last && words[frame.last - 1U][frame.count] != byte) --frame.last;
  if (frame.first == frame.last) return false;
  return ++frame.count == words[frame.first].size() ? pop(state) : go(frame, inside);
}

/// Bytes, not characters: a token may end in the middle of one. So UTF-8 is checked here too.
inline bool Grammar::read_text(State& state, char byte) const noexcept {
  Frame& frame = top(state);
  const auto value = static_cast<std::uint8_t>(byte);
  switch (frame.phase) {
    case 0:
      return byte == '"' && go(frame, inside);
    case inside:
      if (byte == '"') return pop(state);
      if (value < 0x20 || frame.count == rule(frame).most) return false;
      ++frame.count;
      if (byte == '\\') return go(frame, escape);
      if (value < 0x80) return true;
      if (value < 0xc2 || value > 0xf4) return false;
      frame.left = value < 0xe0 ? 1 : value < 0xf0 ? 2 : 3;
      frame.low = value == 0xe0 ? 0xa0 : value == 0xf0 ? 0x90 : 0x80;   // longer than it needs to be
      frame.high = value == 0xed ? 0x9f : value == 0xf4 ? 0x8f : 0xbf;  // a surrogate; beyond the last character
      return go(frame, continuation);
    case escape:
      if (byte != 'u') return std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos && go(frame, inside);
      frame.left = 4;
      return go(frame, hex);
    case hex:
      if (!is_digit(byte) && !(byte >= 'a' && byte <= 'f') && !(byte >= 'A' && byte <= 'F')) return false;
      return --frame.left > 0 || go(frame, inside);
    default:
      if (value < frame.low || value > frame.high) return false;
      frame.low = 0x80;
      frame.high = 0xbf;
      return --frame.left > 0 || go(frame, inside);
  }
}

/// False also where the number has ended before this byte.
inline bool Grammar::read_number(Frame& frame, char byte) const noexcept {
  const bool real = rule(frame).kind == Kind::number;
  const bool e_may_follow = real && (frame.phase == zero || frame.phase == digits || frame.phase == fraction);
  if (e_may_follow && (byte == 'e' || byte == 'E')) return go(frame, e);
  if (real && (frame.phase == zero || frame.phase == digits) && byte == '.') return go(frame, point);
  if (frame.phase == 0 && byte == '-') return go(frame, sign);
  if (frame.phase == e && (byte == '+' || byte == '-')) return go(frame, e_sign);
  if (!is_digit(byte) || frame.phase == zero || frame.count == rule(frame).most) return false;
  ++frame.count;
  if (frame.phase == 0 || frame.phase == sign) return go(frame, byte == '0' ? zero : digits);
  if (frame.phase == point) return go(frame, fraction);
  if (frame.phase == e || frame.phase == e_sign) return go(frame, exponent);
  return true;
}

/// The grammar of one sequence: which tokens may come next.
///
/// Forced text has many tokenisations. Where nothing but `"title":` can follow, only the longest token that lies within
/// it is allowed, or one that goes on behind it; the model has no use for the choice, it has hardly seen other ones in
/// training, and tokens can be forced only where one alone is allowed.
///
/// Everything that is const looks ahead on a copy of the state, and allocates nothing.
class Matcher {
 public:
  /// Both have to outlive it.
  Matcher(const Grammar& grammar, const Vocabulary& vocabulary)
      : grammar_(&grammar), vocabulary_(&vocabulary), states_{{grammar.start(), false}} {}

  /// The next token of the sequence. False, and nothing has changed, where it is not allowed.
  bool accept(Token token) {
    Place next = states_.back();
    if (!advance(next, token)) return false;
    states_.push_back(next);
    return true;
  }
  /// Takes the last `tokens` tokens back.
  void rollback(std::size_t tokens) { states_.resize(states_.size() - std::min(tokens, accepted()), states_.front()); }
  [[nodiscard]] std::size_t accepted() const noexcept { return states_.size() - 1; }
  /// The token that ends the document has been accepted.
  [[nodiscard]] bool ended() const noexcept { return states_.back().ended; }

  /// For the sampler: writes for each token of the vocabulary 1 if it may come next, 0 if not. The expensive question.
  void mask(std::span<std::uint8_t> allowed) const noexcept {
    const Place& here = states_.back();
    const std::optional<Token> longest = longest_forced(here);
    for (std::size_t token = 0; token < allowed.size(); ++token) {
      Place next = here;
      allowed[token] = advance(next, static_cast<Token>(token), longest) ? 1 : 0;
    }
  }
  /// For drafts: how many tokens of this run may come next, one after the other. Needs no mask.
  [[nodiscard]] std::size_t allowed(TokenSpan path) const noexcept {
    Place place = states_.back();
    std::size_t count = 0;
    while (count < path.size() && advance(place, path[count])) ++count;
    return count;
  }
  /// The tokens that have to come next, each being the only one that is allowed, as many as fit; how many.
  [[nodiscard]] std::size_t forced(std::span<Token> out) const noexcept {
    Place place = states_.back();
    std::size_t count = 0;
    for (; count < out.size(); ++count) {
      const auto token = only_token(place);
      if (!token || !advance(place, *token)) break;
      out[count] = *token;
    }
    return count;
  }

 private:
  struct Place {
    Grammar::State state;
    bool ended = false;
  };

  /// Reads a token. False: it is not allowed here, and `place` is of no use any more.
  [[nodiscard]] bool advance(Place& place, Token token) const noexcept {
    const Place before = place;
    return read(place, token) && !is_too_short(token, longest_forced(before));  // most fail in read(): it comes first
  }
  /// The same for one of many, with what longest_forced(place) gives for all of them.
  [[nodiscard]] bool advance(Place& place, Token token, std::optional<Token> longest) const noexcept {
    return !is_too_short(token, longest) && read(place, token);
  }
  [[nodiscard]] bool read(Place& place, Token token) const noexcept {
    if (place.ended) return false;
    if (token == Vocabulary::end) return place.ended = grammar_->complete(place.state);
    if (!vocabulary_->has_text(token)) return false;  // drafts may hold anything
    const std::string_view text = vocabulary_->text(token);
    return std::all_of(text.begin(), text.end(), [&](char byte) { return grammar_->read(place.state, byte); });
  }
  /// All shorter tokens within the forced text are the beginning of the longest one.
  [[nodiscard]] bool is_too_short(Token token, std::optional<Token> longest) const noexcept {
    if (!longest || token == *longest || !vocabulary_->has_text(token)) return false;
    const std::string_view text = vocabulary_->text(token);
    return vocabulary_->text(*longest).substr(0, text.size()) == text;
  }
  /// The longest token that lies within the text that has to come next; none where nothing has to.
  [[nodiscard]] std::optional<Token> longest_forced(const Place& place) const noexcept {
    std::array<char, Vocabulary::longest> text{};
    std::size_t size = 0;
    Grammar::State state = place.state;
    for (; size < text.size() && !place.ended; ++size) {
      const auto byte = grammar_->only_byte(state);
      if (!byte || !grammar_->read(state, *byte)) break;
      text[size] = *byte;
    }
    return vocabulary_->longest_prefix(std::string_view(text.data(), size));
  }
  [[nodiscard]] std::optional<Token> only_token(const Place& place) const noexcept {
    const std::optional<Token> longest = longest_forced(place);
    std::optional<Token> only;
    for (std::size_t i = 0; i < vocabulary_->size(); ++i) {
      Place next = place;
      if (!advance(next, static_cast<Token>(i), longest)) continue;
      if (only) return {};
      only = static_cast<Token>(i);
    }
    return only;
  }

  const Grammar* grammar_;
  const Vocabulary* vocabulary_;
  std::vector<Place> states_;  // before the first token, and after each
};

}  // namespace json_grammar
