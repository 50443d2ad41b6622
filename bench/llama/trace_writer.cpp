// SPDX-License-Identifier: Apache-2.0
#include "trace_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "engine_error.hpp"
#include "reprise/history/detail/file_calls.hpp"
#include "vocabulary.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// The start of every line that this program writes.
constexpr std::string_view line_start = R"({"id":")";

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (in && in.peek() != std::ifstream::traits_type::eof()) bytes << in.rdbuf();
  if (!in.is_open() || in.bad() || !bytes) throw InputError("--record " + path + ": cannot be read");
  return bytes.str();
}

/// Appends the sessions in `lines`, which follow `before` other lines of `path`.
void read_sessions(const std::string& path, std::string_view lines, std::ptrdiff_t before,
                   std::vector<replay::TraceSession>& sessions) {
  if (lines.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
  std::istringstream in(std::string(static_cast<std::size_t>(before), '\n') + std::string(lines));
  for (replay::TraceSession& session : replay::read_trace(in, path).sessions) sessions.push_back(std::move(session));
}

void write_top_k(tools::JsonWriter& json, const replay::TopKRows& rows) {
  json.key("top_k").begin_array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    json.begin_array();
    for (const Token token : rows[i]) json.value(token);
    json.end();
  }
  json.end();
}

/// Writes the member `key`: the tokens as an array.
void write_tokens(tools::JsonWriter& json, std::string_view key, const std::vector<Token>& tokens) {
  json.key(key).begin_array();
  for (const Token token : tokens) json.value(token);
  json.end();
}

}  // namespace

std::string trace_line(const replay::TraceSession& session, std::span<const Finish> finishes) {
  std::ostringstream line;
  tools::JsonWriter json(line, tools::JsonWriter::Spacing::compact);
  json.begin_object().member("id", session.id).member("category", session.category).key("turns").begin_array();
  for (std::size_t i = 0; i < session.turns.size(); ++i) {
    json.begin_object();
    write_tokens(json, "prompt", session.turns[i].prompt);
    write_tokens(json, "output", session.turns[i].output);
    if (session.turns[i].top_k) write_top_k(json, *session.turns[i].top_k);
    if (i < finishes.size()) json.member("finish", name(finishes[i]));
    json.end();
  }
  json.end().end();
  return line.str() + "\n";
}

TraceWriter TraceWriter::open(const std::string& path, std::ostream* messages, std::optional<std::size_t> vocabulary) {
  TraceWriter writer(path);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError("--record " + path + ": is a directory; give a file");
  const bool there = std::filesystem::is_regular_file(path, ignored);
  const std::string bytes = there ? read_file(path) : std::string();

  const std::size_t complete = bytes.rfind('\n') + 1;  // 0 if there is no newline: npos + 1
  const std::string_view lines = std::string_view(bytes).substr(0, complete);
  const std::string_view tail = std::string_view(bytes).substr(complete);
  bool unfinished = false;
  std::vector<replay::TraceSession> sessions;
  try {
    read_sessions(path, lines, 0, sessions);
    // A complete session may lack only its newline. Only a tail with the start of a session is taken for an incomplete
    // one: any other file must not be cut.
    unfinished = !tail.empty() && line_start.substr(0, tail.size()) == tail.substr(0, line_start.size());
    try {
      read_sessions(path, tail, std::count(lines.begin(), lines.end(), '\n'), sessions);
      unfinished = false;
    } catch (const InputError&) {
      if (!unfinished) throw InputError(path + ": ends in a line that is not a session");
    }
  } catch (const InputError& error) {
    throw InputError(std::string(error.what()) + "; --record appends to traces only, and left this file unchanged");
  }

  for (const replay::TraceSession& session : sessions) {
    if (vocabulary)
      check_vocabulary(session, *vocabulary, "--record appends the tokens of this model: give another file");
    writer.ids_.insert(session.id);
  }

  writer.size_ = unfinished ? complete : bytes.size();
  std::error_code error;
  if (unfinished) std::filesystem::resize_file(path, complete, error);
  // Only the owner can read a new file, because it has the text of users.
  if (int made = -1; !there && detail::FileCalls::create(std::filesystem::path(path).c_str(), made) == 0)
    detail::FileCalls::close(made);
  if (!error) writer.file_.open(path, std::ios::binary | std::ios::app);
  if (error || !writer.file_)
    throw InputError("--record " + path + ": cannot be written; does the folder exist, and is it writable?");
  if (unfinished && messages != nullptr)
    *messages << tools::printable(path) << ": the last line was incomplete, " << tail.size() << " bytes; removed, "
              << writer.size() << " sessions remain\n";
  if (!unfinished && !tail.empty()) writer.write("\n");
  return writer;
}

void TraceWriter::append(const replay::TraceSession& session, std::span<const Finish> finishes) {
  write(trace_line(session, finishes));
  ids_.insert(session.id);
}

void TraceWriter::write(std::string_view bytes) {
  file_ << bytes << std::flush;
  if (file_) {
    size_ += bytes.size();
    return;
  }
  // The stream may retry its buffered bytes when it closes, so close it before cutting the file.
  file_.clear();
  file_.close();
  std::error_code error;
  if (std::filesystem::is_regular_file(path_, error)) std::filesystem::resize_file(path_, size_, error);
  file_.open(path_, std::ios::binary | std::ios::app);  // the disk may have space again
  throw EngineError("--record " + path_ + ": could not be written; is the disk full? " + std::to_string(size()) +
                    " sessions in it are complete; run the same command again to continue");
}

}  // namespace reprise::llama
