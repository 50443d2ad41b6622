// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/evidence/calibration_state.hpp"

namespace reprise { inline namespace v0 { namespace detail {

// The built-in tables of NextTokenEvidence: log-odds in LogOddsScale, fitted to recorded outputs (docs/decisions/0005).

inline constexpr std::size_t next_token_classes = CalibrationState::next_token_classes;
inline constexpr std::size_t next_token_groups = CalibrationState::next_token_groups;

/// By group and class.
inline constexpr std::array<std::array<std::int16_t, next_token_classes>, next_token_groups> next_token_values = {{
    {{0,    -153, 0,    332, 428,  378, 366,  261,  274,  336,  0,    209,  151,  126, 0,    40,   61,   109,
      0,    0,    100,  66,  0,    0,   4,    -25,  0,    0,    0,    -70,  0,    0,   0,    -114, 0,    0,
      0,    19,   0,    0,   0,    -50, 0,    0,    0,    0,    0,    0,    0,    0,   -281, 0,    42,   114,
      53,   18,   -41,  -85, 73,   0,   -103, -69,  67,   0,    -88,  -193, -25,  0,   0,    -220, -155, 0,
      0,    -173, -179, 0,   0,    0,   -289, 0,    0,    0,    -267, 0,    0,    0,   -281, 0,    0,    0,
      -410, 0,    0,    0,   -133, 0,   0,    0,    -53,  -214, -37,  203,  -109, -89, -98,  -120, -118, -166,
      -142, 206,  291,  107, 18,   107, 78,   71,   117,  -231, -160, 151,  104,  18,  6,    -66,  -92,  -171,
      -167, 85,   -15,  58,  -31,  -88, -127, -152, -165, -305, 0,    139,  47,   60,  -38,  -129, -38,  -32,
      0,    0,    325,  254, 169,  86,  16,   38,   68,   -123, 0,    -111, -7,   92,  -12,  -55,  -171, -197}},
    {{0,    -61,  0,    503,  125, 579,  252,  -35,  132,  314,  0,    -68,  116,  47,  0,    163,  237,  211,
      0,    0,    201,  99,   0,   0,    -87,  14,   0,    0,    0,    135,  0,    0,   0,    -44,  0,    0,
      0,    31,   0,    0,    0,   -27,  0,    0,    0,    0,    0,    0,    0,    0,   -470, 0,    -106, 14,
      -153, -55,  -75,  -207, 94,  0,    -160, -168, 24,   0,    -53,  -205, -57,  0,   0,    -251, -206, 0,
      0,    -341, -325, 0,    0,   0,    -386, 0,    0,    0,    -361, 0,    0,    0,   -415, 0,    0,    0,
      -245, 0,    0,    0,    -64, 0,    0,    0,    -58,  -173, -33,  139,  61,   23,  -19,  -14,  -109, -69,
      -49,  208,  303,  120,  146, 180,  51,   96,   114,  -354, -262, -103, 208,  113, 89,   46,   -92,  -105,
      -201, 33,   -23,  21,   -86, -153, -196, -197, -198, -82,  0,    392,  335,  293, 201,  131,  186,  194,
      74,   0,    365,  288,  190, 199,  72,   62,   47,   -39,  0,    -25,  -105, 285, 99,   87,   -66,  58}},
    {{0,   -85, 0,    133, 243, 164, 153,  68,  103,  139, 0,    -9,  71,  90,  0,   20,  -70, 32, 0,   0,    40,
      -57, 0,   0,    -9,  -2,  0,   0,    0,   -124, 0,   0,    0,   -77, 0,   0,   0,   -36, 0,  0,   0,    -134,
      0,   0,   0,    -81, 0,   0,   0,    -3,  -27,  0,   144,  36,  137, 27,  51,  -84, -9,  0,  -27, -9,   -70,
      0,   39,  -102, 32,  0,   0,   -84,  -59, 0,    0,   -61,  -35, 0,   0,   0,   -86, 0,   0,  0,   -104, 0,
      0,   0,   56,   0,   0,   0,   -101, 0,   0,    0,   -139, 0,   0,   0,   -36, -58, -71, 52, 29,  -12,  -31,
      -25, 0,   3,    -36, 109, -24, 4,    21,  -32,  76,  61,   -12, 18,  82,  -62, 56,  10,  35, 12,  -45,  -48,
      -70, 43,  41,   59,  135, -18, -1,   33,  -24,  -74, 0,    230, 213, 203, 78,  111, 80,  95, 13,  0,    119,
      109, 55,  39,   73,  -2,  33,  -20,  0,   141,  116, 149,  79,  102, -32, -22}},
    {{0,   52,  0,   23,  155, 148, -30, 35,  75,  75,   0,  -5,  14,  88,  0,   -12, 62,  109, 0,  0,   -12,
      61,  0,   0,   54,  73,  0,   0,   0,   9,   0,    0,  0,   -13, 0,   0,   0,   -23, 0,   0,  0,   1,
      0,   0,   0,   -69, 0,   0,   0,   -2,  23,  0,    0,  0,   18,  0,   -4,  7,   66,  0,   4,  66,  -18,
      0,   4,   47,  -20, 0,   0,   39,  5,   0,   0,    65, -38, 0,   0,   0,   -90, 0,   0,   0,  -36, 0,
      0,   0,   49,  0,   0,   0,   9,   0,   0,   0,    21, 0,   0,   0,   -20, -90, -12, 70,  16, -26, -102,
      -67, 4,   -37, -7,  53,  37,  22,  -24, 26,  60,   79, -20, -5,  123, -61, 79,  46,  35,  46, -57, 7,
      -67, -43, 74,  22,  66,  -4,  19,  10,  12,  -146, 0,  154, 159, 133, 49,  60,  42,  39,  21, 0,   34,
      86,  42,  42,  37,  23,  27,  -38, 0,   -25, 41,   13, 52,  26,  -21, 21}},
    {{0,    -111, 0,    -46,  -122, -110, 80,   -60,  -107, -8,   0,    5,    -123, -192, 0,    -55,  -94,  -152,
      0,    0,    -13,  -103, 0,    0,    -53,  -129, 0,    0,    0,    -68,  0,    0,    0,    -105, 0,    0,
      0,    -44,  0,    0,    0,    -42,  0,    0,    0,    -55,  0,    0,    0,    -16,  -258, 0,    -121, -84,
      -180, 5,    -87,  -167, -29,  0,    -52,  -115, 3,    0,    -61,  -185, -40,  0,    0,    -213, -180, 0,
      0,    -148, -191, 0,    0,    0,    -295, 0,    0,    0,    -319, 0,    0,    0,    -326, 0,    0,    0,
      -331, 0,    0,    0,    -190, 0,    0,    0,    -166, -222, -81,  11,   -62,  -43,  -47,  -22,  -70,  -33,
      -1,   124,  191,  58,   37,   59,   28,   -18,  75,   -269, -131, -14,  81,   -10,  21,   -12,  4,    -63,
      -62,  -31,  7,    114,  2,    61,   -13,  -47,  -65,  -129, 0,    257,  146,  86,   16,   -4,   25,   57,
      -36,  0,    190,  130,  103,  22,   11,   32,   49,   -21,  0,    -14,  3,    10,   6,    1,    56,   -12}},
    {{0,   -46, 0,   -79, -54, -41, -11,  47,  49,  -19,  0,   -38, -22, -35, 0,   -32,  -32, -42, 0,   0,    18,
      68,  0,   0,   31,  45,  0,   0,    0,   -27, 0,    0,   0,   -18, 0,   0,   0,    -56, 0,   0,   0,    -53,
      0,   0,   0,   -30, 0,   0,   0,    0,   46,  0,    123, -91, 69,  79,  -15, -129, -28, 0,   -13, -30,  -55,
      0,   8,   -25, -9,  0,   0,   -25,  -45, 0,   0,    -15, -15, 0,   0,   0,   1,    0,   0,   0,   -73,  0,
      0,   0,   -67, 0,   0,   0,   -120, 0,   0,   0,    0,   0,   0,   0,   4,   -83,  27,  77,  -63, -121, -64,
      -36, -2,  16,  -20, 35,  -9,  37,   34,  -16, 51,   -16, 9,   -13, 41,  -31, 28,   64,  -3,  26,  25,   -69,
      -46, 22,  11,  45,  97,  -32, 6,    21,  -35, -131, 0,   99,  83,  83,  -13, 30,   25,  71,  -11, 0,    53,
      57,  60,  32,  31,  -11, 28,  -30,  0,   41,  22,   27,  -2,  -26, 8,   14}},
}};

/// The share of the other log-odds that is added, by group and by NextTokenEvidence::kind().
inline constexpr std::array<std::array<std::int16_t, 8>, next_token_groups> next_token_slopes = {{
    {{-30, 0, -70, -147, -47, -137, -137, -184}},
    {{0, 0, 0, 0, -108, -149, -140, -173}},
    {{-41, 0, -2, -78, -45, -110, -11, -115}},
    {{0, 0, 0, 1, -69, -107, -57, -121}},
    {{0, 0, 0, 0, -58, -88, -111, -155}},
    {{0, 0, 0, 0, -80, -91, -89, -120}},
}};

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
  [[nodiscard]] constexpr bool known() const noexcept {
    static_assert(sizeof(NextTokenEvidence) == sizeof(std::uint64_t));
    return std::bit_cast<std::uint64_t>(*this) != 0;  // a listed token has a class
  }
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

}}}  // namespace reprise::detail
