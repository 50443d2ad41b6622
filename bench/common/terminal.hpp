// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::tools {

enum class Stream : std::uint8_t { output, error };

/// True if the stream is a terminal.
bool is_terminal(Stream stream);

/// The width of the terminal in columns; `otherwise` if the stream is not a terminal or the width is unknown.
std::size_t terminal_columns(Stream stream, std::size_t otherwise);

/// True if the environment's locale uses UTF-8.
bool locale_is_utf8();

}  // namespace reprise::tools
