// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <ostream>
#include <string>

namespace reprise::tools {

/// A progress line on a terminal, redrawn at most ten times a second: the count, its share, and the time that is left
/// at the speed so far. Threads: step() may be called from any thread.
class Progress {
 public:
  /// `out` is null to show no progress. `columns`: the largest width of the line.
  Progress(std::ostream* out, std::size_t columns) : out_(out), columns_(columns) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Starts a new count of `steps` steps; `unit` names one step.
  void start(const std::string& what, std::size_t steps, const std::string& unit = "session");
  void step();
  /// Erases the line before other output is printed.
  void clear();

 private:
  void draw();

  std::mutex mutex_;
  std::ostream* out_;
  std::size_t columns_;
  std::string what_;
  std::string unit_;
  std::size_t done_ = 0;
  std::size_t steps_ = 0;
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point drawn_;
};

/// Returns the part of a progress line after its text. `seconds`: the time since the count began.
std::string count_text(const std::string& unit, std::size_t done, std::size_t steps, double seconds);

}  // namespace reprise::tools
