// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "passes.hpp"
#include "replay/trace.hpp"

namespace reprise::llama {

struct FlipSettings {
  std::vector<std::size_t> widths = {2, 3, 4, 5, 8, 16, 32};  ///< rows of a pass
  bool repeat = true;                 ///< every width a second time, which has to give the very same logits
  std::size_t positions = unlimited;  ///< stops after the turn with which so many have been compared
};

/// What passes of `rows` rows answered, held against passes of one row.
struct WidthFlips {
  std::size_t rows = 1;
  std::size_t positions = 0;
  std::size_t flips = 0;          ///< where the likeliest token was another
  std::size_t unlike_before = 0;  ///< where a second run of this width gave other logits than the first
  std::vector<float> margins;     ///< of the flips, ascending: by how much passes of one row preferred their token
  float largest_difference = 0;   ///< of any logit, over the `compared` positions
  std::size_t compared = 0;
};

/// A rate and its 95% interval (Wilson 1927), for 10,000 positions.
struct Rate {
  double rate = 0;
  double low = 0;
  double high = 0;
};
Rate per_10000(std::size_t hits, std::size_t trials);

/// How often the likeliest token depends on how many rows a pass has. Teacher-forced: every pass runs on the tokens of
/// the recording, so one flip does not bring about others. For each turn the outputs are run one row at a time, then
/// in passes of each width, each time behind the same cache; within the turn a width finds what it put there itself,
/// as in decoding. A last pass that would be narrower is filled with rows that nobody looks at, so that all have the
/// same shape. Entry 0 is the width 1, run twice. Throws InputError: tokens the model does not have, sessions that do
/// not fit into the context, no output at all, widths it cannot run at once.
/// Memory: the logits of one turn's positions, up to 256 MiB; of what lies beyond, only the likeliest tokens and the
/// repetitions are compared.
std::vector<WidthFlips> measure_flips(Passes& passes, std::span<const replay::TraceSession> sessions,
                                      const FlipSettings& settings, tools::Progress& progress);

void write_flips_table(std::ostream& out, std::span<const WidthFlips> widths);
/// {"positions", "widths": [{"rows", "flips", "per_10000": {"rate", "low", "high"}, ...}]}, with what is known of the
/// engine. Throws nothing of its own.
void write_flips_json(std::ostream& out, std::span<const WidthFlips> widths, const std::string& model,
                      const std::string& library, std::int32_t threads);

}  // namespace reprise::llama
