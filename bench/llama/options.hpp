// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine.hpp"
#include "inputs.hpp"
#include "sampling.hpp"

namespace reprise::llama {

enum class Format : std::uint8_t { table, json };

/// The command line.
struct Options {
  EngineOptions engine;
  Inputs inputs;
  Sampling sampling;
  std::vector<std::string> strategies;  ///< none: the default
  std::string cost = "learned";         ///< or linear:S, or CURVE.json
  std::size_t leaves = 1;               ///< more: drafts may be trees
  bool compare = false;
  std::size_t repeat = 1;
  double epsilon = 0.05;                                  ///< logits
  std::string cost_model;                                 ///< a curve that a prediction is made under; empty: none
  std::string record;                                     ///< a file that the tokens are appended to; empty: none
  std::string profile;                                    ///< a file that measured costs are written to; empty: none
  std::vector<std::size_t> contexts = {128, 1024, 4096};  ///< that it measures at
  std::vector<std::size_t> sequences = {1, 2, 4};         ///< of a pass that it measures
  bool flips = false;
  Format format = Format::table;
  std::string output;  ///< a file; empty: standard output
  bool statistics = false;
  bool quiet = false;
  bool help = false;
  bool version = false;
};

/// Reads the arguments, those after the program's name. `--key value` and `--key=value` are the same. Throws
/// tools::InputError.
Options parse_options(std::span<const std::string> arguments);

/// What --help prints.
std::string help_text();

}  // namespace reprise::llama
