// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include "input_error.hpp"
#include "json.hpp"

namespace reprise::replay {
namespace {

/// Turns one line into a session; knows where it is, for messages.
class LineReader {
 public:
  LineReader(const std::string& path, std::size_t line) : where_(path + ":" + std::to_string(line)) {}

  TraceSession session(std::string_view text) const {
    Json json;
    if (const auto error = parse_json(text, json))
      fail("column " + std::to_string(error->column) + ": " + error->message);
    if (json.object() == nullptr) fail("expected an object for each session, found " + std::string(json.kind()));
    TraceSession session{string(json, "id"), string(json, "category"), {}, where_};
    const Json::Array& turns = array(json, "turns", "");
    if (turns.empty()) fail("turns: is empty; a session has at least one turn");
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const std::string at = "turns[" + std::to_string(i) + "]";
      if (turns[i].object() == nullptr) fail(at + ": expected an object, found " + std::string(turns[i].kind()));
      session.turns.push_back({tokens(turns[i], "prompt", at + "."), tokens(turns[i], "output", at + ".")});
    }
    return session;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_ + ": " + what); }
  const Json& member(const Json& json, const std::string& key, const std::string& at) const {
    const Json* found = json.find(key);
    if (found == nullptr) fail(at + key + ": missing");
    return *found;
  }
  std::string string(const Json& json, const std::string& key) const {
    const Json& found = member(json, key, "");
    if (found.string() == nullptr) fail(key + ": expected a string, found " + std::string(found.kind()));
    return *found.string();
  }
  const Json::Array& array(const Json& json, const std::string& key, const std::string& at) const {
    const Json& found = member(json, key, at);
    if (found.array() == nullptr) fail(at + key + ": expected an array, found " + std::string(found.kind()));
    return *found.array();
  }
  std::vector<Token> tokens(const Json& json, const std::string& key, const std::string& at) const {
    const Json::Array& items = array(json, key, at);
    std::vector<Token> ids;
    ids.reserve(items.size());
    for (const Json& item : items) {
      const Json::Number* number = item.number();
      using Range = std::numeric_limits<Token>;
      if (number == nullptr || !number->integer || *number->integer < Range::min() || *number->integer > Range::max())
        fail(at + key + "[" + std::to_string(ids.size()) +
             "]: expected a token id, a whole number of 32 bits (-2147483648 to 2147483647), found " +
             (number == nullptr ? std::string(item.kind()) : "another number"));
      ids.push_back(static_cast<Token>(*number->integer));
    }
    return ids;
  }

  std::string where_;
};

}  // namespace

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

TracePart part_of(std::string_view id) { return fnv1a(id) % 2 == 0 ? TracePart::a : TracePart::b; }

Trace read_trace(std::istream& in, const std::string& path, std::size_t limit) {
  Trace trace{path, {}};
  std::string line;
  for (std::size_t number = 1; trace.sessions.size() < limit && std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    trace.sessions.push_back(LineReader(path, number).session(line));
  }
  if (in.bad()) throw InputError(path + ": reading failed");
  if (trace.sessions.empty() && limit != 0)
    throw InputError(path + ": no sessions; expected one JSON object a line with \"id\", \"category\" and \"turns\"");
  return trace;
}

Trace read_trace(const std::string& path, std::size_t limit) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw InputError(path + ": is a directory; give trace files");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened; is the path right?");
  return read_trace(in, path, limit);
}

}  // namespace reprise::replay
