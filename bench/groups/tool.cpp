// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "common/options.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "groups.hpp"
#include "reprise/core/limits.hpp"

namespace reprise::groups {
namespace {

using tools::InputError;

constexpr std::string_view purpose =
    R"(Decodes recorded groups of answers, such as rollouts, and measures what answers to the same prompt
gain from each other.

usage: reprise-groups [OPTION]... TRACE...

)";

constexpr std::string_view notes = R"(  --help, --version

Orders: single, one answer after the other; batch, those of a group in one batch, until all have
ended; stream, as many in a batch as a group has, and an answer that has ended makes room for the
next one. The speedups are those over decoding without drafts, in the time until all answers have
ended: none, with drafts from the own context alone; ended, also from answers that have ended;
running, also from answers to the same prompt that run in the same batch (the default of
BatchFollower with a Memory). gain: running over none. lengths: like running, but only answers with
at least half of the most remaining tokens draft; the simulation knows how many remain. The prompt
and the first token of an answer are free; drafting time is not charged.

exit status: 0 done; 1 the results could not be written; 2 an argument, trace or curve cannot be
used.
)";

struct Options {
  std::vector<std::string> traces;
  std::string curve = "linear:0.02";
  std::size_t answers = 8;
  std::size_t threads = 1;
  bool help = false;
  bool version = false;
};

tools::OptionTable table_of(Options& o) {
  tools::OptionTable table;
  table.help_column = 22;
  table.operand = tools::paths(o.traces, "TRACE");
  table.rows = {
      {"", "", purpose},
      {"TRACE",
       "",
       "a file of recorded sessions of one turn (docs/formats.md), such as\n"
       "those of bench/groups/record.py; consecutive sessions with the same prompt are\n"
       "a group",
       {}},
      {"", "", "\n"},
      {"--answers", "N",
       "answers in a group (default 8); more answers to a prompt are further groups,\n"
       "which share nothing with the first one",
       tools::whole(o.answers, 1, 256, "a number")},
      {"--curve", "CURVE",
       "time of a pass by its sequences and all its rows: linear:S, 1 + S x (rows - 1)\n"
       "(default linear:0.02), or FILE.json, as for reprise-server",
       tools::text(o.curve)},
      {"--threads", "N", "simulations run in parallel (default 1)", tools::whole(o.threads, 1, 1024, "a number")},
      {"", "", notes}};
  table.add(tools::help_and_version(o.help, o.version));
  return table;
}

constexpr std::pair<Order, const char*> orders[] = {
    {Order::single, "single"}, {Order::batch, "batch"}, {Order::stream, "stream"}};
struct Method {
  Sharing sharing;
  double least_remaining;
};
constexpr Method methods[] = {
    {Sharing::plain, 0}, {Sharing::none, 0}, {Sharing::ended, 0}, {Sharing::running, 0}, {Sharing::running, 0.5}};

/// The groups of one category, or of all. Each category is decoded alone.
struct Kind {
  std::string name;
  std::vector<Group> groups;
};
std::vector<Kind> kinds_of(const std::vector<Group>& groups) {
  std::vector<Kind> kinds = {{"all", groups}};
  for (const Group& group : groups) {
    const std::string& name = group.front()->category;
    auto kind = std::find_if(kinds.begin() + 1, kinds.end(), [&](const Kind& known) { return known.name == name; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {name, {}});
    kind->groups.push_back(group);
  }
  return kinds;
}

void measure(const Options& options, const Surroundings& surroundings) {
  if (options.traces.empty()) throw InputError("no TRACE was given; give a file of recorded groups");
  const auto curve = replay::CostCurve::parse(options.curve, surroundings.profile_folders, "--curve");
  std::vector<replay::Trace> traces;
  for (const std::string& path : options.traces) traces.push_back(replay::read_trace(path, unlimited, "--curve"));
  const std::vector<Group> groups = groups_of(traces, options.answers);
  if (groups.empty()) throw InputError("no session of these traces has one turn with output to decode");

  const std::vector<Kind> kinds = kinds_of(groups);
  constexpr std::size_t columns = std::size(methods);
  std::vector<Counts> counts(std::size(orders) * kinds.size() * columns);
  tools::in_parallel(counts.size(), options.threads, [&](std::size_t i) {
    const Method& method = methods[i % columns];
    counts[i] = run(kinds[i / columns % kinds.size()].groups, {.answers = options.answers,
                                                               .order = orders[i / columns / kinds.size()].first,
                                                               .sharing = method.sharing,
                                                               .curve = &curve,
                                                               .least_remaining = method.least_remaining});
  });
  surroundings.out << "groups of " << options.answers << " answers; speedup over decoding without drafts; "
                   << tools::printable(curve.spec()) << "\n\n";
  const tools::Table table(surroundings.out,
                           {{8, tools::Align::left}, {14, tools::Align::left}, {8}, {8}, {8}, {8}, {8}, {8}, {9}});
  table.line({"order", "category", "groups", "tokens", "none", "ended", "running", "gain", "lengths"});
  for (std::size_t row = 0; row < counts.size() / columns; ++row) {
    const Kind& kind = kinds[row % kinds.size()];
    const Counts* of = &counts[row * columns];
    const auto over = [](const Counts& slow, const Counts& fast) { return tools::decimal(slow.cost / fast.cost, 3); };
    table.line({orders[row / kinds.size()].second, kind.name, std::to_string(kind.groups.size()),
                std::to_string(of->tokens), over(of[0], of[1]), over(of[0], of[2]), over(of[0], of[3]),
                over(of[1], of[3]), over(of[0], of[4])});
  }
}

}  // namespace

int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings) {
  try {
    Options options;
    const tools::OptionTable table = table_of(options);
    tools::parse(table, arguments);
    if (options.help)
      surroundings.out << table.help();
    else if (options.version)
      surroundings.out << "reprise-groups " << version_string << "\n";
    else
      measure(options, surroundings);
    surroundings.out.flush();
    if (surroundings.out) return exit_done;
    surroundings.error << "reprise-groups: standard output could not be written\n";
    return exit_failed;
  } catch (const InputError& error) {
    surroundings.error << "reprise-groups: " << tools::printable(error.what()) << "\n";
    return exit_bad_input;
  } catch (const std::exception& error) {
    surroundings.error << "reprise-groups: " << tools::printable(error.what()) << "\n";
    return exit_failed;
  }
}

}  // namespace reprise::groups
