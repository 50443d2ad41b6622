// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::tools {

enum class Stream : std::uint8_t { output, error };

/// Is a person looking at it?
bool is_terminal(Stream stream);

/// Columns of that terminal; `otherwise` when it is none or does not say.
std::size_t terminal_columns(Stream stream, std::size_t otherwise);

/// The user's locale says that text is UTF-8.
bool locale_is_utf8();

}  // namespace reprise::tools
