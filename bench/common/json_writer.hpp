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

/// `text` as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string quote_json(std::string_view text);

/// Writes JSON, separators and quotes included. The caller pairs begin() and end(), and gives keys in objects.
class JsonWriter {
 public:
  enum class Spacing : std::uint8_t { spaced, compact };  ///< {"a": 1, "b": 2} or {"a":1,"b":2}

  explicit JsonWriter(std::ostream& out, Spacing spacing = Spacing::spaced)
      : out_(out), space_(spacing == Spacing::spaced ? " " : "") {}

  JsonWriter& begin_object() { return begin('{', '}'); }
  JsonWriter& begin_array() { return begin('[', ']'); }
  /// Ends what began last.
  JsonWriter& end();
  JsonWriter& key(std::string_view name);
  /// What follows stands on a new line after `indent` blanks.
  JsonWriter& new_line(std::size_t indent = 0);

  /// Text that is JSON already: a number as it is to be spelt, say.
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
  /// What stands before an item: a comma, a blank or a new line.
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
