// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <istream>
#include <string>
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
};

/// A recorded file: one JSON object a line, {"id", "category", "turns": [{"prompt": [ids], "output": [ids]}]}.
/// Further fields are ignored, so are empty lines.
struct Trace {
  std::string path;  ///< as it was given
  std::vector<TraceSession> sessions;
};

/// Reads at most `limit` sessions, line by line. Throws InputError that names the file, the line and the field.
Trace read_trace(const std::string& path, std::size_t limit = unlimited);

/// The same from an open stream; `path` is for messages.
Trace read_trace(std::istream& in, const std::string& path, std::size_t limit = unlimited);

}  // namespace reprise::replay
