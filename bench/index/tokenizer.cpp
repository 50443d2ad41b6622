// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <system_error>

#include "common/input_error.hpp"
#include "documents.hpp"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace reprise::indexing {
namespace {

using tools::InputError;

/// Reads decimal numbers between blanks, commas and brackets, piece by piece.
class IdParser {
 public:
  explicit IdParser(std::string where) : where_(std::move(where)) {}

  void add(std::string_view text) {
    for (const char c : text) {
      if (std::string_view(" \t\r\n,[]").find(c) != std::string_view::npos) {
        end_number();
      } else {
        word_ += c;
        if (word_.size() > longest) end_number();
      }
    }
  }
  std::vector<std::uint32_t> finish() {
    end_number();
    return std::move(ids_);
  }

 private:
  static constexpr std::size_t longest = 20;

  void end_number() {
    if (word_.empty()) return;
    std::uint64_t value = 0;
    bool good = true;
    for (const char c : word_) {
      good = good && c >= '0' && c <= '9' && value <= std::numeric_limits<std::uint32_t>::max();
      if (good) value = 10 * value + static_cast<std::uint64_t>(c - '0');
    }
    if (!good || value > std::numeric_limits<std::uint32_t>::max())
      throw InputError(where_ + ": printed '" + word_ + "' after " + std::to_string(ids_.size()) +
                       " ids; expected token ids, decimal numbers between blanks or commas");
    ids_.push_back(static_cast<std::uint32_t>(value));
    word_.clear();
  }

  std::string where_;
  std::string word_;
  std::vector<std::uint32_t> ids_;
};

#if defined(_WIN32)

/// A shell command whose output is read.
class RunningCommand {
 public:
  RunningCommand(const std::string& command, const std::string& path)
      : pipe_(_popen((command + " < \"" + path + "\"").c_str(), "rb")) {}
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
  ~RunningCommand() { static_cast<void>(end()); }

  [[nodiscard]] bool started() const { return pipe_ != nullptr; }
  std::size_t read(char* into, std::size_t size) { return std::fread(into, 1, size, pipe_); }
  /// Returns the exit status.
  int end() { return pipe_ == nullptr ? -1 : _pclose(std::exchange(pipe_, nullptr)); }

 private:
  std::FILE* pipe_;
};

#else

/// A shell command that reads a file as its standard input, and whose output is read. Its input is the file itself, so
/// neither side can wait for the other forever.
class RunningCommand {
 public:
  RunningCommand(const std::string& command, const std::string& path) {
    const int input = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    std::array<int, 2> ends{-1, -1};
    if (input >= 0 && ::pipe(ends.data()) == 0) {
      process_ = ::fork();
      if (process_ == 0) {
        ::dup2(input, 0);
        ::dup2(ends[1], 1);
        ::close(ends[0]);
        ::close(ends[1]);
        ::execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
      }
      ::close(ends[1]);
      output_ = ends[0];
    }
    if (input >= 0) ::close(input);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
  ~RunningCommand() { static_cast<void>(end()); }

  [[nodiscard]] bool started() const { return process_ > 0; }
  std::size_t read(char* into, std::size_t size) const {
    ssize_t count = 0;
    do count = ::read(output_, into, size);
    while (count < 0 && errno == EINTR);
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }
  /// Returns the exit status; 128 and more: the number of a signal + 128.
  int end() {
    if (process_ <= 0) return -1;
    ::close(output_);
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

#endif

}  // namespace

std::vector<std::uint32_t> run_tokenizer(const std::string& command, const std::string& path) {
  const std::string where = path + ": --tokenizer " + command;
  RunningCommand running(command, path);
  if (!running.started()) throw InputError(where + ": the command cannot be started");
  IdParser parser(where);
  std::array<char, 1 << 16> piece{};
  for (std::size_t count = 0; (count = running.read(piece.data(), piece.size())) > 0;)
    parser.add({piece.data(), count});
  if (const int status = running.end(); status != 0)
    throw InputError(where + ": ended with the status " + std::to_string(status) +
                     "; run it by hand on this file to see its message");
  return parser.finish();
}

}  // namespace reprise::indexing
