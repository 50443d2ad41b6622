// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace reprise::indexing {

/// The bytes of a file, mapped for reading. On Windows they are a copy.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws InputError if the file cannot be mapped.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void swap(MappedFile& other) noexcept;

  std::span<const std::byte> bytes_;
  std::vector<std::byte> copy_;
};

}  // namespace reprise::indexing
