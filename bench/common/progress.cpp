// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <algorithm>

#include "text.hpp"

namespace reprise::tools {

std::string count_text(const std::string& unit, std::size_t done, std::size_t steps, double seconds) {
  std::string text = "  " + unit + " " + std::to_string(done) + " of " + std::to_string(steps);
  if (done == 0 || done >= steps) return text;
  text += ", " + std::to_string(100 * done / steps) + "%";
  if (seconds > 1)
    text += ", " + duration_text(seconds * static_cast<double>(steps - done) / static_cast<double>(done)) + " left";
  return text;
}

void Progress::start(const std::string& what, std::size_t steps, const std::string& unit) {
  const std::lock_guard lock(mutex_);
  what_ = printable(what);
  unit_ = unit;
  done_ = 0;
  steps_ = steps;
  started_ = std::chrono::steady_clock::now();
  draw();
}

void Progress::step() {
  const std::lock_guard lock(mutex_);
  ++done_;
  if (std::chrono::steady_clock::now() - drawn_ > std::chrono::milliseconds(100)) draw();
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  if (out_ != nullptr && steps_ != 0) *out_ << "\r\033[K" << std::flush;
  steps_ = 0;
}

void Progress::draw() {
  drawn_ = std::chrono::steady_clock::now();
  if (out_ == nullptr) return;
  const std::string count = count_text(unit_, done_, steps_, std::chrono::duration<double>(drawn_ - started_).count());
  const std::size_t room = columns_ > count.size() + 1 ? columns_ - count.size() - 1 : 0;
  // A long text keeps its end, which holds the file name and the strategy.
  const std::string shown = what_.substr(what_.size() - std::min(what_.size(), room));
  *out_ << "\r\033[K" << shown << count << std::flush;
}

}  // namespace reprise::tools
