// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_log.hpp"
#include "reprise/core/detail/fixed_point.hpp"

/// \file The weight of an earlier occurrence when several occurrences predict different tokens.
///
/// Every occurrence votes for the token that followed it. The weight of the vote is a product of table values. These
/// values depend on the length of the agreement with the context, the agreement before the last mismatch and the
/// distance. The weight of "something else" (a token without a weight of its own) is one.
///
/// The tables were fitted to recorded outputs by maximum likelihood (docs/decisions/0005). Longer agreement has more
/// weight, as in prediction by partial matching (Cleary and Witten 1984). Agreement before a mismatch also counts, as
/// in the recovering match models of PAQ compressors (Mahoney 2005).
namespace reprise { inline namespace v0 { namespace detail {

/// The weight of a vote, in UnitScale; one is the weight of "something else".
using VoteWeight = std::uint32_t;

inline constexpr VoteWeight weight_one = static_cast<VoteWeight>(UnitScale::one);

inline constexpr std::array<std::uint8_t, 34> length_classes = {
    0, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 7, 7, 8, 8, 8, 8, 9, 9, 9, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 10, 11};

/// Returns the class of `length`, the number of tokens of unbroken agreement.
constexpr std::size_t length_class(std::size_t length) noexcept {
  return length_classes[std::min<std::size_t>(length, 33)];
}

/// Weights by length_class(), for one number of agreeing tokens before the last mismatch.
using LengthWeights = std::array<VoteWeight, 12>;

/// Rows: the number of agreeing tokens before the last mismatch (0, 1, 2, 3 or 4, 5 to 8, more). Columns:
/// length_class().
inline constexpr std::array<LengthWeights, 6> weights_by_length = {{
    {{162, 9647, 31019, 71780, 125411, 150746, 277161, 392525, 593834, 1224882, 3221491, 6519804}},
    {{268, 11264, 40797, 67870, 117284, 135044, 270859, 522487, 567136, 830975, 985944, 6519804}},
    {{442, 16323, 44594, 61473, 99246, 177434, 240471, 619306, 397263, 563744, 604015, 6519804}},
    {{728, 20037, 65405, 94974, 127689, 121705, 373381, 270859, 813706, 844377, 1033390, 6519804}},
    {{1517, 35573, 122315, 188030, 198860, 196095, 339882, 331822, 359100, 1063797, 856282, 6519804}},
    {{2185, 78304, 169288, 297853, 613144, 582075, 364891, 421407, 1140931, 1165144, 1045865, 6519804}},
}};

/// Returns the row for `earlier` agreeing tokens among the compared tokens before the last mismatch.
constexpr const LengthWeights& length_weights(int earlier) noexcept {
  return weights_by_length[static_cast<std::size_t>(earlier <= 2 ? earlier : earlier <= 4 ? 3 : earlier <= 8 ? 4 : 5)];
}

/// Factors by floor(log2(distance)), in FactorScale.
inline constexpr std::array<std::uint32_t, 16> weights_by_distance = {1877, 2164, 4126, 6606, 7353, 6673, 5841, 5681,
                                                                      7086, 6316, 5171, 3955, 2533, 4268, 3234, 3234};

/// Returns the factor that does not depend on the length of the match, in FactorScale. `distance`: number of tokens
/// from the end of the occurrence to the end of the context.
constexpr std::uint32_t base_weight(std::size_t distance) noexcept {
  const std::size_t magnitude = static_cast<std::size_t>(std::bit_width(distance | 1)) - 1;
  return weights_by_distance[std::min<std::size_t>(magnitude, 15)];
}

/// The base_weight() of an occurrence in a datastore, where distance has no meaning.
inline constexpr std::uint32_t history_base_weight = 2000;

/// Weights by log2((total + 20) / count), in steps of a quarter.
inline constexpr std::array<VoteWeight, 64> weights_by_rarity = {
    108051, 92448, 79098, 67676, 57903, 49541, 42387, 36266, 31029, 26549, 22715, 19435, 16628, 14227, 12173, 10415,
    8911,   7624,  6523,  5581,  4775,  4086,  3496,  2991,  2559,  2189,  1873,  1603,  1371,  1173,  1004,  859,
    735,    629,   538,   460,   394,   337,   288,   247,   211,   181,   154,   132,   113,   97,    83,    71,
    61,     52,    44,    38,    32,    28,    24,    20,    17,    15,    13,    11,    9,     8,     7,     6};

/// Returns the weight of a token that no followed occurrence predicts and that occurred `count` times among `total`
/// tokens.
constexpr VoteWeight frequency_weight(std::uint64_t count, std::uint64_t total) noexcept {
  using Quarters = Fixed<2>;
  const std::int32_t rarity = rounded<LogOddsScale, Quarters>(log2_q8(total + 20) - log2_q8(count));
  return weights_by_rarity[static_cast<std::size_t>(std::clamp(rarity, 0, 63))];
}

}}}  // namespace reprise::detail
