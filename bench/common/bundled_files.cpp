// SPDX-License-Identifier: Apache-2.0
#include "bundled_files.hpp"

#include <algorithm>
#include <system_error>

#include "input_error.hpp"

namespace reprise::tools {

namespace fs = std::filesystem;

std::vector<std::string> find_traces(const std::vector<fs::path>& folders) {
  std::string looked_at;
  for (const fs::path& folder : folders) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == ".jsonl") found.push_back(entry->path().generic_string());
    std::sort(found.begin(), found.end());
    if (!found.empty()) return found;
    looked_at += (looked_at.empty() ? "" : " or ") + folder.generic_string();
  }
  throw InputError("no TRACE was given and the bundled ones are not in " + looked_at + "; give the path of a trace");
}

std::vector<fs::path> bundled_folders(const fs::path& program, std::string_view kind) {
  std::vector<fs::path> folders;
#if defined(REPRISE_INSTALLED_DATA)  // relative to the folder of the program
  folders.push_back((program.parent_path() / REPRISE_INSTALLED_DATA / kind).lexically_normal());
#endif
#if defined(REPRISE_SOURCE_DATA)
  folders.push_back(fs::path(REPRISE_SOURCE_DATA) / kind);
#endif
  return folders;
}

fs::path program_path(const std::string& argv0) {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error || path.empty()) path = fs::absolute(argv0, error);
  return path;
}

}  // namespace reprise::tools
