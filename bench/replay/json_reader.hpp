// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/input_error.hpp"
#include "common/json.hpp"

namespace reprise::replay {

/// Reads the fields of a JSON file. Errors are InputErrors that name the file and the field; `at` is the start of the
/// field's name, as in "points[3].".
class JsonReader {
 public:
  explicit JsonReader(const std::string& path) : path_(path) {}

  /// The object that `text` holds.
  tools::Json object(std::string_view text) const {
    tools::Json json;
    if (const auto error = tools::parse_json(text, json))
      throw tools::InputError(path_ + ":" + std::to_string(error->line) + ": column " + std::to_string(error->column) +
                              ": " + error->message);
    if (json.object() == nullptr) fail("expected an object, found " + std::string(json.kind()));
    return json;
  }
  [[noreturn]] void fail(const std::string& what) const { throw tools::InputError(path_ + ": " + what); }

  const tools::Json& member(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json* found = json.find(key);
    if (found == nullptr) fail(at + key + ": missing");
    return *found;
  }
  const tools::Json::Array& array(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json& found = member(json, at, key);
    if (found.array() == nullptr) fail(at + key + ": expected an array, found " + std::string(found.kind()));
    return *found.array();
  }
  std::size_t count(const tools::Json& json, const std::string& at, const std::string& key) const {
    const tools::Json::Number* number = member(json, at, key).number();
    if (number == nullptr || !number->integer || *number->integer < 0)
      fail(at + key + ": expected a whole number that is not negative");
    return static_cast<std::size_t>(*number->integer);
  }
  /// The time in `json`, which is named `name` in messages.
  double time(const tools::Json& json, const std::string& name) const {
    const tools::Json::Number* number = json.number();
    if (number == nullptr || !(number->value > 0)) fail(name + ": expected a time in nanoseconds, above 0");
    return number->value;
  }

 private:
  const std::string& path_;
};

}  // namespace reprise::replay
