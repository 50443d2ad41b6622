// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reprise::indexing {

/// The field of token `i` of the tokens that were added last, for a message: "turns[0].output[3]".
using FieldName = std::function<std::string(std::size_t i)>;

/// Receives documents. `where` in messages is the file, and the line if it has lines.
class DocumentSink {
 public:
  DocumentSink() = default;
  DocumentSink(const DocumentSink&) = delete;
  DocumentSink& operator=(const DocumentSink&) = delete;
  virtual ~DocumentSink() = default;

  /// Begins a document. Returns false if it is excluded: then its tokens are not read.
  virtual bool begin(const std::string& name, const std::string& where) = 0;
  /// Adds tokens to the document. Throws InputError for an id outside the vocabulary.
  virtual void add(std::span<const std::uint32_t> tokens, const FieldName& field) = 0;
  virtual void end() = 0;
};

/// The fingerprint of the tokenizer that inputs were made with: one number for all of them.
class Fingerprint {
 public:
  explicit Fingerprint(std::optional<std::uint64_t> given) : value_(given), source_("--fingerprint") {}

  /// The number, or 0 if neither an option nor an input gave one.
  [[nodiscard]] std::uint64_t value() const { return value_.value_or(0); }
  /// Takes the number of an input. Throws InputError if an earlier one is different.
  void check(std::uint64_t found, const std::string& path);

 private:
  std::optional<std::uint64_t> value_;
  std::string source_;
};

/// "0x" and 16 digits.
std::string hex(std::uint64_t value);

/// Reads documents from files of several kinds, one after the other.
struct DocumentReader {
  std::string tokenizer;  ///< the command that tokenises text files; empty: none
  Fingerprint fingerprint{std::nullopt};
  /// Called with the bytes that were read since the last call. May throw, to stop.
  std::function<void(std::uint64_t)> report = [](std::uint64_t) {};

  /// Reads the documents of a file. Its kind is known by its name or its first bytes:
  ///
  ///  * *.jsonl: a trace. Each session is a document; its name is the session's id.
  ///  * *.u16, *.u32: token ids with the lowest byte first. The file is one document; its name is the path.
  ///  * a snapshot of a history: each run of a sequence is a document; its name is PATH#SEQUENCE.
  ///  * any other file is text for the tokenizer. It is one document; its name is the path.
  ///
  /// Throws InputError with the file and the place in it.
  void read(const std::string& path, DocumentSink& sink);

 private:
  void read_whole(const std::string& path, DocumentSink& sink);
  void read_trace(const std::string& path, DocumentSink& sink) const;
  void read_raw(const std::string& path, std::size_t width, DocumentSink& sink) const;
  void read_snapshot(const std::string& path, DocumentSink& sink);
  void read_text(const std::string& path, DocumentSink& sink) const;
};

/// The files that the paths stand for: a folder stands for all files in it and in its folders, sorted by path. Throws
/// InputError for a folder without files.
std::vector<std::string> files_of(const std::vector<std::string>& paths);

/// Runs `command` with the file at `path` as its standard input, and returns the token ids that it prints. Ids are
/// decimal numbers between blanks, commas or brackets. Throws InputError if the command fails or prints anything else.
std::vector<std::uint32_t> run_tokenizer(const std::string& command, const std::string& path);

}  // namespace reprise::indexing
