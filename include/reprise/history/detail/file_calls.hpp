// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <share.h>
#include <sys/stat.h>
// Declared here as in <windows.h>, because including that header would define thousands of macros.
extern "C" __declspec(dllimport) int __stdcall MoveFileExW(const wchar_t*, const wchar_t*, unsigned long);
extern "C" __declspec(dllimport) unsigned long __stdcall GetLastError();
#else
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace reprise { inline namespace v0 { namespace detail {

enum class FileKind : std::uint8_t { missing, regular, other };

using PathChar = std::filesystem::path::value_type;

/// The calls to the operating system. The functions that return an int return 0 or an error number from <cerrno>. Tests
/// replace the functions with ones that fail.
struct FileCalls {
#if defined(_WIN32)
  static bool interrupted(int /*error*/) noexcept { return false; }
  static auto process() noexcept { return static_cast<std::uint64_t>(_getpid()); }
  static std::uint64_t most_bytes() noexcept { return std::numeric_limits<std::uint64_t>::max(); }
  /// Writes the kind of the file at `path` to `kind`; a link counts as the file that it points to.
  static int look(const PathChar* path, FileKind& kind) noexcept {
    struct _stat64 status = {};
    return told(_wstat64(path, &status), status, kind);
  }
  static int measure(int file, FileKind& kind, std::uint64_t& bytes) noexcept {
    struct _stat64 status = {};
    const int error = told(_fstat64(file, &status), status, kind);
    bytes = static_cast<std::uint64_t>(status.st_size);
    return error;
  }
  static int create(const PathChar* path, int& file) noexcept {
    return _wsopen_s(&file, path, _O_WRONLY | _O_CREAT | _O_EXCL | _O_BINARY | _O_NOINHERIT, _SH_DENYRW,
                     _S_IREAD | _S_IWRITE);
  }
  static int open(const PathChar* path, int& file) noexcept {
    return _wsopen_s(&file, path, _O_RDONLY | _O_BINARY | _O_NOINHERIT, _SH_DENYNO, 0);
  }
  static int write(int file, std::span<const std::byte> bytes, std::size_t& count) noexcept {
    return counted(_write(file, bytes.data(), static_cast<unsigned>(bytes.size())), count);
  }
  static int read(int file, std::span<std::byte> bytes, std::size_t& count) noexcept {
    return counted(_read(file, bytes.data(), static_cast<unsigned>(bytes.size())), count);
  }
  static int sync(int file) noexcept { return _commit(file) == 0 ? 0 : errno; }  // FlushFileBuffers
  static int close(int file) noexcept { return _close(file) == 0 ? 0 : errno; }
  static int replace(const PathChar* from, const PathChar* to) noexcept {
    constexpr unsigned long replace_existing = 1;
    constexpr unsigned long write_through = 8;
    return MoveFileExW(from, to, replace_existing | write_through) != 0 ? 0 : error_number(GetLastError());
  }
  static int remove(const PathChar* path) noexcept { return _wunlink(path) == 0 ? 0 : errno; }
  /// Opens nothing: replace() writes through to the disk, so folders need no sync on Windows.
  static int open_folder(const PathChar* /*path*/, int& folder) noexcept {
    folder = -1;
    return 0;
  }
  static int sync_folder(int /*folder*/) noexcept { return 0; }

 private:
  /// Returns the number from <cerrno> for this Windows error; EIO if it is none of those below.
  static int error_number(unsigned long error) noexcept {
    switch (error) {
      case 2:  // ERROR_FILE_NOT_FOUND
      case 3:  // ERROR_PATH_NOT_FOUND
        return ENOENT;
      case 5:   // ERROR_ACCESS_DENIED
      case 32:  // ERROR_SHARING_VIOLATION
      case 33:  // ERROR_LOCK_VIOLATION
        return EACCES;
      case 112:  // ERROR_DISK_FULL
        return ENOSPC;
      default:
        return EIO;
    }
  }
  static bool regular(const struct _stat64& status) noexcept { return (status.st_mode & _S_IFMT) == _S_IFREG; }
#else
  static bool interrupted(int error) noexcept { return error == EINTR; }
  static auto process() noexcept { return static_cast<std::uint64_t>(::getpid()); }
  /// Returns the size up to which this process may write a file (ulimit -f). A write beyond it would end the process by
  /// a signal.
  static std::uint64_t most_bytes() noexcept {
    rlimit limit = {};
    const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return limited ? static_cast<std::uint64_t>(limit.rlim_cur) : std::numeric_limits<std::uint64_t>::max();
  }
  /// Writes the kind of the file at `path` to `kind`; a link is neither missing nor regular.
  static int look(const PathChar* path, FileKind& kind) noexcept {
    struct stat status = {};
    return told(::lstat(path, &status), status, kind);
  }
  static int measure(int file, FileKind& kind, std::uint64_t& bytes) noexcept {
    struct stat status = {};
    const int error = told(::fstat(file, &status), status, kind);
    bytes = static_cast<std::uint64_t>(status.st_size);
    return error;
  }
  /// Creates a file that only its owner may read, because snapshots hold users' text.
  static int create(const PathChar* path, int& file) noexcept {
    file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return file >= 0 ? 0 : errno;
  }
  /// Opens a file for reading. Does not block if it is a pipe without a writer.
  static int open(const PathChar* path, int& file) noexcept {
    file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return file >= 0 ? 0 : errno;
  }
  static int write(int file, std::span<const std::byte> bytes, std::size_t& count) noexcept {
    return counted(::write(file, bytes.data(), bytes.size()), count);
  }
  static int read(int file, std::span<std::byte> bytes, std::size_t& count) noexcept {
    return counted(::read(file, bytes.data(), bytes.size()), count);
  }
  static int sync(int file) noexcept {
#if defined(F_FULLFSYNC)
    // On macOS, fsync() leaves the bytes in the cache of the disk. F_FULLFSYNC writes them to the disk, but not every
    // file system supports it.
    if (::fcntl(file, F_FULLFSYNC) == 0) return 0;
#endif
    return ::fsync(file) == 0 ? 0 : errno;
  }
  static int close(int file) noexcept { return ::close(file) == 0 ? 0 : errno; }
  static int replace(const PathChar* from, const PathChar* to) noexcept { return ::rename(from, to) == 0 ? 0 : errno; }
  static int remove(const PathChar* path) noexcept { return ::unlink(path) == 0 ? 0 : errno; }
  static int open_folder(const PathChar* path, int& folder) noexcept {
    folder = ::open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    return folder >= 0 ? 0 : errno;
  }
  /// Ignores EINVAL, which means that the file system cannot sync folders.
  static int sync_folder(int folder) noexcept { return ::fsync(folder) == 0 || errno == EINVAL ? 0 : errno; }

 private:
  static bool regular(const struct stat& status) noexcept { return S_ISREG(status.st_mode); }
#endif
  template <class Status>
  static int told(int failed, const Status& status, FileKind& kind) noexcept {
    kind = failed != 0 ? FileKind::missing : regular(status) ? FileKind::regular : FileKind::other;
    return failed == 0 || errno == ENOENT ? 0 : errno;
  }
  template <class Count>
  static int counted(Count moved, std::size_t& count) noexcept {
    count = moved < 0 ? 0 : static_cast<std::size_t>(moved);
    return moved < 0 ? errno : 0;
  }
};

}}}  // namespace reprise::detail
