// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "report.hpp"
#include "run.hpp"
#include "seeds.hpp"

namespace reprise::replay {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;     ///< an output differed from its recording, or results were not written
inline constexpr int exit_bad_input = 2;  ///< an argument, trace or curve cannot be used

/// The streams and folders of the tool.
struct Surroundings {
  std::ostream& out;
  std::ostream& error;
  std::vector<std::filesystem::path> trace_folders;    ///< see bundled_folders()
  std::vector<std::filesystem::path> profile_folders;  ///< see bundled_folders()
  TableStyle table;
  bool show_progress = false;
  std::size_t progress_columns = 80;
};

/// The whole program except main(). Returns the exit status.
int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings);

/// Reports every output that differs from its recording. Returns the exit status.
int report_faults(std::span<const Row> rows, std::ostream& error);
int report_faults(std::span<const SeedRow> rows, std::ostream& error);

/// Writes the text of --list.
void write_list(std::ostream& out);

}  // namespace reprise::replay
