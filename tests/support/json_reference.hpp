// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "reprise/testing/random.hpp"

namespace reprise::testing {

/// What RFC 8259 says of a text: a recursive descent over all of it, written to be read, not to be fast. The truth that
/// grammars are held against.
class JsonReference {
 public:
  explicit JsonReference(std::string_view text) : text_(text) {
    space();
    if (value()) space();
    valid_ = !bad_ && !unfinished_ && at_ == text_.size();
  }
  [[nodiscard]] bool valid() const { return valid_; }
  /// The first byte with which the text can no longer become valid, whatever follows; its size if there is none.
  [[nodiscard]] std::size_t refused_at() const { return at_; }

 private:
  // Each function leaves at_ behind what it has read; on false it is at the byte that is wrong, or at the end.
  [[nodiscard]] bool more() {
    unfinished_ = unfinished_ || at_ == text_.size();
    return !unfinished_;
  }
  bool fail() {
    bad_ = true;
    return false;
  }
  [[nodiscard]] bool is(std::string_view set) const {
    return at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos;
  }
  void space() {
    while (is(" \t\r\n")) ++at_;
  }
  bool word(std::string_view expected) {
    for (const char byte : expected) {
      if (!more()) return false;
      if (text_[at_] != byte) return fail();
      ++at_;
    }
    return true;
  }
  bool some_digits() {
    if (!more()) return false;
    if (!is(digits)) return fail();
    while (is(digits)) ++at_;
    return true;
  }
  bool number() {
    if (is("-")) ++at_;
    if (is("0"))
      ++at_;
    else if (!some_digits())
      return false;
    if (is(".")) {
      ++at_;
      if (!some_digits()) return false;
    }
    if (is("eE")) {
      ++at_;
      if (is("+-")) ++at_;
      if (!some_digits()) return false;
    }
    return true;
  }
  bool character() {
    const auto lead = static_cast<std::uint8_t>(text_[at_]);
    const std::uint32_t bytes = lead < 0x80   ? 1
                                : lead < 0xc0 ? 0
                                : lead < 0xe0 ? 2
                                : lead < 0xf0 ? 3
                                : lead < 0xf8 ? 4
                                              : 0;
    if (bytes == 0 || lead < 0x20) return fail();
    const std::uint32_t least = bytes == 1 ? 0 : bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
    std::uint32_t known = bytes == 1 ? lead : lead & (0x7fU >> bytes);
    for (std::uint32_t read = 1;; ++read) {
      // The characters that it can still become.
      const std::uint32_t bits = 6 * (bytes - read);
      const std::uint32_t first = known << bits;
      const std::uint32_t last = first | ((1U << bits) - 1);
      if (last < least || first > 0x10ffff || (first >= 0xd800 && last <= 0xdfff)) return fail();
      ++at_;
      if (read == bytes) return true;
      if (!more()) return false;
      const auto byte = static_cast<std::uint8_t>(text_[at_]);
      if ((byte & 0xc0) != 0x80) return fail();
      known = known << 6 | (byte & 0x3f);
    }
  }
  bool string() {
    if (!word("\"")) return false;
    while (more() && !is("\"")) {
      if (!is("\\")) {
        if (!character()) return false;
        continue;
      }
      ++at_;
      if (!more()) return false;
      if (is("u")) {
        ++at_;
        for (int digit = 0; digit < 4; ++digit, ++at_) {
          if (!more()) return false;
          if (!is("0123456789abcdefABCDEF")) return fail();
        }
      } else if (is("\"\\/bfnrt")) {
        ++at_;
      } else {
        return fail();
      }
    }
    return word("\"");
  }
  /// What is between brackets: items with a comma between any two.
  template <class Item>
  bool items(std::string_view close, Item item) {
    ++at_;
    space();
    if (!more()) return false;
    if (is(close)) return ++at_, true;
    for (;;) {
      if (!item()) return false;
      space();
      if (!more()) return false;
      if (is(close)) return ++at_, true;
      if (!word(",")) return false;
      space();
    }
  }
  bool value() {
    if (!more()) return false;
    if (is("{"))
      return items("}", [&] {
        if (!string()) return false;
        space();
        if (!word(":")) return false;
        space();
        return value();
      });
    if (is("[")) return items("]", [&] { return value(); });
    if (is("\"")) return string();
    if (is("t")) return word("true");
    if (is("f")) return word("false");
    if (is("n")) return word("null");
    if (is("-") || is(digits)) return number();
    return fail();
  }

  static constexpr std::string_view digits = "0123456789";

  std::string_view text_;
  std::size_t at_ = 0;
  bool bad_ = false;
  bool unfinished_ = false;
  bool valid_ = false;
};

/// Valid JSON, all of its features, at most `depth` values within each other.
inline std::string random_json(Random& random, std::size_t depth) {
  const auto any_of = [&](std::initializer_list<std::string_view> all) {
    return std::string(all.begin()[random.below(all.size())]);
  };
  const auto space = [&] { return random.chance(80) ? std::string() : any_of({" ", "\n", "\t", "\r\n", "  "}); };
  const auto number = [&] {
    std::string text = any_of({"0", "-0", "7", "-12", "305", "1234567890"});
    if (random.chance(40)) text += any_of({".0", ".5", ".125"});
    if (random.chance(40)) text += any_of({"e3", "E+10", "e-07"});
    return text;
  };
  const auto string = [&] {
    std::string text = "\"";
    for (std::size_t i = random.below(5); i > 0; --i)
      text +=
          any_of({"a", "B c", "/", "7", "\\\"", "\\\\", "\\n", "\\/", "\\u00e9", "\\uD83D", "\x7f", "\xc3\xa9",
                  "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "{", "]"});
    return text + '"';
  };
  std::string text = space();
  const std::size_t kind = random.below(depth == 0 ? 3 : 5);
  if (kind == 0) text += any_of({"true", "false", "null"});
  if (kind == 1) text += number();
  if (kind == 2) text += string();
  if (kind >= 3) {
    text += kind == 3 ? '[' : '{';
    for (std::size_t i = 0, items = random.below(4); i < items; ++i) {
      if (i > 0) text += ',';
      if (kind == 4) text += space() + string() + space() + ':';
      text += random_json(random, depth - 1);
    }
    text += space() + (kind == 3 ? ']' : '}');
  }
  return text + space();
}

}  // namespace reprise::testing
