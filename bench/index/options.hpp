// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reprise::indexing {

enum class Command : std::uint8_t { none, build, merge, info, verify, query };

/// The values of the command line.
struct Options {
  Command command = Command::none;
  std::vector<std::string> inputs;
  std::string output;  ///< the corpus that is written
  std::size_t vocabulary = 0;
  std::optional<std::uint64_t> fingerprint;
  std::string tokenizer;  ///< the command for text files; empty: none
  std::string exclude;    ///< the file with the documents to leave out; empty: none
  std::size_t memory = std::size_t{2} << 30;
  std::size_t threads = 0;  ///< 0: one for each core
  std::string tokens;       ///< the context of a query
  std::size_t depth = 32;   ///< tokens of the context that a query uses at most
  std::size_t limit = 20;   ///< next tokens that a query prints at most
  bool names = false;       ///< info: list the documents
  bool progress = false;
  bool json = false;
  bool help = false;
  bool version = false;
};

/// Reads the arguments after the program's name; the first is the command. Throws InputError.
Options parse_options(std::span<const std::string> arguments);

/// The text of --help of a command, or of the program.
std::string help_text(Command command);

/// The token ids of --tokens: decimal numbers between blanks or commas, at least one. Throws InputError.
std::vector<std::uint32_t> parse_tokens(const std::string& text);

}  // namespace reprise::indexing
