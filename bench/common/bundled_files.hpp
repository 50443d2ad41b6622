// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tools {

/// The trace files (*.jsonl) of the first of `folders` that has any, sorted by name. Throws InputError with the names
/// of the folders if none has.
std::vector<std::string> find_traces(const std::vector<std::filesystem::path>& folders);

/// The folders that may hold bundled files: first the one beside the installed tool, then the one in the source tree of
/// the build. `kind` is "traces", or "profiles" for cost curves.
std::vector<std::filesystem::path> bundled_folders(const std::filesystem::path& program, std::string_view kind);

/// The path of the running program. Falls back to `argv0` if the system does not report it.
std::filesystem::path program_path(const std::string& argv0);

}  // namespace reprise::tools
