// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/control/cost_curve.hpp"
#include "reprise/control/draft_length.hpp"

namespace reprise {

/// Tokens per plain pass over about the last 50 passes: tokens and costs are averaged each for itself, because the
/// mean of their ratios is another number. Begins at 1.3, as if ten plain passes had given 13 tokens; never below 1,
/// what plain decoding gives.
class Throughput {
 public:
  [[nodiscard]] Rate rate() const noexcept { return rate_; }

  void add(std::size_t tokens, std::int64_t cost) noexcept {
    constexpr std::int64_t memory = 50;  // passes
    constexpr std::size_t many = 1 << 20;
    tokens_ += static_cast<std::int64_t>(std::min(tokens, many)) * rate_one - tokens_ / memory;
    cost_ += cost - cost_ / memory;
    rate_ = std::max(rate_one, (tokens_ << 16) / std::max<std::int64_t>(cost_, 1));
  }

 private:
  std::int64_t tokens_ = 13 * rate_one;
  std::int64_t cost_ = 10 * std::int64_t{cost_one};
  Rate rate_ = 13 * rate_one / 10;
};

}  // namespace reprise
