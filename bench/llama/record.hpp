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

/// The totals of a recording.
struct RecordCounts {
  std::size_t sessions = 0;  ///< sessions appended
  std::size_t skipped = 0;   ///< sessions that the file had already
  std::size_t turns = 0;
  std::size_t tokens = 0;                 ///< of output
  std::array<std::size_t, 3> finishes{};  ///< turns by Finish
  std::size_t cut = 0;                    ///< generated tokens of loops that were not recorded
  std::vector<std::string> shortened;     ///< sessions with fewer turns than requested, one sentence each
};

/// Runs a request: run_request() without drafting, or the script of a test.
using RunRequest = std::function<RequestRun(const Request&, const Watch&)>;

/// Runs every request whose id `trace` does not have, and appends its tokens. A turn ends with an end token, at its
/// max_tokens, or when it loops. The repeated part of a loop is removed from the context, and the next turn continues
/// as if a person had stopped the model there. A session ends early before a turn whose chat template rewrites earlier
/// turns, because a trace only grows. It also ends before a turn that does not fit into the context. Throws
/// EngineError; sessions appended before it stay.
RecordCounts record(std::span<const Request> requests, TraceWriter& trace, const RunRequest& run,
                    tools::Progress& progress, const LoopRule& rule = {});

/// Runs --record: the same with an engine, always taking the likeliest token. If `top_k` is not 0, turns also have the
/// `top_k` likeliest tokens at the row of each output token. Throws InputError if `settings` ask for sampling.
RecordCounts record(Engine& engine, std::span<const Request> requests, const Settings& settings, TraceWriter& trace,
                    tools::Progress& progress, std::size_t top_k = 0);

/// Writes the totals on one line, then one line for each shortened session.
void write_counts(std::ostream& out, const RecordCounts& counts);

}  // namespace reprise::llama
