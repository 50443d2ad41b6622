// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <ostream>
#include <string>

namespace reprise::tools {

/// One line on a terminal that says how far the replay is, redrawn at most ten times a second. Threads: step() may
/// be called from any.
class Progress {
 public:
  /// `out`: null for no progress at all. `columns`: what a line may take up.
  Progress(std::ostream* out, std::size_t columns) : out_(out), columns_(columns) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// A new stretch of `steps` steps; `unit` says what one of them is.
  void start(const std::string& what, std::size_t steps, const std::string& unit = "session");
  void step();
  /// Wipes the line: something else is going to be printed.
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
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace reprise::tools
