// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/result.hpp"
#include "reprise/history/detail/file_calls.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "reprise_corpus/corpus_store.hpp"

#if defined(_WIN32)
#include <io.h>
// Declared here as in <windows.h>, because including that header would define thousands of macros.
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
#include <sys/mman.h>
#endif

/// \file Maps the file of a corpus into memory. This header calls the operating system; the umbrella
/// reprise.hpp does not include it.

namespace reprise { inline namespace v0 {

namespace detail {

/// The calls to the operating system. Those that map a file return 0 or an error number from <cerrno>. Tests replace
/// the functions with ones that fail.
struct MapCalls : FileCalls {
#if defined(_WIN32)
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
#else
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
#endif
};

/// The bytes of a file. The destructor unmaps them.
template <class Calls>
class Mapping {
 public:
  Mapping() noexcept = default;
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (!bytes_.empty()) Calls::unmap(bytes_.data(), bytes_.size());
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Maps the whole file. An empty file gives no bytes.
  static Result<Mapping> of(const std::filesystem::path& path) noexcept {
    Calls calls;
    OpenFile<Calls> file(calls);  // may be closed at the end, because the mapping stays
    const auto size = open_file(calls, path, file);
    if (!size) return size.error();
    if (*size > std::numeric_limits<std::size_t>::max()) return file_unreadable(ENOMEM);
    Mapping mapping;
    if (*size == 0) return mapping;
    const auto count = static_cast<std::size_t>(*size);
    const std::byte* data = nullptr;
    if (const int error = Calls::map(file.number, count, data)) return file_unreadable(error);
    mapping.bytes_ = {data, count};
    return mapping;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace detail

/// The file of a corpus, mapped for reading. Processes that map the same file share its memory.
///
/// **Replacing.** Publish a new corpus under the same name by renaming, as reprise-index and save_file() do. An open
/// MappedCorpus then keeps reading the old file. Never shorten or overwrite a file that is mapped: reading a part that
/// no longer exists ends the process (SIGBUS), as does a disk that fails.
///
/// **Threads.** Any number of threads may use store(). Do not move or destroy the object while drafters use the store.
class MappedCorpus {
 public:
  /// Maps nothing; the store is empty.
  MappedCorpus() noexcept = default;

  /// Maps the file and checks its header. Links are followed. Errors: bad_file_name; no_such_file; not_a_regular_file;
  /// file_failed (`value`: a number from <cerrno>); those of CorpusStore::open(). Cost: the same for any size.
  [[nodiscard]] static Result<MappedCorpus> open(const std::filesystem::path& path) noexcept { return map(path); }
  /// Like the function above, and refuses a corpus of another tokenizer: other_vocabulary, other_tokenizer.
  [[nodiscard]] static Result<MappedCorpus> open(const std::filesystem::path& path,
                                                 const CorpusStore::Identity& expected) noexcept {
    return map(path, expected);
  }

  /// Returns the store, for NgramOptions::stores.
  [[nodiscard]] const CorpusStore& store() const noexcept REPRISE_LIFETIMEBOUND { return store_; }
  /// Returns the bytes of the file, for verify_corpus().
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept REPRISE_LIFETIMEBOUND { return mapping_.bytes(); }

 private:
  template <class... Expected>
  [[nodiscard]] static Result<MappedCorpus> map(const std::filesystem::path& path,
                                                const Expected&... expected) noexcept {
    auto mapping = detail::Mapping<detail::MapCalls>::of(path);
    if (!mapping) return mapping.error();
    const auto store = CorpusStore::open(mapping->bytes(), expected...);
    if (!store) return store.error();
    return MappedCorpus(*std::move(mapping), *store);
  }
  MappedCorpus(detail::Mapping<detail::MapCalls> mapping, const CorpusStore& store) noexcept
      : mapping_(std::move(mapping)), store_(store) {}

  detail::Mapping<detail::MapCalls> mapping_;
  CorpusStore store_;
};

}}  // namespace reprise
