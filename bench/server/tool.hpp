// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace reprise::server {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< an output differed from its recording, or results were not written
inline constexpr int exit_bad_input = 2;  ///< an argument, trace or curve cannot be used

/// The streams and folders of the tool.
struct Surroundings {
  std::ostream& out;
  std::ostream& error;
  std::vector<std::filesystem::path> trace_folders;
  std::vector<std::filesystem::path> profile_folders;
  bool unicode = false;
};

/// The whole program except main(). Returns the exit status.
int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings);

}  // namespace reprise::server
