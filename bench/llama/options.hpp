// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/options.hpp"
#include "engine.hpp"
#include "generate.hpp"
#include "inputs.hpp"
#include "replay/replay_settings.hpp"
#include "replay/trace.hpp"
#include "sampling.hpp"

namespace reprise::llama {

/// The values of the command line.
struct Options {
  EngineOptions engine;
  Inputs inputs;
  Sampling sampling;                    ///< without the grammar, which is in a file
  std::string grammar;                  ///< the file; empty: none
  std::vector<std::string> strategies;  ///< empty: the default
  std::string cost = "learned";         ///< or linear:S, or CURVE.json
  std::size_t leaves = 1;               ///< above 1: drafts may be trees
  replay::Kept kept = replay::Kept::session;
  std::string snapshot_in;                   ///< a file with the initial memory; empty: none
  std::string snapshot_out;                  ///< a file to save the memory to; empty: none
  std::optional<std::uint64_t> fingerprint;  ///< of these files; empty: computed from the vocabulary
  replay::TracePart part = replay::TracePart::all;
  bool warm = false;      ///< the sessions of the other part fill the memories first
  std::size_t again = 0;  ///< sessions that are run once more at the end
  bool compare = false;
  std::size_t repeat = 1;
  double epsilon = 0.05;  ///< in logits
  PickSource picks = PickSource::target;
  bool prompt_rows = false;
  std::string cost_model;                                 ///< the curve for predictions; empty: none
  std::string record;                                     ///< a trace file to append to; empty: none
  std::size_t record_top_k = 0;                           ///< likeliest tokens that --record stores; 0: none
  std::string profile;                                    ///< a file for measured costs; empty: none
  std::vector<std::size_t> contexts = {128, 1024, 4096};  ///< context sizes at which --profile measures
  /// Sequences per pass: those that --profile measures, or the most that run at once.
  std::vector<std::size_t> sequences = {1, 2, 4};
  bool batched = false;                 ///< --sequences without --profile
  std::vector<std::string> rules = {};  ///< of batched runs; empty: all that are possible
  std::size_t chunk = 64;               ///< most prompt tokens of a pass in which sequences decode
  std::size_t most_drafted = 32;        ///< most drafted tokens of each sequence that --profile measures
  std::size_t pass_times = 0;           ///< passes of each shape to record; 0: none
  bool flips = false;
  bool json = false;   ///< results for programs instead of a table
  std::string output;  ///< a file; empty: standard output
  tools::Help help = tools::Help::none;
  bool version = false;
};

/// Reads the arguments after the program's name. `--key value` and `--key=value` are equivalent. Throws
/// tools::InputError.
Options parse_options(std::span<const std::string> arguments);

/// The text of --help, or of --help all.
std::string help_text(bool all);

}  // namespace reprise::llama
