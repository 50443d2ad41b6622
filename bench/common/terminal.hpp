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

/// From now on, an interrupt (Ctrl-C) ends the line of the terminal before it ends the program.
void end_line_at_interrupt();

/// The bytes of memory of this machine; 0 if the system does not tell.
std::uint64_t machine_memory();

}  // namespace reprise::tools
