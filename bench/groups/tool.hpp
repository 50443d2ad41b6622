// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace reprise::groups {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< the results could not be written
inline constexpr int exit_bad_input = 2;  ///< an argument, trace or curve cannot be used

/// The streams of the tool, and the folders of bundled curves.
struct Surroundings {
  std::ostream& out;
  std::ostream& error;
  std::vector<std::filesystem::path> profile_folders;
};

/// The whole program except main(). Returns the exit status.
int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings);

}  // namespace reprise::groups
