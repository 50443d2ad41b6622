// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/detail/file_calls.hpp"
#include "reprise/history/snapshot.hpp"

/// \file Saves and loads snapshots as files. Only this header and file_calls.hpp call the operating system; the
/// umbrella reprise.hpp does not include them.

namespace reprise { inline namespace v0 {

namespace detail {

/// Returns an Error for this error number. Its message is the advice for this number if there is any, and `otherwise`
/// if there is none.
inline Error file_error(int error, std::string_view otherwise) noexcept {
  const auto sentence = [&]() -> std::string_view {
    switch (error) {
      case ENAMETOOLONG:
        return "the name is too long: shorten it; a save also makes a temporary file whose name is up to 20 characters "
               "longer";
      case ENOENT:
      case ENOTDIR:
        return "a folder in the path does not exist or is not a folder: create it first";
      case EACCES:
      case EPERM:
        return "the operating system denies access: check the permissions of the file and of its folder, and whether "
               "another process has the file open";
      case EROFS:
        return "the file system is read-only: choose another folder";
      case ENOSPC:
#if defined(EDQUOT)
      case EDQUOT:
#endif
        return "the disk is full, or your quota of it is used up: free some space";
      case EFBIG:
        return "the file would be larger than the system allows: save fewer bytes, or to another file system";
      case ENOMEM:
        return "there is no memory or no address space for the file: free some, or raise the limit of the process";
      case EMFILE:
      case ENFILE:
        return "too many files are open: close some of them";
      default:
        return otherwise;
    }
  };
  return {ErrorCode::file_failed, sentence(), static_cast<std::uint64_t>(error)};
}

/// Repeats `call` until no signal interrupts it, and returns its error number; 0: none.
template <class Calls, class Call>
int uninterrupted(const Calls& calls, Call call) noexcept {
  int error = call();
  while (calls.interrupted(error)) error = call();
  return error;
}

/// An open file or folder, or none. The destructor closes it.
template <class Calls>
class OpenFile {
 public:
  explicit OpenFile(Calls& calls) noexcept : calls_(calls) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { static_cast<void>(close()); }

  int number = -1;
  int close() noexcept {
    const int closing = std::exchange(number, -1);
    if (closing < 0) return 0;
    // Never closes twice, because the number may already belong to a different file.
    const int error = calls_.close(closing);
    return calls_.interrupted(error) ? 0 : error;
  }

 private:
  Calls& calls_;
};

/// A file that is written in the folder of its final path. The destructor removes it unless become() has moved it to
/// that path.
template <class Calls>
class TemporaryFile {
 public:
  explicit TemporaryFile(Calls& calls) noexcept : calls_(calls), file_(calls) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    static_cast<void>(file_.close());
    if (exists_) static_cast<void>(calls_.remove(name_.data()));
  }

  Result<void> create(std::basic_string_view<PathChar> path) noexcept {
    // A name can be in use: by a different thread that is saving, or by a process with this number that died while
    // saving.
    constexpr std::uint64_t attempts = 1000;
    int error = EEXIST;
    for (std::uint64_t attempt = 0; attempt < attempts && error == EEXIST; ++attempt) {
      if (!make_name(path, attempt)) return Error{ErrorCode::out_of_memory, "no memory for the name of a file"};
      error = uninterrupted(calls_, [&] { return calls_.create(name_.data(), file_.number); });
    }
    exists_ = error == 0;
    if (exists_) return {};
    if (error == EEXIST)
      return file_error(error, "interrupted saves have left too many files (*.tmp) in the folder: remove them");
    return file_error(error, "the temporary file cannot be created: check the folder of the file");
  }

  Result<void> fill(std::span<const std::byte> bytes) noexcept {
    constexpr std::size_t most = std::size_t{1} << 30;  // some systems refuse 2^31 bytes at once
    while (!bytes.empty()) {
      std::size_t written = 0;
      const auto part = bytes.first(std::min(bytes.size(), most));
      const int error = uninterrupted(calls_, [&] { return calls_.write(file_.number, part, written); });
      if (error != 0 || written == 0) return not_written(error);
      bytes = bytes.subspan(written);
    }
    // A failed sync is not repeated, because the system may by now count the lost bytes as written.
    if (const int error = uninterrupted(calls_, [&] { return calls_.sync(file_.number); })) return not_written(error);
    if (const int error = file_.close()) return not_written(error);
    return {};
  }

