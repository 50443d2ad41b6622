// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control_spec.hpp"
#include "replay_settings.hpp"
#include "reprise/core/token.hpp"
#include "trace.hpp"

namespace reprise::replay {

enum class Format : std::uint8_t { table, json, csv };

/// The command line.
struct Options {
  std::vector<std::string> strategies;  ///< none: the default
  std::vector<std::string> costs;       ///< none: default_costs
  std::vector<std::string> traces;      ///< none: the bundled ones
  std::vector<ControlSpec> controls;    ///< none: automatic
  ReplaySettings settings;
  bool memory_bytes_given = false;  ///< its memory_bytes are not the default
  bool by_category = false;
  bool ceiling = false;
  bool reasons = false;      ///< in the table: why drafts were not sent whole
  bool reliability = false;  ///< in the table: reliability diagrams
  Format format = Format::table;
  std::string output;             ///< a file; empty: standard output
  std::string snapshot_in;        ///< a file that memories begin with; empty: with nothing
  std::string snapshot_out;       ///< a file that the memory is saved to; empty: it is not
  std::uint64_t fingerprint = 0;  ///< of the tokenizer of these two
  std::size_t limit = unlimited;  ///< sessions of each trace, before the part is taken
  TracePart part = TracePart::all;
  std::size_t threads = 1;
  bool list = false;
  bool help = false;
  bool version = false;
};

inline constexpr std::string_view default_costs[] = {"linear:0",    "linear:0.005", "linear:0.02",
                                                     "linear:0.05", "linear:0.1",   "linear:0.3"};

/// Reads the arguments, those after the program's name. `--key value` and `--key=value` are the same; behind `--`
/// everything is a trace. Throws InputError.
Options parse_options(std::span<const std::string> arguments);

/// What --help prints.
std::string help_text();

}  // namespace reprise::replay
