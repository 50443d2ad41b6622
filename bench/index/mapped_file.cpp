// SPDX-License-Identifier: Apache-2.0
#include "mapped_file.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/files.hpp"
#include "common/input_error.hpp"

#if !defined(_WIN32)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace reprise::indexing {

#if defined(_WIN32)

MappedFile::MappedFile(const std::string& path) {
  std::ifstream in = tools::open_input(path, "a file");
  in.seekg(0, std::ios::end);
  copy_.resize(static_cast<std::size_t>(in.tellg()));
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(copy_.data()), static_cast<std::streamsize>(copy_.size())))
    throw tools::InputError(path + ": reading failed");
  bytes_ = copy_;
}

MappedFile::~MappedFile() = default;

#else

MappedFile::MappedFile(const std::string& path) {
  static_cast<void>(tools::open_input(path, "a file"));
  const auto fail = [&](int file) {
    const int error = errno;
    if (file >= 0) ::close(file);
    throw tools::InputError(path + ": cannot be mapped: " + std::generic_category().message(error));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (file < 0 || ::fstat(file, &status) != 0) fail(file);
  if (const auto size = static_cast<std::size_t>(status.st_size); size != 0) {
    void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
    if (begin == MAP_FAILED) fail(file);
    bytes_ = {static_cast<const std::byte*>(begin), size};
  }
  ::close(file);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

#endif

void MappedFile::swap(MappedFile& other) noexcept {
  std::swap(bytes_, other.bytes_);
  copy_.swap(other.copy_);
}

}  // namespace reprise::indexing