  Result<void> become(const PathChar* path) noexcept {
    if (const int error = calls_.replace(name_.data(), path))
      return file_error(error,
                        "the new file cannot replace the old one, which is unchanged: check the folder of the file");
    exists_ = false;
    return {};
  }

 private:
  static Error not_written(int error) noexcept {
    return file_error(error, "the bytes cannot be written: check the disk; the old file is unchanged");
  }
  /// Sets the name to path.process-attempt.tmp. Returns false if memory runs out.
  bool make_name(std::basic_string_view<PathChar> path, std::uint64_t attempt) noexcept {
    constexpr std::size_t most_digits = std::numeric_limits<std::uint64_t>::digits10 + 1;
    name_.clear();
    if (!name_.reserve(path.size() + 2 * most_digits + sizeof(".-.tmp")) || !name_.append(path)) return false;
    const auto number = [&](std::uint64_t value) {
      const std::size_t begin = name_.size();
      for (; value != 0 || name_.size() == begin; value /= 10)
        name_.push_reserved(static_cast<PathChar>('0' + value % 10));
      std::reverse(name_.begin() + begin, name_.end());
    };
    const auto text = [&](std::string_view characters) {
      for (const char character : characters) name_.push_reserved(static_cast<PathChar>(character));
    };
    text(".");
    number(calls_.process());
    text("-");
    number(attempt);
    text(".tmp");
    name_.push_reserved(PathChar{0});
    return true;
  }

