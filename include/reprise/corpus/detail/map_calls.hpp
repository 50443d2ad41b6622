// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <share.h>
#include <sys/stat.h>
// Declared here as in <windows.h>, because including that header would define thousands of macros.
struct _SECURITY_ATTRIBUTES;
extern "C" __declspec(dllimport) void* __stdcall CreateFileMappingW(void*, struct _SECURITY_ATTRIBUTES*, unsigned long,
                                                                    unsigned long, unsigned long, const wchar_t*);
#if defined(_WIN64)
extern "C" __declspec(dllimport) void* __stdcall MapViewOfFile(void*, unsigned long, unsigned long, unsigned long,
                                                               unsigned __int64);
#else
extern "C" __declspec(dllimport) void* __stdcall MapViewOfFile(void*, unsigned long, unsigned long, unsigned long,
                                                               unsigned long);
#endif
extern "C" __declspec(dllimport) int __stdcall UnmapViewOfFile(const void*);
extern "C" __declspec(dllimport) int __stdcall CloseHandle(void*);
#else
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace reprise::inline v0::detail {

/// The calls to the operating system that map a file. The functions that return an int return 0 or an error number from
/// <cerrno>. Tests replace the functions with ones that fail.
struct MapCalls {
  using PathChar = std::filesystem::path::value_type;

#if defined(_WIN32)
  static int open(const PathChar* path, int& file) noexcept {
    return _wsopen_s(&file, path, _O_RDONLY | _O_BINARY | _O_NOINHERIT, _SH_DENYNO, 0);
  }
  /// Writes the size of a file, and whether it is a regular file.
  static int measure(int file, bool& regular, std::uint64_t& bytes) noexcept {
    struct _stat64 status = {};
    if (_fstat64(file, &status) != 0) return errno;
    regular = (status.st_mode & _S_IFMT) == _S_IFREG;
    bytes = static_cast<std::uint64_t>(status.st_size);
    return 0;
  }
  /// Maps a file of this size, which is not 0, for reading.
  static int map(int file, std::size_t /*bytes*/, const std::byte*& data) noexcept {
    constexpr unsigned long page_read_only = 2;
    constexpr unsigned long map_read = 4;
    void* const handle = reinterpret_cast<void*>(_get_osfhandle(file));
    void* const mapping = CreateFileMappingW(handle, nullptr, page_read_only, 0, 0, nullptr);
    if (mapping == nullptr) return EIO;
    data = static_cast<const std::byte*>(MapViewOfFile(mapping, map_read, 0, 0, 0));
    CloseHandle(mapping);  // the view keeps the mapping
    return data == nullptr ? ENOMEM : 0;
  }
  static void unmap(const std::byte* data, std::size_t /*bytes*/) noexcept { UnmapViewOfFile(data); }
  static void close(int file) noexcept { _close(file); }
#else
  /// Opens a file for reading. Does not block if it is a pipe without a writer.
  static int open(const PathChar* path, int& file) noexcept {
    do {
      file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    } while (file < 0 && errno == EINTR);
    return file >= 0 ? 0 : errno;
  }
  /// Writes the size of a file, and whether it is a regular file.
  static int measure(int file, bool& regular, std::uint64_t& bytes) noexcept {
    struct stat status = {};
    if (::fstat(file, &status) != 0) return errno;
    regular = S_ISREG(status.st_mode);
    bytes = static_cast<std::uint64_t>(status.st_size);
    return 0;
  }
  /// Maps a file of this size, which is not 0, for reading. Lookups are scattered, so the system need not read ahead.
  static int map(int file, std::size_t bytes, const std::byte*& data) noexcept {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) return errno;
#if defined(POSIX_MADV_RANDOM)  // not in WASI
    static_cast<void>(::posix_madvise(mapped, bytes, POSIX_MADV_RANDOM));
#endif
    data = static_cast<const std::byte*>(mapped);
    return 0;
  }
  static void unmap(const std::byte* data, std::size_t bytes) noexcept {
    ::munmap(const_cast<std::byte*>(data), bytes);
  }
  static void close(int file) noexcept { ::close(file); }
#endif
};

}  // namespace reprise::detail
