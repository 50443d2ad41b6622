// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tools {

/// The trace files (*.jsonl) of the first of `folders` that has any, in the order of their names. Throws InputError
/// that names the folders when none has.
std::vector<std::string> find_traces(const std::vector<std::filesystem::path>& folders);

/// Where bundled files may lie, beside the installed tool or where this tool was built, in that order. `kind`:
/// "traces", or "profiles" for cost curves.
std::vector<std::filesystem::path> bundled_folders(const std::filesystem::path& program, std::string_view kind);

/// The file that is running. `argv0` is believed where the system does not tell.
std::filesystem::path program_path(const std::string& argv0);

}  // namespace reprise::tools
