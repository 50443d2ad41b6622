// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_point.hpp"

namespace reprise::inline v0 {

/// Estimates the probability that a drafted token is accepted if the tokens before it are, for one strategy in one
/// sequence. It is for strategies without calibrated probabilities, if only the number of accepted tokens of each pass
/// is known. A prompt-lookup drafter, for example, claims certainty for every token.
///
/// The estimate is one factor per token of a path: hits / tests. Accepted tokens are hits; they and the first rejected
/// token of a pass are tests. Two hits in four tests are always added, so the estimate starts at one half. Old tests
/// fade over about 64 new ones. Keep one calibrator per session, and make a new one for each sequence. ClaimCalibrator
/// is more precise; use it if outcomes are known.
///
/// It takes 16 bytes and does not allocate. Threads: the same rules as for its session.
class AcceptanceCalibrator {
 public:
  /// Learns from a pass that sent `sent` drafted tokens and accepted `accepted` of them.
  void learn(std::size_t sent, std::size_t accepted) noexcept {
    if (sent == 0) return;
    accepted = std::min(accepted, sent);
    hits_ += detail::UnitScale::from(std::uint64_t{accepted});
    tests_ += detail::UnitScale::from(std::uint64_t{accepted + (accepted < sent ? 1 : 0)});
    while (tests_ > detail::UnitScale::from(most_tests)) {
      tests_ -= tests_ / 8;
      hits_ -= hits_ / 8;
    }
  }
  /// Returns the probability of a token that the strategy claims to be certain, in UnitScale.
  [[nodiscard]] std::uint32_t factor() const noexcept {
    return static_cast<std::uint32_t>(detail::UnitScale::divide(hits_ + detail::UnitScale::from(prior_hits),
                                                                tests_ + detail::UnitScale::from(prior_tests)));
  }

 private:
  static constexpr std::uint64_t prior_hits = 2;
  static constexpr std::uint64_t prior_tests = 4;
  static constexpr std::uint64_t most_tests = 64;  // above this limit, an eighth is forgotten

  std::uint64_t hits_ = 0;  // in UnitScale, because fading leaves fractions
  std::uint64_t tests_ = 0;
};

}  // namespace reprise
