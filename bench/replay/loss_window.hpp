// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace reprise::replay {

/// The worst that happened in any stretch of at most so many passes in a row: a stretch loses what its passes cost
/// beyond what plain decoding would have cost for the tokens they gave. Exact for stretches of every length up to
/// the longest; constant time a pass, taken over all of them.
class LossWindow {
 public:
  static constexpr std::size_t passes = 1000;

  explicit LossWindow(std::size_t longest = passes) : longest_(longest) {}

  /// One more pass: what it cost, in passes without a draft, and the tokens it gave.
  void add(double cost, std::size_t committed) {
    ++at_;
    sum_ += cost - static_cast<double>(committed);
    while (!lows_.empty() && lows_.front().at + longest_ < at_) lows_.pop_front();
    worst_ = std::max(worst_, sum_ - lows_.front().sum);
    while (!lows_.empty() && lows_.back().sum >= sum_) lows_.pop_back();
    lows_.push_back({at_, sum_});
  }

  /// In passes without a draft; 0 when no stretch lost anything.
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
  std::deque<Low> lows_{{0, 0.0}};  // where a stretch may begin: sums ascend, the lowest is in front
};

}  // namespace reprise::replay
