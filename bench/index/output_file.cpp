// SPDX-License-Identifier: Apache-2.0
#include "output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "reprise/history/detail/file_calls.hpp"

namespace reprise::indexing {
namespace {

namespace fs = std::filesystem;
using Calls = detail::FileCalls;

#if defined(_WIN32)
std::FILE* stream_of(int file) { return _fdopen(file, "wb"); }
int sync(std::FILE* file) { return _commit(_fileno(file)); }
int seek(std::FILE* file, std::uint64_t offset) { return _fseeki64(file, static_cast<long long>(offset), SEEK_SET); }
void sync_folder(const fs::path&) {}
#else
std::FILE* stream_of(int file) { return ::fdopen(file, "wb"); }
int sync(std::FILE* file) { return ::fsync(::fileno(file)); }
int seek(std::FILE* file, std::uint64_t offset) { return ::fseeko(file, static_cast<off_t>(offset), SEEK_SET); }
/// After a power cut the folder has the new name. Errors are ignored, because the file is complete.
void sync_folder(const fs::path& folder) {
  const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return;
  static_cast<void>(::fsync(opened));
  static_cast<void>(::close(opened));
}
#endif

std::string remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free some space, or write to another disk";
    case EFBIG:
      return "raise the limit for the size of a file (ulimit -f), write to another file system, or build smaller "
             "corpora";
    default:
      return "check its folder and its disk";
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), buffer_(std::size_t{1} << 20) {
  constexpr int attempts = 1000;  // names in use: a build in another thread, or a process that was killed
  int error = EEXIST;
  int file = -1;
  for (int attempt = 0; error == EEXIST && attempt < attempts; ++attempt) {
    temporary_ = path + "." + std::to_string(Calls::process()) + "-" + std::to_string(attempt) + ".tmp";
    error = Calls::create(fs::path(temporary_).c_str(), file);
  }
  if (error != 0) fail(error);
  file_.reset(stream_of(file));
  if (file_ == nullptr) fail(errno);
  static_cast<void>(std::setvbuf(file_.get(), buffer_.data(), _IOFBF, buffer_.size()));
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  file_.reset();
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void OutputFile::append(std::span<const std::byte> bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail(errno);
  size_ += bytes.size();
}

void OutputFile::flush() {
  errno = 0;
  if (std::fflush(file_.get()) != 0) fail(errno);
}

void OutputFile::expect_size(std::uint64_t bytes) {
  flush();
  expected_ = bytes;
  if (Calls::most_bytes() < bytes) fail(EFBIG);
  std::error_code error;
  const fs::space_info space = fs::space(temporary_, error);
  if (!error && space.available < bytes - std::min(bytes, size_)) fail(ENOSPC);
}

void OutputFile::rewrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  errno = 0;
  if (seek(file_.get(), offset) != 0 || std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      seek(file_.get(), size_) != 0)
    fail(errno);
}

void OutputFile::publish() {
  flush();
  errno = 0;
  if (sync(file_.get()) != 0) fail(errno);
  std::FILE* const closing = file_.release();
  const bool closed = std::fclose(closing) == 0;
  const int close_error = errno;
  std::error_code error;
  const fs::file_status old = fs::symlink_status(path_, error);
  if (closed && fs::is_regular_file(old)) fs::permissions(temporary_, old.permissions(), error);
  error.clear();
  if (closed) fs::rename(temporary_, path_, error);
  if (!closed || error) {
    std::error_code ignored;
    fs::remove(temporary_, ignored);
    fail(closed ? error.value() : close_error);
  }
  sync_folder(fs::path(path_).parent_path());
}

void OutputFile::fail(int error) const {
  const std::string needed = expected_ != 0 ? std::to_string(expected_) : "more than " + std::to_string(size_);
  throw BuildError(path_ + ": cannot be written: " + std::generic_category().message(error) + "; it needs " + needed +
                   " bytes; " + remedy(error) + "; nothing was replaced");
}

#if defined(SIGXFSZ)
FileSizeSignalIgnored::FileSizeSignalIgnored() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
FileSizeSignalIgnored::~FileSizeSignalIgnored() {
  if (before_ != SIG_ERR) static_cast<void>(std::signal(SIGXFSZ, before_));
}
#else
FileSizeSignalIgnored::FileSizeSignalIgnored() : before_(nullptr) {}
FileSizeSignalIgnored::~FileSizeSignalIgnored() = default;
#endif

}  // namespace reprise::indexing
