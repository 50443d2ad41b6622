// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/core/token.hpp"
#include "top_k_rows.hpp"

namespace reprise::replay {

/// One exchange: the prompt and the output that the model generated. The context of a turn is all earlier turns and its
/// own prompt.
struct Turn {
  std::vector<Token> prompt;
  std::vector<Token> output;
  std::optional<TopKRows> top_k = {};  ///< one row for each output token; nullopt: not recorded
  /// For each output token: how many tokens of a draft head's draft would have been accepted, if the draft had begun
  /// with this one. nullopt: not recorded.
  std::optional<std::vector<std::uint8_t>> head = {};
};

struct TraceSession {
  std::string id;
  std::string category;
  std::vector<Turn> turns;
  std::string where = {};  ///< file and line, for messages
};

/// A recorded file: one JSON object per line, {"id", "category", "turns": [{"prompt": [ids], "output": [ids]}]}.
/// A turn may have "top_k": [[ids], ...], one list for each output token, and "head":
/// [numbers], one number for each. Further fields and blank lines are ignored.
struct Trace {
  std::string path;  ///< as it was given
  std::vector<TraceSession> sessions;
};

/// Half of the sessions, so that a choice made on one half can be judged on the other.
enum class TracePart : std::uint8_t { all, a, b };
constexpr std::string_view name(TracePart part) {
  return part == TracePart::all ? "all" : part == TracePart::a ? "a" : "b";
}

/// The half that a session belongs to, by its id alone: a if the 64-bit FNV-1a hash of its bytes is even.
TracePart part_of(std::string_view id);

/// True if a turn has a token to draft. The first output token of a turn is free.
[[nodiscard]] bool has_output(const Trace& trace);
/// True if a turn of some session has top-k rows.
bool has_top_k(std::span<const Trace> traces);

/// The 64-bit FNV-1a hash of the bytes of `text` (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text);

/// Reads at most `limit` sessions, line by line. Throws InputError with the file, the line and the field. If the file
/// is a cost curve, the message says so and names `curve_option`.
Trace read_trace(const std::string& path, std::size_t limit = unlimited, std::string_view curve_option = "--cost");

/// Calls visit(session) for each session of a file, one at a time, so that the whole file need not fit into memory.
/// Throws InputError, as read_trace() does.
void read_sessions(const std::string& path, const std::function<void(const TraceSession&)>& visit);

/// The same as the first function for an open stream; `path` is for messages.
Trace read_trace(std::istream& in, const std::string& path, std::size_t limit = unlimited);

}  // namespace reprise::replay
