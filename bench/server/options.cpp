// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <string_view>

#include "common/input_error.hpp"
#include "common/options.hpp"

namespace reprise::server {
namespace {

using tools::InputError;
using tools::real;
using tools::text;
using tools::whole;
using tools::whole_numbers;
using tools::word;

constexpr std::string_view purpose =
    R"(Serves recorded sessions, many at a time, like a server with continuous batching, and measures the
gain of drafting: the batch planner compared with no drafting and with fixed numbers of drafted
tokens.

usage: reprise-server [OPTION]... [TRACE]...

)";

constexpr std::string_view notes = R"(  --help, --version

At least two sessions for each place in the batch are served. When one ends, the next takes its
place; counting ends with the pass after which no session is left to begin. Prompts and the first
token of each turn are free, and the length of a turn is not known before. All methods use the same
drafter and verify the likeliest nodes of its drafts. Throughput: tokens in the time of a pass of
one row; drafting time is not charged. Planning: mean measured time in the planner per pass.

exit status: 0 done; 1 an output differed from its recording or results could not be written;
2 an argument, trace or curve cannot be used.
)";

constexpr std::string_view a_number = "a number";

tools::OptionTable table_of(Options& o) {
  tools::OptionTable table;
  table.help_column = 22;
  table.operand = tools::paths(o.traces, "TRACE");
  table.rows = {
      {"", "", purpose},
      {"TRACE",
       "",
       "a file of recorded sessions, one JSON object a line\n"
       "(docs/formats.md); the sessions of all files together are served, shuffled. default: the\n"
       "bundled ones",
       {}},
      {"", "", "\n"},
      {"--sequences", "LIST", "numbers of sequences in every pass (default 1,2,4,8,16,32,64,128,256)",
       whole_numbers(o.sequences, 4096)},
      {"--fixed", "LIST",
       "drafted tokens per sequence of the fixed methods, for comparison\n"
       "(default 4,10)",
       whole_numbers(o.fixed, 64)},
      {"--curve", "CURVE",
       "time of a pass by its sequences and all its rows: FILE.json (points of the\n"
       "next smaller measured number of sequences; knee-64.json is the default and\n"
       "bundled), or linear:S, 1 + S x (rows - 1)",
       text(o.curve)},
      {"--curve-known", "HOW", "told (default): the planner receives the curve; learned: only pass times",
       word<bool>(o.learned, {{"told", false}, {"learned", true}})},
      {"--noise", "X", "noise of those times: standard deviation over mean, 0 to 0.5 (default 0)",
       real(o.noise, 0, 0.5, "from 0 to 0.5, as in 0.1")},
      {"--seed", "N", "seed of the noise, and of the order of the sessions (default 1)",
       whole(o.seed, 1, 1'000'000, a_number)},
      {"--max-nodes", "N", "most tokens drafted for one sequence (default 32)", whole(o.max_nodes, 1, 64, a_number)},
      {"--shape", "SHAPE", "tree (default) or chain, for all methods",
       word<bool>(o.trees, {{"chain", false}, {"tree", true}})},
      {"--threads", "N", "simulations run in parallel (default 1). Only planning times depend on it",
       whole(o.threads, 1, 1024, a_number)},
      {"--output", "FILE", "write there instead of to standard output", text(o.output)},
      {"", "", notes}};
  table.add(tools::help_and_version(o.help, o.version));
  return table;
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  tools::parse(table_of(options), arguments);
  if (options.noise > 0 && !options.learned)
    throw InputError("--noise needs --curve-known learned: otherwise no pass times are simulated");
  for (const std::size_t nodes : options.fixed)
    if (nodes > options.max_nodes)
      throw InputError("--fixed " + std::to_string(nodes) + ": more than --max-nodes " +
                       std::to_string(options.max_nodes) + " allows");
  return options;
}

std::string help_text() {
  Options options;
  return table_of(options).help();
}

}  // namespace reprise::server
