// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// \file The built-in tables of NextTokenEvidence: log-odds in LogOddsScale, fitted to recorded outputs
/// (docs/decisions/0005).
namespace reprise::inline v0::detail {

inline constexpr std::size_t next_token_orders = 2;
inline constexpr std::size_t next_token_shares = 12;
inline constexpr std::size_t next_token_classes = 2 + 4 * next_token_shares;
inline constexpr std::size_t next_token_groups = 6;

inline constexpr std::array<std::array<std::array<std::int16_t, next_token_classes>, next_token_groups>,
                            next_token_orders>
    next_token_values{};
/// The share of the other log-odds that is added. Columns: counted after two tokens, and listed.
inline constexpr std::array<std::array<std::int16_t, 4>, next_token_groups> next_token_slopes{};

}  // namespace reprise::v0::detail
