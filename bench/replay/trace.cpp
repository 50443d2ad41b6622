// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <fstream>
#include <limits>
#include <string_view>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/session_lines.hpp"
#include "cost_curve.hpp"

namespace reprise::replay {
namespace {

std::vector<Token> tokens(const tools::SessionLine& line, const tools::Json& turn, const std::string& key,
                          const std::string& at) {
  const std::string field = at + key;
  const tools::Json::Array& items = line.array(line.member(turn, key, at), field);
  std::vector<Token> ids;
  ids.reserve(items.size());
  for (const tools::Json& item : items) {
    const tools::Json::Number* number = item.number();
    using Range = std::numeric_limits<Token>;
    if (number == nullptr || !number->integer || *number->integer < Range::min() || *number->integer > Range::max())
      line.fail(field + "[" + std::to_string(ids.size()) +
                "]: expected a token id, a whole number of 32 bits (-2147483648 to 2147483647), found " +
                (number == nullptr ? std::string(item.kind()) : "another number"));
    ids.push_back(static_cast<Token>(*number->integer));
  }
  return ids;
}

TraceSession session_of(const tools::SessionLine& line) {
  const tools::Json& json = line.json();
  TraceSession session{line.string(line.member(json, "id"), "id"),
                       line.string(line.member(json, "category"), "category"),
                       {},
                       line.where()};
  const tools::Json::Array& turns = line.array(line.member(json, "turns"), "turns");
  if (turns.empty()) line.fail("turns: is empty; a session has at least one turn");
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::string at = "turns[" + std::to_string(i) + "]";
    if (turns[i].object() == nullptr) line.fail(at + ": expected an object, found " + std::string(turns[i].kind()));
    session.turns.push_back({tokens(line, turns[i], "prompt", at + "."), tokens(line, turns[i], "output", at + ".")});
  }
  return session;
}

/// The text of a file of less than 1 MiB, otherwise nothing. Traces can be larger, but curves are not.
std::string small_file(const std::string& path) {
  std::string text(std::size_t{1} << 20, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return in.eof() ? text : std::string();
}

}  // namespace

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

TracePart part_of(std::string_view id) { return fnv1a(id) % 2 == 0 ? TracePart::a : TracePart::b; }

Trace read_trace(std::istream& in, const std::string& path, std::size_t limit) {
  Trace trace{path, {}};
  tools::read_session_lines(in, path, limit,
                            [&](const tools::SessionLine& line) { trace.sessions.push_back(session_of(line)); });
  return trace;
}

Trace read_trace(const std::string& path, std::size_t limit, std::string_view curve_option) {
  std::ifstream in = tools::open_input(path, "trace files");
  try {
    return read_trace(in, path, limit);
  } catch (const tools::InputError&) {
    const std::string text = small_file(path);
    if (looks_like_curve(text))
      throw tools::InputError(path + " is a cost curve, not a trace; give it with " + std::string(curve_option));
    if (looks_like_pass_times(text))
      throw tools::InputError(path +
                              " is a recording of pass times, not a trace; reprise-replay takes it with "
                              "--pass-times");
    throw;
  }
}

}  // namespace reprise::replay
