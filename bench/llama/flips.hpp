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
  bool repeat = true;                                         ///< run every width twice; the logits must be identical
  std::size_t positions = unlimited;  ///< stop after the turn that completes this number of positions
};

/// The answers of passes of `rows` rows, compared with passes of one row.
struct WidthFlips {
  std::size_t rows = 1;
  std::size_t positions = 0;
  std::size_t flips = 0;          ///< positions with another likeliest token
  std::size_t unlike_before = 0;  ///< positions where a second run of this width gave other logits
  std::vector<float> margins;     ///< of the flips, ascending: lead of the one-row token over the runner-up
  float largest_difference = 0;   ///< of any logit, over the `compared` positions
  std::size_t compared = 0;
};

/// A rate per 10,000 positions and its 95% interval (Wilson 1927).
struct Rate {
  double rate = 0;
  double low = 0;
  double high = 0;
};
Rate per_10000(std::size_t hits, std::size_t trials);

/// Counts how often the likeliest token depends on the number of rows of a pass. Every pass is teacher-forced: it runs
/// on the recorded tokens, so one flip does not cause others. For each turn the outputs are run one row at a time, then
/// in passes of each width, each time from the same cache. Within a turn, a width continues on its own cached rows, as
/// in decoding. A last pass that would be narrower is filled with rows whose logits are ignored, so that all passes
/// have the same shape. Entry 0 is width 1, run twice.
///
/// Throws InputError for tokens outside the vocabulary, sessions longer than the context, a trace without output, and
/// widths that the engine cannot run. Memory: the logits of one turn's positions, up to 256 MiB.
/// For positions beyond that, the likeliest tokens and the repetitions are still compared.
std::vector<WidthFlips> measure_flips(Passes& passes, std::span<const replay::TraceSession> sessions,
                                      const FlipSettings& settings, tools::Progress& progress);

void write_flips_table(std::ostream& out, std::span<const WidthFlips> widths);
/// Writes {"positions", "widths": [{"rows", "flips", "per_10000": {"rate", "low", "high"}, ...}]} and facts about the
/// engine. Throws nothing of its own.
void write_flips_json(std::ostream& out, std::span<const WidthFlips> widths, const std::string& model,
                      const std::string& library, std::int32_t threads);

}  // namespace reprise::llama
