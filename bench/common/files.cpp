// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <cerrno>
#include <filesystem>
#include <span>
#include <system_error>

#if !defined(_WIN32)
#include <unistd.h>
#endif

#include "input_error.hpp"
#include "reprise/history/snapshot_file.hpp"

namespace reprise::tools {
namespace {

/// The path of a file, existing or not, with all links resolved. Empty if it cannot be determined.
std::filesystem::path place_of(const std::string& path) {
  constexpr int most_links = 40;  // the usual limit of systems
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(path, error);
  for (int i = 0; i < most_links && !error && std::filesystem::is_symlink(place, error); ++i)
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  place = std::filesystem::weakly_canonical(place, error);
  return error ? std::filesystem::path() : place;
}

/// Writes `text` and returns true if all of it was written.
bool write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return static_cast<bool>(file);
}

}  // namespace

std::ifstream open_input(const std::string& path, const std::string& wanted) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw InputError(path + ": is a directory; give " + wanted);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path + ": cannot be opened; is the path right?");
  return in;
}

void check_writable(const std::string& path, const std::string& name) {
  std::error_code ignored;
  const bool existed = std::filesystem::exists(path, ignored);
  if (!std::ofstream(path, std::ios::binary | std::ios::app))
    throw InputError(name + ": cannot be written; does the folder exist?");
  // Removes the file just made, not a link that leads to it.
  if (!existed) std::filesystem::remove(std::filesystem::canonical(path, ignored), ignored);
}

void check_replaceable(const std::string& path, const std::string& name) {
  using std::filesystem::file_type;
  std::error_code error;
  const file_type type = std::filesystem::symlink_status(path, error).type();
  if (type == file_type::none) throw InputError(name + ": " + error.message());
  if (type != file_type::not_found && type != file_type::regular)
    throw InputError(name + ": is a folder, a link or a device; give the name of a regular file");
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  if (!std::filesystem::is_directory(folder, error))
    throw InputError(name + ": cannot be written; does the folder exist?");
#if !defined(_WIN32)
  if (const int why = ::access(folder.c_str(), R_OK | W_OK | X_OK) == 0 ? 0 : errno)
    throw InputError(name + ": cannot be written, because of its folder: " + std::generic_category().message(why));
#endif
}

bool replace_text(const std::string& path, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path file = place_of(path);
  const fs::file_status old = fs::status(file, error);
  const bool exists = fs::exists(old);
  if (exists && !fs::is_regular_file(old)) return write_text(path, text);
  const auto saved = save_file(file, std::as_bytes(std::span(text)));
  if (saved && exists) fs::permissions(file, old.permissions(), error);
  if (saved) return true;
  const std::uint64_t refused = saved.error().value;
  return (refused == EACCES || refused == EPERM || refused == ENAMETOOLONG) && write_text(path, text);
}

void check_not_an_input(const std::string& path, const std::string& name, const std::vector<InputFile>& inputs) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return;
  for (const InputFile& input : inputs)
    if (std::filesystem::equivalent(path, input.path, error))
      throw InputError(name + ": would replace " + input.what + " " + input.path +
                       ", which is read; give another file");
}

std::string words(const Error& error) {
  std::string text(error.message);
  switch (error.code) {
    case ErrorCode::file_failed:
#if !defined(_WIN32)  // there `value` is not always an errno
      return text + " (" + std::generic_category().message(static_cast<int>(error.value)) + ")";
#else
      return text;
#endif
    case ErrorCode::corpus_truncated:
      return text + " (" + std::to_string(error.value) + " bytes, expected " + std::to_string(error.limit) + ")";
    case ErrorCode::newer_version:
      return text + " (version " + std::to_string(error.value) + ")";
    default:
      return text;
  }
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code error;
  if (std::filesystem::equivalent(one, other, error)) return true;
  const std::filesystem::path place = place_of(one);
  return !place.empty() && place == place_of(other);
}

}  // namespace reprise::tools
