// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <string_view>

#include "common/input_error.hpp"
#include "common/options.hpp"

namespace reprise::server {
namespace {

using tools::flag;
using tools::InputError;
using tools::text;
using tools::whole;
using tools::word;

constexpr std::string_view purpose =
    R"(Serves recorded sessions, many at a time, as a server with continuous batching would, and counts what drafting gains:
the batch planner against no drafting and against fixed numbers of drafted tokens.

usage: reprise-server [OPTION]... [TRACE]...

)";

constexpr std::string_view notes = R"(  --help, --version

When a session ends the next takes its place, so every pass is full; counting ends with the pass after which no session
is left to begin. Prompts and the first token of each turn are free, and nobody knows how long a turn will be. All
methods use the same drafter and verify the most probable nodes of its drafts. Throughput: tokens in the time of a pass
of one row; drafting time is not charged. Planning: mean time in the planner for each pass, measured.

exit status: 0; 1 when an output differed from its recording or the results could not be written; 2 when an argument,
trace or curve cannot be used.
)";

constexpr std::string_view a_number = "a number";

/// Numbers from 1 to `most` with commas between them.
tools::ReadValue numbers(std::vector<std::size_t>& into, std::size_t most) {
  return [&into, most](const std::string& name, const std::string& value) {
    into.clear();
    for (const std::string& piece : tools::split_at_commas(value))
      into.push_back(tools::read_whole(name, piece, 1, most, a_number, piece));
  };
}

tools::OptionTable table_of(Options& o) {
  tools::OptionTable table;
  table.help_column = 22;
  table.twice = "was given twice";
  table.shows_unknown_value = true;
  table.operand = [&o](const auto&, const std::string& path) {
    if (path.empty()) throw InputError("a TRACE is empty; give the path of a file");
    o.traces.push_back(path);
  };
  table.rows = {
      {"", "", purpose},
      {"TRACE",
       "",
       "a file of recorded sessions, one JSON object a line (see reprise-replay --help); the sessions of\n"
       "all files together are served, shuffled. default: the bundled ones",
       {}},
      {"", "", "\n"},
      {"--sequences", "LIST", "how many are in every pass (default 1,2,4,8,16,32,64,128,256)",
       numbers(o.sequences, 4096)},
      {"--fixed", "LIST",
       "drafted tokens of each sequence in the passes that the planner is held against (default 4,10)",
       numbers(o.fixed, 64)},
      {"--curve", "CURVE",
       "what a pass takes by all its rows: FILE.json (the points of one sequence; knee-64.json is the\n"
       "default and bundled), or linear:S, 1 + S x (rows - 1)",
       text(o.curve)},
      {"--curve-known", "HOW", "told (default): the planner is given the curve; learned: only the times of the passes",
       word<bool>(o.learned, {{"told", false}, {"learned", true}})},
      {"--max-rows", "N", "token budget of a pass of the planner (default: none)",
       whole(o.max_rows, 1, 1 << 20, a_number)},
      {"--max-nodes", "N", "most tokens drafted for one sequence (default 32)", whole(o.max_nodes, 1, 64, a_number)},
      {"--shape", "SHAPE", "tree (default) or chain, for all alike",
       word<bool>(o.trees, {{"chain", false}, {"tree", true}})},
      {"--rounds", "N",
       "at least N sessions for each place in the batch, taken from the traces again and again (default 2)",
       whole(o.rounds, 1, 1000, a_number)},
      {"--seed", "N", "of the shuffling (default 1)", whole(o.seed, 0, 1'000'000, a_number)},
      {"--threads", "N", "simulations run at the same time (default 1). Only planning times depend on it",
       whole(o.threads, 1, 1024, a_number)},
      {"--format", "FORMAT", "table (default) or csv", word<bool>(o.csv, {{"table", false}, {"csv", true}})},
      {"--output", "FILE", "write there instead of to standard output", text(o.output)},
      {"", "", notes},
      {.name = "--help", .read = flag(o.help), .repeats = true, .short_name = "-h"},
      {.name = "--version", .read = flag(o.version), .repeats = true}};
  return table;
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  tools::parse(table_of(options), arguments);
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
