// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace reprise::tools {

/// One JSON value (RFC 8259).
class Json {
 public:
  /// A number keeps whether it was spelt as a whole number that fits 64 bits: token ids must be.
  struct Number {
    double value = 0;
    std::optional<std::int64_t> integer;
  };
  using Array = std::vector<Json>;
  /// keys[i] belongs to values[i], in the order of the text. (A vector of pairs of a string and an incomplete Json is
  /// not to be had with every standard library.)
  struct Object {
    std::vector<std::string> keys;
    std::vector<Json> values;
  };
  using Value = std::variant<std::nullptr_t, bool, Number, std::string, Array, Object>;

  /// Becomes a value of that kind.
  template <class T>
  void set(T value) {
    value_.template emplace<T>(std::move(value));
  }

  /// The value if it is of that kind, else null.
  [[nodiscard]] const Number* number() const { return std::get_if<Number>(&value_); }
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* object() const { return std::get_if<Object>(&value_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value_); }
  /// The member of an object; null when there is none, or this is no object.
  [[nodiscard]] const Json* find(std::string_view key) const;
  /// "a number", "an array" ...: for messages.
  [[nodiscard]] std::string_view kind() const;

 private:
  Value value_ = nullptr;
};

/// Where a text stops being JSON. Lines and columns count from 1; columns count bytes.
struct JsonError {
  std::size_t line = 1;
  std::size_t column = 1;
  std::string message;
};

/// Reads one value that takes up the whole text. Strict: no comments, no trailing commas, no duplicate keys, no
/// lone surrogates, valid UTF-8 only, at most 64 levels deep. Answers the error, if there is one; `out` is then
/// whatever was read before.
std::optional<JsonError> parse_json(std::string_view text, Json& out);

}  // namespace reprise::tools
