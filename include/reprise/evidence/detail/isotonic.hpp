// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/contract.hpp"

namespace reprise::inline v0::detail {

/// Isotonic regression: computes the non-decreasing sequence that is closest to a given one. Neighbours that are out of
/// order are replaced with their weighted mean (pool adjacent violators: Ayer et al. 1955).
///
/// First call add() for each value, at most `Most` times. Then call next() once per value: it returns the results in
/// the same order. Weights must be above 0. The sum of all values times their weights, multiplied by the sum of all
/// weights, must fit in 64 bits. Total cost: linear in the number of values.
template <std::size_t Most>
class IsotonicPools {
 public:
  void add(std::uint64_t value, std::uint64_t weight) noexcept {
    REPRISE_EXPECTS(count_ < Most);
    pools_[count_++] = {value * weight, weight, 1};
    while (count_ > 1 &&
           pools_[count_ - 2].sum * pools_[count_ - 1].weight > pools_[count_ - 1].sum * pools_[count_ - 2].weight) {
      --count_;
      pools_[count_ - 1].sum += pools_[count_].sum;
      pools_[count_ - 1].weight += pools_[count_].weight;
      pools_[count_ - 1].size += pools_[count_].size;
    }
  }
  [[nodiscard]] std::uint64_t next() noexcept {
    if (read_ == pools_[pool_].size) {
      ++pool_;
      read_ = 0;
    }
    ++read_;
    return pools_[pool_].sum / pools_[pool_].weight;
  }

 private:
  struct Pool {
    std::uint64_t sum;
    std::uint64_t weight;
    std::size_t size;
  };
  std::array<Pool, Most> pools_;  // NOLINT(*-member-init): filled up to `count_`
  std::size_t count_ = 0;
  std::size_t pool_ = 0;  // the pool that next() reads
  std::size_t read_ = 0;  // number of values of that pool returned so far
};

}  // namespace reprise::detail
