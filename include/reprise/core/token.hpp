// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "reprise/core/detail/contract.hpp"

namespace reprise::inline v0 {

/// A vocabulary id. Any 32-bit value is legal, including negative ones: the library compares and hashes tokens. It
/// checks the range before it uses a token as an array index.
using Token = std::int32_t;

/// Returns true if `token` is one of 0 ... vocabulary - 1. Other ids are placeholders, such as those of images.
[[nodiscard]] constexpr bool in_vocabulary(Token token, std::uint32_t vocabulary) noexcept {
  return static_cast<std::uint32_t>(token) < vocabulary;
}

/// A read-only view of tokens. Unless documented otherwise, a returned view is valid until the object that returned it
/// changes or is destroyed.
using TokenSpan = std::span<const Token>;

/// The origin of committed tokens.
enum class Origin : std::uint8_t {
  prompt,  ///< given by the caller: system prompt, user turn, tool result
  output,  ///< picked by the target
};

/// "No limit", for limits of type std::size_t. It has a name so that no ordinary number has a second meaning.
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

}  // namespace reprise
