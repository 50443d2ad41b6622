// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tools {

/// Returns `text` as a JSON string with quotes. Each byte that is not valid UTF-8 becomes U+FFFD.
std::string quote_json(std::string_view text);

/// Writes JSON with separators and quotes. The caller pairs begin() and end(), and gives a key before each value of an
/// object.
class JsonWriter {
 public:
  enum class Spacing : std::uint8_t { spaced, compact };  ///< {"a": 1, "b": 2} or {"a":1,"b":2}

  explicit JsonWriter(std::ostream& out, Spacing spacing = Spacing::spaced)
      : out_(out), space_(spacing == Spacing::spaced ? " " : "") {}

  JsonWriter& begin_object() { return begin('{', '}'); }
  JsonWriter& begin_array() { return begin('[', ']'); }
  /// Ends the innermost open object or array.
  JsonWriter& end();
  JsonWriter& key(std::string_view name);
  /// Starts a new line with `indent` blanks before the next item.
  JsonWriter& new_line(std::size_t indent = 0);

  /// Writes text that is JSON already, for example a number with its own format.
  JsonWriter& raw(std::string_view json);
  JsonWriter& null() { return raw("null"); }
  JsonWriter& value(std::string_view text) { return raw(quote_json(text)); }
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  template <std::integral Integer>
  JsonWriter& value(Integer integer) {
    return raw(std::to_string(integer));
  }

  template <class Value>
  JsonWriter& member(std::string_view name, const Value& of) {
    return key(name).value(of);
  }
  JsonWriter& raw_member(std::string_view name, std::string_view json) { return key(name).raw(json); }

 private:
  struct Level {
    char close;
    bool empty = true;
  };
  JsonWriter& begin(char open, char close);
  /// Writes the comma, blank or line break before an item.
  void separate();
  void break_line();

  std::ostream& out_;
  std::string_view space_;
  std::vector<Level> levels_;
  bool after_key_ = false;
  bool breaks_ = false;  // new_line() was called
  std::size_t indent_ = 0;
};

}  // namespace reprise::tools
