// SPDX-License-Identifier: Apache-2.0
#include "stage_progress.hpp"

#include "common/text.hpp"

namespace reprise::indexing {

void StageProgress::start(const std::string& stage, std::uint64_t units, const std::string& unit) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  unit_ = unit;
  units_ = units;
  done_ = 0;
  started_ = Clock::now();
  draw(started_);
}

void StageProgress::advance(std::uint64_t units) {
  if (style_ == Style::hidden) return;
  const std::lock_guard lock(mutex_);
  done_ += units;
  const Clock::time_point now = Clock::now();
  const auto pause = style_ == Style::redrawn ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (now - drawn_at_ > pause) draw(now);
}

void StageProgress::clear() {
  const std::lock_guard lock(mutex_);
  if (style_ == Style::redrawn && drawn_) out_ << "\r\033[K" << std::flush;
  drawn_ = false;
}

void StageProgress::draw(Clock::time_point now) {
  if (style_ == Style::hidden) return;
  std::string line = stage_;
  if (done_ != 0) line += ": " + tools::grouped(done_) + " of " + tools::grouped(units_) + " " + unit_;
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  if (done_ != 0 && done_ < units_ && elapsed > 1)
    line += ", " + tools::duration_text(elapsed * static_cast<double>(units_ - done_) / static_cast<double>(done_)) +
            " left";
  out_ << (style_ == Style::redrawn ? "\r\033[K" + line : line + "\n") << std::flush;
  drawn_ = true;
  drawn_at_ = now;
}

}  // namespace reprise::indexing
