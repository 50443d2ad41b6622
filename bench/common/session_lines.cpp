// SPDX-License-Identifier: Apache-2.0
#include "session_lines.hpp"

#include <array>
#include <utility>

#include "input_error.hpp"
#include "text.hpp"

namespace reprise::tools {
namespace {

/// What a file is that begins with these bytes, and what to do; empty if it can be lines of JSON.
std::string other_format(std::string_view head) {
  using namespace std::string_view_literals;
  struct Format {
    std::string_view begin;
    std::string_view name;
    std::string_view remedy = convert_it;
  };
  constexpr std::string_view unpack = "unpack it first";
  constexpr std::string_view save = "save its records as JSON first";
  // UTF-32 comes first, because its mark begins like that of UTF-16.
  constexpr std::array formats = {
      Format{"\xff\xfe\0\0"sv, "text in UTF-32"},      Format{"\0\0\xfe\xff"sv, "text in UTF-32"},
      Format{"\xff\xfe"sv, "text in UTF-16"},          Format{"\xfe\xff"sv, "text in UTF-16"},
      Format{"\x1f\x8b"sv, "compressed by gzip"},      Format{"\x28\xb5\x2f\xfd"sv, "compressed by zstd", unpack},
      Format{"BZh"sv, "compressed by bzip2", unpack},  Format{"\xfd\x37zXZ"sv, "compressed by xz", unpack},
      Format{"PK\x03\x04"sv, "a zip archive", unpack}, Format{"PAR1"sv, "a Parquet table", save},
      Format{"\x89HDF"sv, "an HDF5 file", save},       Format{"<"sv, "a page in HTML or XML", save}};
  const auto is = [](const Format& format) { return std::string(format.name) + ": " + std::string(format.remedy); };
  for (const Format& format : formats)
    if (head.starts_with(format.begin)) return is(format);
  if (head.size() > 1 && (head[0] == '\0') != (head[1] == '\0')) return is({{}, "text in UTF-16"});
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  if (head[begin] == '[') return is({{}, "a JSON array, not one object a line"});
  const std::size_t next = head.find_first_not_of(" \t\r", begin + 1);
  if (head[begin] == '{' && next != std::string_view::npos && head[next] == '\n')
    return is({{}, "an indented JSON object, not one object a line"});
  return {};
}

}  // namespace

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
    if (sessions == 0)
      if (const std::string other = other_format(std::string(text) + (in.eof() ? "" : "\n")); !other.empty())
        throw InputError(path + ":" + std::to_string(number) + ": the file is " + other);
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    read(SessionLine(text, path + ":" + std::to_string(number)));
    ++sessions;
  }
  if (in.bad()) throw InputError(path + ": reading failed");
  if (sessions == 0 && limit != 0)
    throw InputError(path + ": no sessions; expected one JSON object a line with \"id\", \"category\" and \"turns\"");
}

}  // namespace reprise::tools
