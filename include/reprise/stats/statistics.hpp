// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/outcome.hpp"

namespace reprise {

/// Counts of one generation. A plain struct: no atomics, no clock. Truncating a session cuts `tokens`; the work
/// that was done (passes, drafted) stays counted.
struct Statistics {
  std::uint64_t tokens = 0;                     ///< output tokens committed by passes
  std::uint64_t passes = 0;                     ///< committed verify passes, those without a draft included
  std::uint64_t drafted = 0;                    ///< draft tokens sent, pad rows included
  std::uint64_t accepted = 0;                   ///< draft tokens committed
  std::uint64_t padding = 0;                    ///< pad rows sent, counted in `drafted` too
  std::array<std::uint64_t, cut_count> cuts{};  ///< passes by the reason their draft was cut; see Cut

  /// Mean accepted tokens: tokens per pass, 1.0 without drafting. 0 before the first pass.
  [[nodiscard]] double mean_accepted_tokens() const noexcept { return ratio(tokens, passes); }
  /// Accepted / drafted. 0 when nothing was drafted.
  [[nodiscard]] double acceptance_rate() const noexcept { return ratio(accepted, drafted); }
  [[nodiscard]] double drafted_per_pass() const noexcept { return ratio(drafted, passes); }
  [[nodiscard]] std::uint64_t count(Cut cut) const noexcept { return cuts[static_cast<std::size_t>(cut)]; }

  Statistics& operator+=(const Statistics& other) noexcept {
    tokens += other.tokens;
    passes += other.passes;
    drafted += other.drafted;
    accepted += other.accepted;
    padding += other.padding;
    for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i] += other.cuts[i];
    return *this;
  }
  friend bool operator==(const Statistics&, const Statistics&) = default;

 private:
  static double ratio(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }
};

}  // namespace reprise
