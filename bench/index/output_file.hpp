// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::indexing {

/// A build or a merge that cannot go on: a full disk, an interrupt. The message names the file and a remedy; main()
/// prints it and exits with 1.
class BuildError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A large file that appears under its name only when it is complete. Its bytes are written to PATH.PROCESS-NUMBER.tmp
/// in the same folder. The destructor removes that file unless publish() has renamed it. All functions throw
/// BuildError if the system refuses.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  [[nodiscard]] const std::string& temporary() const { return temporary_; }
  [[nodiscard]] std::uint64_t size() const { return size_; }

  void append(std::span<const std::byte> bytes);
  /// Hands all appended bytes to the system, so that a mapping of temporary() shows them.
  void flush();
  /// Says how many bytes the complete file has, for messages. Throws BuildError if the disk or the limit for the size
  /// of a file (ulimit -f) has no room for them.
  void expect_size(std::uint64_t bytes);
  /// Replaces bytes that were appended.
  void rewrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Syncs the file and renames it to its path. A file of that name is replaced, and keeps its permissions. Otherwise
  /// only the owner can read the file, because it can hold text of users.
  void publish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  [[noreturn]] void fail(int error) const;

  std::string path_;
  std::string temporary_;
  std::vector<char> buffer_;
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t size_ = 0;
  std::uint64_t expected_ = 0;  // bytes of the complete file; 0: not known yet
};

/// While it lives, a write beyond the limit for the size of a file (ulimit -f) fails, so that a message can say so.
/// Without it, the system ends the program (SIGXFSZ). One object at a time; it changes the whole process.
class FileSizeSignalIgnored {
 public:
  FileSizeSignalIgnored();
  FileSizeSignalIgnored(const FileSizeSignalIgnored&) = delete;
  FileSizeSignalIgnored& operator=(const FileSizeSignalIgnored&) = delete;
  ~FileSizeSignalIgnored();

 private:
  void (*before_)(int);
};

}  // namespace reprise::indexing
