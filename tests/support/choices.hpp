// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise_testing/random.hpp"

namespace reprise::testing {

/// The source of a random world's decisions: a seed, or the bytes of a fuzzer. After the last byte every choice is 0,
/// so a test body must then end.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(mix(seed)) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : random_(0), bytes_(bytes) {}

  std::size_t below(std::size_t bound) {
    if (!bytes_) return random_.below(bound);
    std::size_t value = 0;
    for (std::size_t left = bound; left > 1 && !bytes_->empty(); left >>= 8) {
      value = value << 8 | bytes_->front();
      bytes_ = bytes_->subspan(1);
    }
    return bound == 0 ? 0 : value % bound;
  }
  std::size_t between(std::size_t least, std::size_t most) { return least + below(most - least + 1); }
  /// False when no bytes are left.
  bool chance(std::size_t percent) { return below(100) >= 100 - percent; }

 private:
  Random random_;
  std::optional<std::span<const std::uint8_t>> bytes_;
};

}  // namespace reprise::testing
