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
  /// A number. `integer` is set if the text spells a whole number that fits 64 bits, as token ids must.
  struct Number {
    double value = 0;
    std::optional<std::int64_t> integer;
  };
  using Array = std::vector<Json>;
  /// keys[i] belongs to values[i], in the order of the text. Two vectors, because not every standard library supports a
  /// vector of pairs with an incomplete Json.
  struct Object {
    std::vector<std::string> keys;
    std::vector<Json> values;
  };
  using Value = std::variant<std::nullptr_t, bool, Number, std::string, Array, Object>;

  /// Replaces the value by one of type T.
  template <class T>
  void set(T value) {
    value_.template emplace<T>(std::move(value));
  }

  /// The value if it is of this kind, otherwise null.
  [[nodiscard]] const Number* number() const { return std::get_if<Number>(&value_); }
  [[nodiscard]] const std::string* string() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const Array* array() const { return std::get_if<Array>(&value_); }
  [[nodiscard]] const Object* object() const { return std::get_if<Object>(&value_); }
  [[nodiscard]] const bool* boolean() const { return std::get_if<bool>(&value_); }
  /// The member of an object; null if there is none or if this is not an object.
  [[nodiscard]] const Json* find(std::string_view key) const;
  /// "a number", "an array" and the like, for messages.
  [[nodiscard]] std::string_view kind() const;

 private:
  Value value_ = nullptr;
};

/// The place where a text stops being JSON. Lines and columns count from 1; columns count bytes.
struct JsonError {
  std::size_t line = 1;
  std::size_t column = 1;
  std::string message;
};

/// Reads one value that takes up the whole text. Strict: no comments, no trailing commas, no duplicate keys, no lone
/// surrogates, valid UTF-8 only, at most 64 levels deep. Returns the error, if any; `out` then holds the part before
/// it.
std::optional<JsonError> parse_json(std::string_view text, Json& out);

}  // namespace reprise::tools
