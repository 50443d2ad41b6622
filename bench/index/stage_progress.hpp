// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>

namespace reprise::indexing {

/// Shows how far a stage of a build is, and how much time is left. Threads: advance() may be called from any thread.
class StageProgress {
 public:
  /// A line is redrawn on a terminal, ten times a second. In a file it is repeated, every five seconds.
  enum class Style : std::uint8_t { hidden, redrawn, repeated };

  StageProgress(std::ostream& out, Style style) : out_(out), style_(style) {}
  StageProgress(const StageProgress&) = delete;
  StageProgress& operator=(const StageProgress&) = delete;
  ~StageProgress() { clear(); }

  /// Starts a stage of `units` steps; `unit` names them, as in "tokens".
  void start(const std::string& stage, std::uint64_t units, const std::string& unit);
  void advance(std::uint64_t units);
  /// Erases the line before other output is printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::mutex mutex_;
  std::ostream& out_;
  Style style_;
  std::string stage_;
  std::string unit_;
  std::uint64_t units_ = 0;
  std::uint64_t done_ = 0;
  bool drawn_ = false;
  Clock::time_point started_;
  Clock::time_point drawn_at_;
};

}  // namespace reprise::indexing
