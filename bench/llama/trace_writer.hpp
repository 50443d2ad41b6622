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
#include <vector>

#include "replay/trace.hpp"

namespace reprise::llama {

/// The reason why a turn's output ended.
enum class Finish : std::uint8_t {
  eos,     ///< the last token of the output ends a turn
  length,  ///< max_tokens, or the end of the context
  loop,    ///< the output repeated itself and was cut back to the start of the repetition
};
constexpr std::string_view name(Finish finish) {
  return finish == Finish::eos ? "eos" : finish == Finish::length ? "length" : "loop";
}

/// `session` as one line of a trace, newline included. Turns with a finish have a member such as "finish": "eos", and
/// turns with top-k rows have a member "top_k".
std::string trace_line(const replay::TraceSession& session, std::span<const Finish> finishes);

/// Appends sessions to a trace file, each as a whole. However a recording ends, the file is a valid trace up to its
/// last complete session and can be continued. Threads: one at a time; one writer per file.
class TraceWriter {
 public:
  /// Opens `path` for appending and reads its sessions. Removes an incomplete last line, left by an interrupted
  /// recording, and reports that to `messages` (may be null). Throws InputError and leaves the file unchanged if it is
  /// not a trace, has tokens outside `vocabulary`, or cannot be opened.
  static TraceWriter open(const std::string& path, std::ostream* messages = nullptr,
                          std::optional<std::size_t> vocabulary = {});

  /// True if the file has a session of this id.
  [[nodiscard]] bool has(const std::string& id) const { return ids_.contains(id); }
  [[nodiscard]] std::size_t size() const { return ids_.size(); }

  /// Writes a session and flushes it to the system. Throws EngineError if that fails, as on a full disk; the file is
  /// then cut back to its previous size.
  void append(const replay::TraceSession& session, std::span<const Finish> finishes);

 private:
  explicit TraceWriter(const std::string& path) : path_(path) {}
  /// Appends all bytes, or none if writing fails.
  void write(std::string_view bytes);

  std::string path_;
  std::ofstream file_;
  std::uintmax_t size_ = 0;  ///< bytes of complete lines
  std::set<std::string> ids_;
};

}  // namespace reprise::llama
