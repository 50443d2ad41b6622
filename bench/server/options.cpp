// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "replay/input_error.hpp"
#include "replay/number.hpp"

namespace reprise::server {
namespace {

using replay::InputError;

std::size_t number(const std::string& option, std::string_view text, std::size_t least, std::size_t most) {
  const auto value = replay::parse_integer(text);
  if (!value || *value < static_cast<std::int64_t>(least) || *value > static_cast<std::int64_t>(most))
    throw InputError(option + " " + std::string(text) + ": expected a number from " + std::to_string(least) + " to " +
                     std::to_string(most));
  return static_cast<std::size_t>(*value);
}

/// Numbers with commas between them.
std::vector<std::size_t> list(const std::string& option, std::string_view text, std::size_t least, std::size_t most) {
  std::vector<std::size_t> values;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    values.push_back(number(option, text.substr(from, to - from), least, most));
    from = to + 1;
  }
  return values;
}

/// One of two words: is it the second?
bool choice(const std::string& option, const std::string& text, std::string_view first, std::string_view second) {
  if (text == first || text == second) return text == second;
  throw InputError(option + " " + text + ": there are " + std::string(first) + " and " + std::string(second));
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  using Take = std::function<void(const std::string& option, const std::string& value)>;
  const std::map<std::string, Take> with_value = {
      {"--curve", [&](const auto&, const auto& value) { options.curve = value; }},
      {"--curve-known",
       [&](const auto& name, const auto& value) { options.learned = choice(name, value, "told", "learned"); }},
      {"--sequences", [&](const auto& name, const auto& value) { options.sequences = list(name, value, 1, 4096); }},
      {"--fixed", [&](const auto& name, const auto& value) { options.fixed = list(name, value, 1, 64); }},
      {"--max-nodes", [&](const auto& name, const auto& value) { options.max_nodes = number(name, value, 1, 64); }},
      {"--max-rows", [&](const auto& name, const auto& value) { options.max_rows = number(name, value, 1, 1 << 20); }},
      {"--shape", [&](const auto& name, const auto& value) { options.trees = choice(name, value, "chain", "tree"); }},
      {"--rounds", [&](const auto& name, const auto& value) { options.rounds = number(name, value, 1, 1000); }},
      {"--seed", [&](const auto& name, const auto& value) { options.seed = number(name, value, 0, 1'000'000); }},
      {"--threads", [&](const auto& name, const auto& value) { options.threads = number(name, value, 1, 1024); }},
      {"--format", [&](const auto& name, const auto& value) { options.csv = choice(name, value, "table", "csv"); }},
      {"--output", [&](const auto&, const auto& value) { options.output = value; }},
  };
  std::vector<std::string> seen;
  bool only_traces = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_traces || argument.size() < 2 || argument[0] != '-') {
      if (argument.empty()) throw InputError("a trace is an empty text; give the path of a file");
      options.traces.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (name == "--") {
      only_traces = true;
    } else if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--version") {
      options.version = true;
    } else if (const auto option = with_value.find(name); option != with_value.end()) {
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) throw InputError(name + " was given twice");
      seen.push_back(name);
      std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
      if (equals == std::string::npos && i + 1 < arguments.size()) value = arguments[++i];
      if (value.empty()) throw InputError(name + " needs a value; see --help");
      option->second(name, value);
    } else {
      throw InputError("there is no option " + argument + "; see --help for those there are");
    }
  }
  for (const std::size_t nodes : options.fixed)
    if (nodes > options.max_nodes)
      throw InputError("--fixed " + std::to_string(nodes) + ": more than --max-nodes " +
                       std::to_string(options.max_nodes) + " allows");
  return options;
}

std::string_view help_text() {
  return R"(Serves recorded sessions, many at a time, as a server with continuous batching would, and counts what drafting gains:
the batch planner against no drafting and against fixed numbers of drafted tokens.

usage: reprise-server [OPTION]... [TRACE]...

  TRACE               a file of recorded sessions, one JSON object a line (see reprise-replay --help); the sessions of
                      all files together are served, shuffled. default: the bundled ones

  --sequences LIST    how many are in every pass (default 1,2,4,8,16,32,64,128,256)
  --fixed LIST        drafted tokens of each sequence in the passes that the planner is held against (default 4,10)
  --curve CURVE       what a pass takes by all its rows: FILE.json (the points of one sequence; knee-64.json is the
                      default and bundled), or linear:S, 1 + S x (rows - 1)
  --curve-known HOW   told (default): the planner is given the curve; learned: only the times of the passes
  --max-rows N        token budget of a pass of the planner (default: none)
  --max-nodes N       most tokens drafted for one sequence (default 32)
  --shape SHAPE       tree (default) or chain, for all alike
  --rounds N          at least N sessions for each place in the batch, taken from the traces again and again (default 2)
  --seed N            of the shuffling (default 1)
  --threads N         simulations run at the same time (default 1). Only planning times depend on it
  --format FORMAT     table (default) or csv
  --output FILE       write there instead of to standard output
  --help, --version

When a session ends the next takes its place, so every pass is full; counting ends with the pass after which no session
is left to begin. Prompts and the first token of each turn are free, and nobody knows how long a turn will be. All
methods use the same drafter and verify the most probable nodes of its drafts. Throughput: tokens in the time of a pass
of one row; drafting time is not charged. Planning: mean time in the planner for each pass, measured.

exit status: 0; 1 when an output differed from its recording or the results could not be written; 2 when an argument,
trace or curve cannot be used.
)";
}

}  // namespace reprise::server
