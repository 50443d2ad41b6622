// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <filesystem>
#include <system_error>

#include "input_error.hpp"

namespace reprise::replay {

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
    throw InputError(name + ": cannot be written; is there such a folder?");
  if (!existed) std::filesystem::remove(path, ignored);
}

}  // namespace reprise::replay
