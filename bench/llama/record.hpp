// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "common/progress.hpp"
#include "generate.hpp"
#include "loops.hpp"
#include "trace_writer.hpp"

namespace reprise::llama {

/// What a recording came to.
struct RecordCounts {
  std::size_t sessions = 0;  ///< appended
  std::size_t skipped = 0;   ///< that the file had already
  std::size_t turns = 0;
  std::size_t tokens = 0;                 ///< of output
  std::array<std::size_t, 3> finishes{};  ///< turns by Finish
  std::size_t cut = 0;                    ///< tokens of loops that were generated and not recorded
  std::vector<std::string> shortened;     ///< sessions with fewer turns than were asked for, a sentence each
};

/// Runs a request: run_request() without drafting, or a test's script.
using RunRequest = std::function<RequestRun(const Request&, const Watch&)>;

/// Runs every request that `trace` does not have, and appends its tokens. A turn ends with a token that ends it, at
/// its max_tokens, or when it loops: what repeats is taken out of the context then, and the next turn follows what is
/// left, as if somebody had stopped the model there. A session ends early before a turn whose chat template rewrites
/// earlier turns (a trace only grows), and before one that does not fit into the context. Throws EngineError; what was
/// appended until then stays.
RecordCounts record(std::span<const Request> requests, TraceWriter& trace, const RunRequest& run,
                    tools::Progress& progress, const LoopRule& rule = {});

/// --record: the same of an engine, always with the likeliest token. Throws InputError when `settings` ask for others.
RecordCounts record(Engine& engine, std::span<const Request> requests, const Settings& settings, TraceWriter& trace,
                    tools::Progress& progress);

/// What was recorded, in a line, and one for each session that was shortened.
void write_counts(std::ostream& out, const RecordCounts& counts);

}  // namespace reprise::llama
