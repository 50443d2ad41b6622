// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace reprise::inline v0 {

/// A vocabulary id. Any 32-bit value is legal, negative ones included: the library compares tokens and never uses one
/// as an array index.
using Token = std::int32_t;

/// Tokens that the span does not own. The function that returns it documents how long it is valid.
using TokenSpan = std::span<const Token>;

/// The origin of committed tokens.
enum class Origin : std::uint8_t {
  prompt,  ///< given by the caller: system prompt, user turn, tool result
  output,  ///< picked by the target
};

/// "No limit", for every limit in the library. It is a named value, so that no number has a second meaning.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

}  // namespace reprise
