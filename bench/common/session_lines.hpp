// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <string>
#include <string_view>

#include "json.hpp"

namespace reprise::tools {

/// The remedy for a file of another format, in messages.
inline constexpr std::string_view convert_it = "convert it with python3 bench/replay/to_trace.py";

/// One session of a file: a JSON object on a line of its own. Errors are thrown as InputError with file, line and
/// field.
class SessionLine {
 public:
  /// Throws InputError if `text` is not JSON or not an object.
  SessionLine(std::string_view text, std::string where);

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }  ///< file and line

  [[noreturn]] void fail(const std::string& what) const;
  /// The member `key` of `json`. `at` is the prefix of the field in messages, for example "turns[0]."; empty at the top
  /// level.
  [[nodiscard]] const Json& member(const Json& json, const std::string& key, const std::string& at = {}) const;
  /// The value of `field`, which must be of this kind.
  [[nodiscard]] const std::string& string(const Json& json, const std::string& field) const;
  [[nodiscard]] const Json::Array& array(const Json& json, const std::string& field,
                                         const std::string& expected = "an array") const;

 private:
  std::string where_;
  Json json_;
};

/// Calls `read` for the first `limit` lines that are not blank. `path` is used in messages. Throws InputError if there
/// is no such line, if reading fails, or if the file begins like one of another format, which the message names.
void read_session_lines(std::istream& in, const std::string& path, std::size_t limit,
                        const std::function<void(const SessionLine&)>& read);

}  // namespace reprise::tools
