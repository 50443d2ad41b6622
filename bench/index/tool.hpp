// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <span>
#include <string>

namespace reprise::indexing {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< a corpus is damaged, or a result could not be written
inline constexpr int exit_bad_input = 2;  ///< an argument or input cannot be used

/// The streams of the tool.
struct Surroundings {
  std::ostream& out;
  std::ostream& error;
  bool error_is_terminal = false;
};

/// The whole program except main(). Returns the exit status.
int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings);

}  // namespace reprise::indexing
