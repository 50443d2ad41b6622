// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/evidence/detail/next_token_tables.hpp"

namespace reprise::inline v0::detail {

/// A source of next tokens for one position: next-token counts, or a ranking that the target has shown.
enum class NextTokenSource : std::uint8_t {
  counts_after_two,   ///< counts after the last two tokens
  counts_after_one,   ///< counts after the last token
  ranked_after_two,   ///< the latest ranking after the same two tokens
  ranked_after_one,   ///< the latest ranking after the same token
  ranked_before,      ///< directly after the anchor: the ranking that picked the anchor
  ranked_two_before,  ///< directly after the anchor: the ranking that picked the token before the anchor
  ranked_anchor       ///< one token later: the ranking that picked the anchor
};

/// The evidence of next-token counts and of rankings for one candidate: one class for each source. All sources share
/// one numbering, so a class is an index into one table.
struct NextTokenEvidence {
  static constexpr std::size_t sources = 7;
  static constexpr std::uint8_t unknown = 0;  ///< the source knows nothing about this position
  static constexpr std::size_t classes_in_all = next_token_classes;

  /// Returns the class of a token that the source does not have, although it knows this position. `carried`: a ranking
  /// from an earlier sequence.
  [[nodiscard]] static constexpr std::uint8_t absent(NextTokenSource source, bool carried = false) noexcept {
    return static_cast<std::uint8_t>(first_class[static_cast<std::size_t>(source)] + (carried ? 1 : 0));
  }
  /// The classes of the counted tokens of one context, which has occurred `total` times.
  class CountClasses {
   public:
    constexpr CountClasses(NextTokenSource source, std::uint32_t total) noexcept
        : first_(absent(source) + 1U +
                 (total < 2    ? 0U
                  : total < 5  ? 1U
                  : total < 20 ? 2U
                               : 3U)),
          total_(log2_q8(std::uint64_t{total} + 1)) {}
    /// Returns the class of a token that was counted `count` times. It combines the share of the token with the
    /// magnitude of the total. Requires 1 <= count <= total.
    [[nodiscard]] constexpr std::uint8_t of(std::uint32_t count) const noexcept {
      constexpr LogOdds step = 3 * log_odds_one / 4;  // of the binary logarithm of the share
      const auto share = static_cast<std::size_t>((total_ - log2_q8(count)) / step);
      return static_cast<std::uint8_t>(first_ + 4 * std::min<std::size_t>(share, shares - 1));
    }

   private:
    std::size_t first_;
    LogOdds total_;
  };
  /// Returns the class of a token with this rank, which is below Ranking::most. Only the sources ranked_after_two and
  /// ranked_after_one can be carried.
  [[nodiscard]] static constexpr std::uint8_t ranked(NextTokenSource source, std::size_t rank,
                                                     bool carried = false) noexcept {
    const bool has_carried = source == NextTokenSource::ranked_after_two || source == NextTokenSource::ranked_after_one;
    return static_cast<std::uint8_t>(absent(source) + (has_carried ? 2 : 1) + rank + (carried ? ranks : 0));
  }

  [[nodiscard]] constexpr std::uint8_t of(NextTokenSource source) const noexcept {
    return classes[static_cast<std::size_t>(source)];
  }
  constexpr void set(NextTokenSource source, std::uint8_t known_class) noexcept {
    classes[static_cast<std::size_t>(source)] = known_class;
  }
  /// Takes over the classes of `absent` for the sources that do not have the token.
  constexpr void complete(const NextTokenEvidence& absent) noexcept {
    for (std::size_t i = 0; i < sources; ++i)
      if (classes[i] == unknown) classes[i] = absent.classes[i];
  }
  /// True if a source knows this position.
  [[nodiscard]] constexpr bool known() const noexcept { return classes != std::array<std::uint8_t, sources>{}; }
  /// True if the token is in a ranking.
  [[nodiscard]] constexpr bool ranked() const noexcept {
    for (std::size_t i = 2; i < sources; ++i)
      if (classes[i] >= ranked(static_cast<NextTokenSource>(i), 0)) return true;
    return false;
  }
  /// Returns a number below `kinds` for the kinds of sources: counts, rankings after the same tokens, and whether one
  /// of these has the token.
  [[nodiscard]] constexpr std::size_t kind() const noexcept {
    const bool counts = of(NextTokenSource::counts_after_two) != 0 || of(NextTokenSource::counts_after_one) != 0;
    const bool rankings = of(NextTokenSource::ranked_after_two) != 0 || of(NextTokenSource::ranked_after_one) != 0;
    return (counts ? 4U : 0U) + (rankings ? 2U : 0U) + (listed ? 1U : 0U);
  }
  static constexpr std::size_t kinds = 8;
  static_assert(next_token_slopes[0].size() == kinds);

  std::array<std::uint8_t, sources> classes{};
  bool listed = false;  ///< counted, or ranked after the same tokens

 private:
  static constexpr std::size_t shares = 12;
  static constexpr std::uint8_t ranks = 8;
  static constexpr std::array<std::uint8_t, sources> first_class = {1, 50, 99, 117, 135, 144, 153};
  static_assert(first_class.back() + 1 + ranks == classes_in_all);
};

/// Returns the built-in effect of the evidence on log-odds of `known` from all other evidence. `group`: the kind of the
/// other evidence; see TokenCalibrator.
[[nodiscard]] constexpr LogOdds next_token_value(const NextTokenEvidence& evidence, std::size_t group,
                                                 LogOdds known) noexcept {
  LogOdds sum =
      LogOddsScale::multiply(LogOdds{next_token_slopes[group][evidence.kind()]}, std::min(known, log_odds_one));
  for (const std::uint8_t known_class : evidence.classes) sum += next_token_values[group][known_class];
  return sum;
}

}  // namespace reprise::detail
