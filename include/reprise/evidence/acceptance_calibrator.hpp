// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/core/fixed_point.hpp"

namespace reprise::inline v0 {

/// The worth of a strategy's claims for one sequence, where its probabilities are not learned and little is known of
/// each pass (a prompt-lookup drafter claims certainty for every token). One factor for each token of a path: hits over
/// tests, as if four tests had already given two hits; tests fade over about 64. It belongs to the sequence: keep one
/// beside its session, a new one for each new sequence. ClaimCalibrator is the finer tool, where outcomes are known.
///
/// Sixteen bytes, no allocation. Threads: as its session.
class AcceptanceCalibrator {
 public:
  /// Of a pass with `sent` drafted tokens, `accepted` were.
  void learn(std::size_t sent, std::size_t accepted) noexcept {
    if (sent == 0) return;
    accepted = std::min(accepted, sent);
    hits_ += UnitScale::from(std::uint64_t{accepted});
    tests_ += UnitScale::from(std::uint64_t{accepted + (accepted < sent ? 1 : 0)});
    while (tests_ > UnitScale::from(most_tests)) {
      tests_ -= tests_ / 8;
      hits_ -= hits_ / 8;
    }
  }
  /// The probability of a token that was claimed to be certain, of UnitScale.
  [[nodiscard]] std::uint32_t factor() const noexcept {
    return static_cast<std::uint32_t>(
        UnitScale::divide(hits_ + UnitScale::from(prior_hits), tests_ + UnitScale::from(prior_tests)));
  }

 private:
  static constexpr std::uint64_t prior_hits = 2;
  static constexpr std::uint64_t prior_tests = 4;
  static constexpr std::uint64_t most_tests = 64;  // an eighth is forgotten above it

  std::uint64_t hits_ = 0;  // of UnitScale, as they fade by parts
  std::uint64_t tests_ = 0;
};

}  // namespace reprise
