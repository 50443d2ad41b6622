// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::replay {

/// One exchange: what was put in, and what the model really generated. The context of a turn is all turns before
/// it and its own prompt.
struct Turn {
  std::vector<Token> prompt;
  std::vector<Token> output;
};

struct TraceSession {
  std::string id;
  std::string category;
  std::vector<Turn> turns;
  std::string where = {};  ///< file and line it was read from, for messages
};

/// A recorded file: one JSON object a line, {"id", "category", "turns": [{"prompt": [ids], "output": [ids]}]}.
/// Further fields are ignored, so are empty lines.
struct Trace {
  std::string path;  ///< as it was given
  std::vector<TraceSession> sessions;
};

/// Half of the sessions, for choices that are made on one half and judged on the other.
enum class TracePart : std::uint8_t { all, a, b };
constexpr std::string_view name(TracePart part) {
  return part == TracePart::all ? "all" : part == TracePart::a ? "a" : "b";
}

/// The half that a session belongs to, by its id alone: a where the 64-bit FNV-1a hash of its bytes is even.
TracePart part_of(std::string_view id);

/// The 64-bit FNV-1a hash of the bytes of `text` (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text);

/// Reads at most `limit` sessions, line by line. Throws InputError that names the file, the line and the field, or says
/// that the file is a cost curve; `curve_option` is the one that takes curves.
Trace read_trace(const std::string& path, std::size_t limit = unlimited, std::string_view curve_option = "--cost");

/// The same from an open stream; `path` is for messages.
Trace read_trace(std::istream& in, const std::string& path, std::size_t limit = unlimited);

}  // namespace reprise::replay
