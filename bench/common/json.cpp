// SPDX-License-Identifier: Apache-2.0
#include "json.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "number.hpp"
#include "utf8.hpp"

namespace reprise::tools {
namespace {

constexpr int deepest = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<JsonError> whole(Json& out) {
    if (value(out, 0) && (skip_space(), at_ != text_.size())) fail("text after the end of the value");
    return error_;
  }

 private:
  bool fail(std::string message) { return fail_at(at_, std::move(message)); }
  bool fail_at(std::size_t at, std::string message) {
    if (error_) return false;
    const std::string_view before = text_.substr(0, at);
    const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::size_t newline = before.rfind('\n');
    error_ = JsonError{line, newline == std::string_view::npos ? at + 1 : at - newline, std::move(message)};
    return false;
  }

  [[nodiscard]] bool ended() const { return at_ == text_.size(); }
  [[nodiscard]] char peek() const { return ended() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (ended() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (!ended() && (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')) ++at_;
  }
  bool expected(std::string_view what) {
    return fail(ended() ? "the text ends where " + std::string(what) + " should be" : "expected " + std::string(what));
  }

  bool value(Json& out, int depth) {
    skip_space();
    if (depth > deepest) return fail("nested more than 64 levels deep");
    switch (peek()) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"': {
        std::string text;
        if (!string(text)) return false;
        out.set(std::move(text));
        return true;
      }
      case 't':
        return word("true", true, out);
      case 'f':
        return word("false", false, out);
      case 'n':
        return word("null", nullptr, out);
      default:
        return number(out);
    }
  }

  template <class T>
  bool word(std::string_view spelling, T meaning, Json& out) {
    if (text_.substr(at_, spelling.size()) != spelling) return expected("a value");
    at_ += spelling.size();
    out.set(meaning);
    return true;
  }

  bool object(Json& out, int depth) {
    Json::Object members;
    ++at_;
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        const std::size_t start = at_;
        std::string key;
        if (peek() != '"') return expected("a key in quotes");
        if (!string(key)) return false;
        if (std::find(members.keys.begin(), members.keys.end(), key) != members.keys.end())
          return fail_at(start, "the key \"" + key + "\" occurs twice");
        skip_space();
        if (!take(':')) return expected("':'");
        members.keys.push_back(std::move(key));
        if (!value(members.values.emplace_back(), depth + 1)) return false;
        skip_space();
      } while (take(','));
      if (!take('}')) return expected("',' or '}'");
    }
    out.set(std::move(members));
    return true;
  }

  bool array(Json& out, int depth) {
    Json::Array items;
    ++at_;
    skip_space();
    if (!take(']')) {
      do {
        if (!value(items.emplace_back(), depth + 1)) return false;
        skip_space();
      } while (take(','));
      if (!take(']')) return expected("',' or ']'");
    }
    out.set(std::move(items));
    return true;
  }

  bool digits() {
    const std::size_t start = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return at_ != start;
  }

  bool number(Json& out) {
    const std::size_t start = at_;
    const bool negative = take('-');
    if (!take('0') && !digits()) return negative ? expected("a digit") : expected("a value");
    bool whole = true;
    if (take('.')) {
      whole = false;
      if (!digits()) return expected("a digit");
    }
    if (take('e') || take('E')) {
      whole = false;
      if (!take('+')) take('-');
      if (!digits()) return expected("a digit");
    }
    const std::string_view spelling = text_.substr(start, at_ - start);
    const auto real = parse_real(spelling);
    if (!real) return fail_at(start, "the number does not fit a double");
    out.set(Json::Number{*real, whole ? parse_integer(spelling) : std::nullopt});
    return true;
  }

  bool string(std::string& out) {
    const std::size_t start = at_++;
    while (true) {
      if (ended()) return fail_at(start, "the text ends inside this string");
      const char c = peek();
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a string has to be escaped");
      if (c == '\\') {
        if (!escape(out)) return false;
        continue;
      }
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) return fail("not UTF-8");
      out.append(text_.substr(at_, length));
      at_ += length;
    }
    ++at_;
    return true;
  }

  bool escape(std::string& out) {
    const std::size_t start = at_++;
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (const std::size_t i = ended() ? std::string_view::npos : names.find(peek()); i != std::string_view::npos) {
      out.push_back(meanings[i]);
      ++at_;
      return true;
    }
    std::uint32_t point = 0;
    if (!take('u') || !hex(point)) return fail_at(start, "an unknown or broken escape");
    if (point >= 0xd800 && point < 0xdc00) {
      std::uint32_t low = 0;
      if (!take('\\') || !take('u') || !hex(low) || low < 0xdc00 || low > 0xdfff)
        return fail_at(start, "half of a surrogate pair");
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    } else if (point >= 0xdc00 && point < 0xe000) {
      return fail_at(start, "half of a surrogate pair");
    }
    append_utf8(out, point);
    return true;
  }

  bool hex(std::uint32_t& out) {
    const std::string_view four = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(four.data(), four.data() + four.size(), out, 16);
    if (four.size() != 4 || error != std::errc() || end != four.data() + 4) return false;
    at_ += 4;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<JsonError> error_;
};

}  // namespace

const Json* Json::find(std::string_view key) const {
  const Object* members = object();
  if (members == nullptr) return nullptr;
  const auto at = std::find(members->keys.begin(), members->keys.end(), key);
  return at == members->keys.end() ? nullptr : &members->values[static_cast<std::size_t>(at - members->keys.begin())];
}

std::string_view Json::kind() const {
  constexpr std::string_view kinds[] = {"null", "a boolean", "a number", "a string", "an array", "an object"};
  return kinds[value_.index()];
}

std::optional<JsonError> parse_json(std::string_view text, Json& out) { return Reader(text).whole(out); }

}  // namespace reprise::tools
