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
#include "control_spec.hpp"
#include "replay_settings.hpp"
#include "reprise/core/token.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// The values of the command line.
struct Options {
  std::vector<std::string> strategies;  ///< empty: the default
  std::vector<std::string> costs;       ///< empty: default_costs, unless there are pass times
  std::vector<std::string> pass_times;  ///< recordings; their curves follow those of `costs`
  std::vector<std::string> traces;      ///< empty: the bundled ones
  std::vector<ControlSpec> controls;    ///< empty: automatic
  ReplaySettings settings = two_functions();
  bool memory_bytes_given = false;  ///< --memory-bytes was given
  bool threads_given = false;       ///< --threads was given
  bool top_k_given = false;         ///< --top-k was given
  std::size_t seeds = 0;            ///< --seeds: seeds to replay and to compare with told; 0: not asked for
  bool stream = false;              ///< replay all traces as one
  std::size_t shuffle = 0;          ///< --shuffle: the seed; 0: the order of the file
  std::vector<double> head_costs;   ///< --head-cost: of a draft of a head; empty: no replays beside a head
  bool by_category = false;
  bool ceiling = false;
  bool json = false;                         ///< results for programs instead of a table
  std::string output;                        ///< a file; empty: standard output
  std::string report;                        ///< a file for the page; empty: none
  std::vector<std::string> report_sessions;  ///< ids of sessions to show on the page
  std::string vocabulary;                    ///< a file with the texts of tokens; empty: none
  std::string snapshot_in;                   ///< a file with the initial memory; empty: none
  std::string snapshot_out;                  ///< a file to save the memory to; empty: none
  std::vector<std::string> corpora;          ///< files that drafters read in addition
  std::optional<std::uint64_t> fingerprint;  ///< of the tokenizer of snapshots and corpora
  std::size_t limit = unlimited;             ///< sessions of each trace, before `part` applies
  TracePart part = TracePart::all;
  std::size_t threads = 1;
  bool advise = false;  ///< replay with other settings, and say which of them pay
  bool list = false;
  tools::Help help = tools::Help::none;
  bool version = false;
};

inline constexpr std::string_view default_costs[] = {"linear:0",    "linear:0.005", "linear:0.02",
                                                     "linear:0.05", "linear:0.1",   "linear:0.3"};

/// The strategies that a page compares with the default one, unless --strategy names some: those of other systems.
inline constexpr std::string_view default_rivals[] = {"adaptive", "hf", "vllm", "ngram-simple"};

/// Reads the arguments after the program's name. `--key value` and `--key=value` are equivalent; after `--` every
/// argument is a trace. Throws InputError.
Options parse_options(std::span<const std::string> arguments);

/// The text of --help, or of --help all.
std::string help_text(bool all);

}  // namespace reprise::replay
