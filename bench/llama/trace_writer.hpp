// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "replay/trace.hpp"

namespace reprise::llama {

/// Why a turn's output ended.
enum class Finish : std::uint8_t {
  eos,     ///< with a token that ends a turn: the output's last one
  length,  ///< at as many tokens as were asked for, or at the end of the context
  loop,    ///< it went round in circles and was cut back to where it began to
};
constexpr std::string_view name(Finish finish) {
  return finish == Finish::eos ? "eos" : finish == Finish::length ? "length" : "loop";
}

/// `session` as a line of a trace, the line's end included. Turns that have a finish say so ("finish": "eos").
std::string trace_line(const replay::TraceSession& session, std::span<const Finish> finishes);

/// Appends sessions to a trace file, each written whole: however a recording ends, the file is a trace up to its last
/// complete session, and can be gone on with. Threads: one at a time; one writer for a file.
class TraceWriter {
 public:
  /// Opens `path` for appending, and reads what it has. A last line that an interrupted recording left half written is
  /// removed, and `messages` (may be null) told of it. Throws InputError, the file being as it was: it holds anything
  /// else than a trace, or tokens beyond a `vocabulary` that is given, or cannot be opened.
  static TraceWriter open(const std::string& path, std::ostream* messages = nullptr,
                          std::optional<std::size_t> vocabulary = {});

  /// A session of this id is already there.
  [[nodiscard]] bool has(const std::string& id) const { return ids_.contains(id); }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

  /// Writes a session and lets the system have it. Throws EngineError when that fails, as on a full disk; the file is
  /// then cut back to what it was before.
  void append(const replay::TraceSession& session, std::span<const Finish> finishes);

 private:
  explicit TraceWriter(const std::string& path) : path_(path) {}
  /// Appends bytes; if that fails, none of them.
  void write(std::string_view bytes);

  std::string path_;
  std::ofstream file_;
  std::uintmax_t size_ = 0;  ///< bytes of complete lines
  std::set<std::string> ids_;
};

}  // namespace reprise::llama
