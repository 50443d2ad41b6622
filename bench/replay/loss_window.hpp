// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace reprise::replay {

/// The largest loss of any run of at most `longest` consecutive passes. A loss is the cost of the passes minus the cost
/// of plain decoding for the tokens that they committed. Exact for runs of every length up to `longest`. Cost of add():
/// constant, amortised.
class LossWindow {
 public:
  static constexpr std::size_t passes = 1000;

  explicit LossWindow(std::size_t longest = passes) : longest_(longest) {}

  /// Adds a pass: its cost, in passes without a draft, and the number of tokens that it committed.
  void add(double cost, std::size_t committed) {
    ++at_;
    sum_ += cost - static_cast<double>(committed);
    while (!lows_.empty() && lows_.front().at + longest_ < at_) lows_.pop_front();
    worst_ = std::max(worst_, sum_ - lows_.front().sum);
    while (!lows_.empty() && lows_.back().sum >= sum_) lows_.pop_back();
    lows_.push_back({at_, sum_});
  }

  /// The loss in passes without a draft; 0 if no run lost anything.
  [[nodiscard]] double worst() const { return worst_; }

 private:
  struct Low {
    std::uint64_t at;
    double sum;
  };

  std::uint64_t longest_;
  std::uint64_t at_ = 0;
  double sum_ = 0;
  double worst_ = 0;
  std::deque<Low> lows_{{0, 0.0}};  // possible starts of a run: sums ascend, the lowest is first
};

}  // namespace reprise::replay
