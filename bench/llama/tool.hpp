// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace reprise::llama {

inline constexpr int exit_done = 0;  ///< for --compare: all texts are identical
inline constexpr int exit_failed = 1;
inline constexpr int exit_bad_input = 2;
inline constexpr int exit_near_tie = 3;
inline constexpr int exit_wrong = 4;
inline constexpr int exit_interrupted = 130;  ///< the report has what was measured until then

/// The streams and folders of the tool.
struct Surroundings {
  std::ostream& out;
  std::ostream& error;
  std::vector<std::filesystem::path> profile_folders = {};  ///< of bundled curves, see tools::bundled_folders()
  bool show_progress = false;
  std::size_t progress_columns = 80;
};

/// The whole program except main(). Returns the exit status.
int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings);

}  // namespace reprise::llama