  Calls& calls_;
  OpenFile<Calls> file_;
  detail::Buffer<PathChar> name_;
  bool exists_ = false;
};

inline Error not_a_regular_file() noexcept {
  return {ErrorCode::not_a_regular_file, "the path is a folder, a link or a device: give the path of a regular file"};
}

/// Refuses an empty name and a name with a NUL, because the system would read only the part before the NUL.
inline Result<void> check_name(std::basic_string_view<PathChar> name) noexcept {
  if (!name.empty() && name.find(PathChar{0}) == name.npos) return {};
  return Error{ErrorCode::bad_file_name, "the name of the file is empty or has a NUL in it: give another one"};
}

template <class Calls>
Result<void> save_file(Calls& calls, const std::filesystem::path& path, std::span<const std::byte> bytes) noexcept {
  const std::basic_string_view<PathChar> name = path.native();
  if (auto good = check_name(name); !good) return good;
  FileKind kind{};
  if (const int error = calls.look(path.c_str(), kind))
    return file_error(error, "the file cannot be examined: check the folders in its path");
  if (kind == FileKind::other) return not_a_regular_file();
  if (bytes.size() > calls.most_bytes()) return file_error(EFBIG, {});
  // Opens the folder before anything is written, because a folder that cannot be opened cannot be synced at the end.
  const std::size_t folder_length = name.rfind(PathChar{'/'}) + 1;
  detail::Buffer<PathChar> folder_name;
  if (!folder_name.reserve(folder_length + 2) || !folder_name.append(name.substr(0, folder_length)))
    return Error{ErrorCode::out_of_memory, "no memory for the name of a folder"};
  if (folder_length == 0) folder_name.push_reserved(PathChar{'.'});
  folder_name.push_reserved(PathChar{0});
  OpenFile<Calls> folder(calls);
  if (const int error = uninterrupted(calls, [&] { return calls.open_folder(folder_name.data(), folder.number); }))
    return file_error(error, "the folder of the file cannot be opened: it must exist and be readable");
  TemporaryFile<Calls> temporary(calls);
  if (auto created = temporary.create(name); !created) return created;
  if (auto filled = temporary.fill(bytes); !filled) return filled;
  if (auto replaced = temporary.become(path.c_str()); !replaced) return replaced;
  if (const int error = uninterrupted(calls, [&] { return calls.sync_folder(folder.number); }))
    return Error{ErrorCode::file_failed,
                 "the new file is in place, but its folder could not be synced: a power cut may restore the old one",
                 static_cast<std::uint64_t>(error)};
  return {};
}

inline Error file_unreadable(int error) noexcept {
  return file_error(error, "the file cannot be read: check its disk and its file system");
}

/// Opens a regular file for reading and returns its size.
template <class Calls>
Result<std::uint64_t> open_file(Calls& calls, const std::filesystem::path& path, OpenFile<Calls>& file) noexcept {
  if (const auto good = check_name(path.native()); !good) return good.error();
  const int error = uninterrupted(calls, [&] { return calls.open(path.c_str(), file.number); });
  if (error == ENOENT) return Error{ErrorCode::no_such_file, "there is no file of this name: check the path"};
  if (error != 0) return file_unreadable(error);
  FileKind kind{};
  std::uint64_t size = 0;
  if (const int measured = calls.measure(file.number, kind, size)) return file_unreadable(measured);
  if (kind != FileKind::regular) return not_a_regular_file();
  return size;
}

template <class Calls>
Result<void> load_file(Calls& calls, const std::filesystem::path& path, Bytes& bytes, std::size_t max_bytes) noexcept {
  bytes.release();
  OpenFile<Calls> file(calls);
  const auto size = open_file(calls, path, file);
  if (!size) return size.error();
  if (*size > max_bytes)
    return Error{ErrorCode::file_too_large, "the file is larger than allowed: check the path, or raise max_bytes",
                 *size, max_bytes};
  Bytes read;
  if (!read.reserve(static_cast<std::size_t>(*size)))
    return Error{ErrorCode::out_of_memory, "no memory for the bytes of the file", *size};
  static_cast<void>(read.resize(static_cast<std::size_t>(*size), std::byte{0}));
  for (std::span<std::byte> rest(read.data(), read.size()); !rest.empty();) {
    constexpr std::size_t most = std::size_t{1} << 30;
    std::size_t count = 0;
    const auto part = rest.first(std::min(rest.size(), most));
    if (const int failure = uninterrupted(calls, [&] { return calls.read(file.number, part, count); }))
      return file_unreadable(failure);
    if (count == 0)
      return Error{ErrorCode::file_failed,
                   "the file became shorter while it was read: replace files, never rewrite them"};
    rest = rest.subspan(count);
  }
  bytes.swap(read);
  return {};
}

}  // namespace detail

/// Saves `bytes` as a file, all or nothing. A reader of `path` finds either the old file or the new one, even after a
/// crash. The bytes are written to a new file in the same folder. This file is synced and replaces the old one, and
/// then the folder is synced. Only the owner of the new file may read it, from its creation on; the owner is the user
/// of this process, whatever the owner and the permissions of the old file. On Windows, the permissions of the folder
/// apply instead.
///
/// On any error the old file is unchanged and the new one is removed, with one exception. If only the last sync fails,
/// the new file is in place, and the message says so. A process that is killed while it saves may leave a file
/// path.PROCESS-NUMBER.tmp with the bytes unencrypted. The library never removes such a file: remove it yourself when
/// no save is running.
///
/// Errors: bad_file_name if `path` is empty or contains a NUL; not_a_regular_file; out_of_memory; file_failed (`value`:
/// a number from <cerrno>, or 0 if there was none). If `path` names a folder or a device, or (except on Windows) a
/// link, nothing is replaced: the error is not_a_regular_file. Allocates memory for names only.
///
/// On Windows, a link counts as the file that it points to, and the link itself may be replaced. Windows cannot replace
/// an open file: the error is file_failed; try again. Threads: any, even for the same path; the last one wins.
[[nodiscard]] inline Result<void> save_file(const std::filesystem::path& path,
                                            std::span<const std::byte> bytes) noexcept {
  detail::FileCalls calls;
  return detail::save_file(calls, path, bytes);
}

/// Reads a file into `bytes` and allocates exactly its size. After an error, `bytes` is empty.
///
/// Errors: bad_file_name and file_failed, as for save_file(); no_such_file; not_a_regular_file; file_too_large
/// (`value`: the file's size in bytes, `limit`: max_bytes); out_of_memory. Links are followed. On Windows, a folder
/// gives file_failed. Threads: any.
[[nodiscard]] inline Result<void> load_file(const std::filesystem::path& path, Bytes& bytes,
                                            std::size_t max_bytes = unlimited) noexcept {
  detail::FileCalls calls;
  return detail::load_file(calls, path, bytes, max_bytes);
}

}}  // namespace reprise
