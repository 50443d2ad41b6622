// SPDX-License-Identifier: Apache-2.0
#include "session_lines.hpp"

#include <utility>

#include "input_error.hpp"
#include "text.hpp"

namespace reprise::tools {

SessionLine::SessionLine(std::string_view text, std::string where) : where_(std::move(where)) {
  if (const auto error = parse_json(text, json_))
    fail("column " + std::to_string(error->column) + ": " + error->message);
  if (json_.object() == nullptr) fail("expected an object for each session, found " + std::string(json_.kind()));
}

void SessionLine::fail(const std::string& what) const { throw InputError(where_ + ": " + what); }

const Json& SessionLine::member(const Json& json, const std::string& key, const std::string& at) const {
  const Json* found = json.find(key);
  if (found == nullptr) fail(at + key + ": missing");
  return *found;
}

const std::string& SessionLine::string(const Json& json, const std::string& field) const {
  if (json.string() == nullptr) fail(field + ": expected a string, found " + std::string(json.kind()));
  return *json.string();
}

const Json::Array& SessionLine::array(const Json& json, const std::string& field, const std::string& expected) const {
  if (json.array() == nullptr) fail(field + ": expected " + expected + ", found " + std::string(json.kind()));
  return *json.array();
}

void read_session_lines(std::istream& in, const std::string& path, std::size_t limit,
                        const std::function<void(const SessionLine&)>& read) {
  std::size_t sessions = 0;
  std::string line;
  for (std::size_t number = 1; sessions < limit && std::getline(in, line); ++number) {
    const std::string_view text = number == 1 ? without_byte_order_mark(line) : line;
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    read(SessionLine(text, path + ":" + std::to_string(number)));
    ++sessions;
  }
  if (in.bad()) throw InputError(path + ": reading failed");
  if (sessions == 0 && limit != 0)
    throw InputError(path + ": no sessions; expected one JSON object a line with \"id\", \"category\" and \"turns\"");
}

}  // namespace reprise::tools
