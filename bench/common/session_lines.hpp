// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <string>
#include <string_view>

#include "json.hpp"

namespace reprise::tools {

/// A session as it stands in a file, a JSON object on a line of its own. Knows where that is: whatever is wrong with it
/// is thrown as InputError with file, line and field.
class SessionLine {
 public:
  /// Throws InputError: no JSON, or no object.
  SessionLine(std::string_view text, std::string where);

  [[nodiscard]] const Json& json() const { return json_; }
  [[nodiscard]] const std::string& where() const { return where_; }  ///< file and line

  [[noreturn]] void fail(const std::string& what) const;
  /// A member of `json`, a part of this line that stands at `at`, as "turns[0]."; empty: all of it.
  [[nodiscard]] const Json& member(const Json& json, const std::string& key, const std::string& at = {}) const;
  /// What stands in `field`, if it is of that kind.
  [[nodiscard]] const std::string& string(const Json& json, const std::string& field) const;
  [[nodiscard]] const Json::Array& array(const Json& json, const std::string& field,
                                         const std::string& expected = "an array") const;

 private:
  std::string where_;
  Json json_;
};

/// Calls `read` for the first `limit` lines that are not blank. `path` is for messages. Throws InputError where there
/// is none, or reading fails.
void read_session_lines(std::istream& in, const std::string& path, std::size_t limit,
                        const std::function<void(const SessionLine&)>& read);

}  // namespace reprise::tools
