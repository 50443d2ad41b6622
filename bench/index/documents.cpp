// SPDX-License-Identifier: Apache-2.0
#include "documents.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <ios>
#include <system_error>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "replay/trace.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "reprise_corpus/detail/corpus_format.hpp"

namespace reprise::indexing {
namespace {

namespace fs = std::filesystem;
using tools::InputError;

constexpr std::size_t block = std::size_t{1} << 16;  // tokens that are handed over at once

std::string element(const std::string& list, std::size_t i) { return list + "[" + std::to_string(i) + "]"; }
std::string in_file(std::size_t i) { return "token " + std::to_string(i); }

bool begins_with(const std::string& path, const std::array<std::uint8_t, 8>& magic) {
  std::array<char, 8> begin{};
  std::ifstream in(path, std::ios::binary);
  return in.read(begin.data(), begin.size()) &&
         std::equal(begin.begin(), begin.end(), magic.begin(),
                    [](char byte, std::uint8_t expected) { return static_cast<std::uint8_t>(byte) == expected; });
}

/// All regular files below a folder, sorted by path.
std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file()) paths.push_back(at->path().generic_string());
  if (error) throw InputError(folder + ": cannot be read: " + error.message());
  if (paths.empty()) throw InputError(folder + ": the folder has no files; give a folder with token files");
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Adds one list of tokens of a turn of the session at `where`.
void add_list(const std::vector<Token>& tokens, const std::string& list, const std::string& where, DocumentSink& sink) {
  std::vector<std::uint32_t> ids;
  ids.reserve(tokens.size());
  for (const Token token : tokens) {
    if (token < 0)
      throw InputError(where + ": " + element(list, ids.size()) + ": " + std::to_string(token) +
                       " is no token id; ids are not negative");
    ids.push_back(static_cast<std::uint32_t>(token));
  }
  sink.add(ids, [&](std::size_t i) { return element(list, i); });
}

}  // namespace

std::string hex(std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[value >> shift & 15];
  return text;
}

void Fingerprint::check(std::uint64_t found, const std::string& path) {
  if (!value_) {
    value_ = found;
    source_ = path;
  }
  if (*value_ != found)
    throw InputError(path + ": its tokenizer has the fingerprint " + hex(found) + ", but that of " + source_ + " is " +
                     hex(*value_) + "; give inputs of one tokenizer");
}

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> below = files_below(path);
    files.insert(files.end(), below.begin(), below.end());
  }
  return files;
}

void DocumentReader::read(const std::string& path, DocumentSink& sink) {
  report(0);
  if (path.ends_with(".u16")) return read_raw(path, 2, sink);
  if (path.ends_with(".u32")) return read_raw(path, 4, sink);
  static_cast<void>(tools::open_input(path, "files of tokens or text"));
  read_whole(path, sink);
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error) report(size);
}

void DocumentReader::read_whole(const std::string& path, DocumentSink& sink) {
  if (path.ends_with(".jsonl")) return read_trace(path, sink);
  if (begins_with(path, detail::SnapshotFormat::magic)) return read_snapshot(path, sink);
  if (begins_with(path, reprise::detail::CorpusFormat::magic))
    throw InputError(path + ": is a corpus; reprise-index merge joins corpora");
  if (tokenizer.empty())
    throw InputError(path +
                     ": is neither a trace (*.jsonl), a list of ids (*.u16, *.u32) nor a snapshot; to read it as text, "
                     "give --tokenizer COMMAND");
  read_text(path, sink);
}

void DocumentReader::read_trace(const std::string& path, DocumentSink& sink) const {
  replay::read_sessions(path, [&](const replay::TraceSession& session) {
    report(0);
    if (!sink.begin(session.id, session.where)) return;
    for (std::size_t i = 0; i < session.turns.size(); ++i) {
      const std::string turn = element("turns", i);
      add_list(session.turns[i].prompt, turn + ".prompt", session.where, sink);
      add_list(session.turns[i].output, turn + ".output", session.where, sink);
    }
    sink.end();
  });
}

void DocumentReader::read_raw(const std::string& path, std::size_t width, DocumentSink& sink) const {
  std::ifstream in = tools::open_input(path, "files of token ids");
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw InputError(path + ": " + error.message());
  if (size % width != 0)
    throw InputError(path + ": has " + std::to_string(size) + " bytes, which is no multiple of " +
                     std::to_string(width) + "; the file must hold ids of " + std::to_string(8 * width) + " bits");
  if (!sink.begin(path, path)) return;
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> ids;
  for (std::uintmax_t first = 0; first < size / width; first += ids.size()) {
    const std::size_t count = static_cast<std::size_t>(std::min<std::uintmax_t>(block, size / width - first));
    bytes.resize(count * width);
    if (!in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
      throw InputError(path + ": reading failed after token " + std::to_string(first));
    ids.clear();
    for (std::size_t i = 0; i < count; ++i)
      ids.push_back(width == 2 ? reprise::detail::load_little<std::uint16_t>(bytes.data() + 2 * i)
                               : reprise::detail::load_little<std::uint32_t>(bytes.data() + 4 * i));
    sink.add(ids, [first](std::size_t i) { return in_file(static_cast<std::size_t>(first) + i); });
    report(bytes.size());
  }
  sink.end();
}

void DocumentReader::read_snapshot(const std::string& path, DocumentSink& sink) {
  const auto check = [&](const Error& error) { throw InputError(path + ": " + std::string(error.message)); };
  Bytes bytes;
  if (const auto loaded = load_file(path, bytes); !loaded) check(loaded.error());
  const std::span<const std::byte> all(bytes.data(), bytes.size());
  auto reader = SnapshotReader::open(all, fingerprint.value());
  if (!reader && reader.error().code == ErrorCode::other_tokenizer) {
    fingerprint.check(reader.error().value, path);
    reader = SnapshotReader::open(all, fingerprint.value());
  }
  if (!reader) check(reader.error());
  fingerprint.check(fingerprint.value(), path);
  const auto runs = reader->section(SectionKind::runs);
  if (!runs) return;
  // The function may not throw, so it only notes the runs.
  std::vector<reprise::detail::RunView> views;
  const auto noted = reprise::detail::for_each_run(*runs, [&](const auto& run) { views.push_back(run); });
  if (!noted) check(noted.error());
  for (const reprise::detail::RunView& run : views) {
    const std::string name = path + "#" + std::to_string(run.sequence());
    if (!sink.begin(name, name)) continue;
    std::vector<std::uint32_t> ids(run.size());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(run.word(i).token());
    sink.add(ids, in_file);
    sink.end();
  }
}

void DocumentReader::read_text(const std::string& path, DocumentSink& sink) const {
  if (!sink.begin(path, path)) return;
  std::vector<std::uint32_t> ids;
  try {
    ids = run_tokenizer(tokenizer, path);
  } catch (const InputError&) {
    report(0);  // an interrupt ends the command too
    throw;
  }
  sink.add(ids, in_file);
  sink.end();
}

}  // namespace reprise::indexing
