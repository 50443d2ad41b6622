// SPDX-License-Identifier: Apache-2.0
#include "trace.hpp"

#include <cstdint>
#include <fstream>
#include <limits>
#include <string_view>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/session_lines.hpp"
#include "cost_curve.hpp"

namespace reprise::replay {
namespace {

/// Returns `item` as a token. `field()` is its name in messages, which is made only for an error.
template <class Field>
Token token(const tools::SessionLine& line, const tools::Json& item, const Field& field) {
  const tools::Json::Number* number = item.number();
  using Range = std::numeric_limits<Token>;
  if (number == nullptr || !number->integer || *number->integer < Range::min() || *number->integer > Range::max())
    line.fail(field() + ": expected a token id, a whole number of 32 bits (-2147483648 to 2147483647), found " +
              (number == nullptr ? std::string(item.kind()) : "another number"));
  return static_cast<Token>(*number->integer);
}

constexpr std::int64_t longest_head_draft = 64;

std::string element(const std::string& field, std::size_t i) { return field + "[" + std::to_string(i) + "]"; }

std::vector<Token> tokens(const tools::SessionLine& line, const tools::Json& turn, const std::string& key,
                          const std::string& at) {
  const std::string field = at + key;
  const tools::Json::Array& items = line.array(line.member(turn, key, at), field);
  std::vector<Token> ids;
  ids.reserve(items.size());
  for (const tools::Json& item : items) ids.push_back(token(line, item, [&] { return element(field, ids.size()); }));
  return ids;
}

/// Returns the top-k rows of a turn whose output has `count` tokens; nullopt if the turn has none.
std::optional<TopKRows> top_k(const tools::SessionLine& line, const tools::Json& turn, std::size_t count,
                              const std::string& at) {
  const tools::Json* found = turn.find("top_k");
  if (found == nullptr) return std::nullopt;
  const std::string field = at + "top_k";
  const tools::Json::Array& rows = line.array(*found, field, "an array of lists of token ids");
  if (rows.size() != count)
    line.fail(field + ": has the length " + std::to_string(rows.size()) + ", but output has the length " +
              std::to_string(count) + "; give one list of token ids for each output token");
  TopKRows ids;
  ids.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i].array() == nullptr)
      line.fail(element(field, i) + ": expected a list of token ids, found " + std::string(rows[i].kind()));
    const tools::Json::Array& items = *rows[i].array();
    for (std::size_t rank = 0; rank < items.size(); ++rank)
      ids.add(token(line, items[rank], [&] { return element(element(field, i), rank); }));
    ids.end_row();
  }
  return ids;
}

/// Returns the accepted lengths of a draft head in a turn whose output has `count` tokens; nullopt if it has none.
std::optional<std::vector<std::uint8_t>> head(const tools::SessionLine& line, const tools::Json& turn,
                                              std::size_t count, const std::string& at) {
  const tools::Json* found = turn.find("head");
  if (found == nullptr) return std::nullopt;
  const std::string field = at + "head";
  const tools::Json::Array& items = line.array(*found, field, "an array of numbers");
  if (items.size() != count)
    line.fail(field + ": has the length " + std::to_string(items.size()) + ", but output has the length " +
              std::to_string(count) + "; give one number for each output token");
  std::vector<std::uint8_t> lengths;
  for (const tools::Json& item : items) {
    const tools::Json::Number* number = item.number();
    if (number == nullptr || !number->integer || *number->integer < 0 || *number->integer > longest_head_draft)
      line.fail(element(field, lengths.size()) + ": expected a number of tokens from 0 to " +
                std::to_string(longest_head_draft));
    lengths.push_back(static_cast<std::uint8_t>(*number->integer));
  }
  return lengths;
}

Turn turn_of(const tools::SessionLine& line, const tools::Json& json, const std::string& at) {
  Turn turn{tokens(line, json, "prompt", at), tokens(line, json, "output", at)};
  turn.top_k = top_k(line, json, turn.output.size(), at);
  turn.head = head(line, json, turn.output.size(), at);
  return turn;
}

/// What an object is that has no "turns", and what to do; empty if it may be a session with a mistake.
std::string other_record(const tools::Json& json) {
  if (json.find("turns") != nullptr) return {};
  struct Record {
    const char* key;
    const char* name;
  };
  for (const auto& [key, name] : {Record{"conversations", "ShareGPT conversation"}, Record{"messages", "chat"},
                                  Record{"prompt_token_ids", "request of an engine"}, Record{"prompt", "request"},
                                  Record{"instruction", "instruction"}, Record{"text", "text"}})
    if (json.find(key) != nullptr)
      return std::string("\"") + key + "\": the file has " + name +
             "s, not sessions: " + std::string(tools::convert_it);
  return {};
}

TraceSession session_of(const tools::SessionLine& line) {
  const tools::Json& json = line.json();
  if (const std::string other = other_record(json); !other.empty()) line.fail(other);
  TraceSession session{line.string(line.member(json, "id"), "id"),
                       line.string(line.member(json, "category"), "category"),
                       {},
                       line.where()};
  const tools::Json::Array& turns = line.array(line.member(json, "turns"), "turns");
  if (turns.empty()) line.fail("turns: is empty; a session has at least one turn");
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const std::string at = "turns[" + std::to_string(i) + "]";
    if (turns[i].object() == nullptr) line.fail(at + ": expected an object, found " + std::string(turns[i].kind()));
    session.turns.push_back(turn_of(line, turns[i], at + "."));
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

bool has_output(const Trace& trace) {
  for (const TraceSession& session : trace.sessions)
    for (const Turn& turn : session.turns)
      if (turn.output.size() > 1) return true;
  return false;
}

bool has_top_k(std::span<const Trace> traces) {
  for (const Trace& trace : traces)
    for (const TraceSession& session : trace.sessions)
      for (const Turn& turn : session.turns)
        if (turn.top_k) return true;
  return false;
}

Trace read_trace(std::istream& in, const std::string& path, std::size_t limit) {
  Trace trace{path, {}};
  tools::read_session_lines(in, path, limit,
                            [&](const tools::SessionLine& line) { trace.sessions.push_back(session_of(line)); });
  return trace;
}

void read_sessions(const std::string& path, const std::function<void(const TraceSession&)>& visit) {
  std::ifstream in = tools::open_input(path, "trace files");
  tools::read_session_lines(in, path, unlimited, [&](const tools::SessionLine& line) { visit(session_of(line)); });
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
