// SPDX-License-Identifier: Apache-2.0
// Measures the value of supplying the old version of a rewritten text as the predicted output. It runs on recorded
// edits, with and without the old version in the context.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/any_strategy.hpp"
#include "common/bundled_files.hpp"
#include "common/input_error.hpp"
#include "common/number.hpp"
#include "replay/cost_curve.hpp"
#include "replay/replay.hpp"
#include "replay/trace.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace {

using namespace reprise;
using replay::TraceSession;
using tools::InputError;

constexpr std::string_view help =
    R"(usage: reprise-bench-predicted [--max-nodes N] [TRACE ...]

Replays the first turn of each session, with its prompt as the predicted output.
Each turn is replayed twice: with the prompt as the context, and with only the
prompt's last token as the context. Default: the bundled code-edit.jsonl.

  ngram       NgramDrafter, which sees only the context
  prediction  NgramDrafter::predict()

MAT: tokens per pass, with whole drafts sent. Speed: against plain decoding, if
each drafted token adds 2% to a pass and CostControl cuts the drafts.

  --max-nodes N  drafted tokens in a pass, at most; 0..32, default 32
  --help         this text

Exit: 0 done; 1 a replay differs from the recording, or it failed; 2 an argument
or a trace cannot be used.
)";

struct Options {
  std::size_t max_nodes = usual_draft_nodes;
  bool help = false;
  std::vector<std::string> traces;
};

Options read_options(std::span<const std::string> arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
    } else if (argument == "--max-nodes") {
      const auto number = tools::parse_integer(i + 1 < arguments.size() ? arguments[++i] : "");
      if (!number || *number < 0 || *number > static_cast<std::int64_t>(most_draft_nodes))
        throw InputError("--max-nodes needs a whole number from 0 to 64");
      options.max_nodes = static_cast<std::size_t>(*number);
    } else if (argument.empty() || argument[0] == '-') {
      throw InputError("there is no option " + argument + "; see --help");
    } else {
      options.traces.push_back(argument);
    }
  }
  return options;
}

/// The first turns with a prompt and more than one output token.
std::vector<TraceSession> read_edits(const Options& options, const std::string& argv0) {
  std::vector<std::string> paths = options.traces;
  if (paths.empty()) {
    paths = tools::find_traces(tools::bundled_folders(tools::program_path(argv0), "traces"));
    std::erase_if(paths, [](const std::string& path) { return !path.ends_with("code-edit.jsonl"); });
  }
  std::vector<TraceSession> edits;
  for (const std::string& path : paths) {
    for (TraceSession& session : replay::read_trace(path).sessions) {
      if (session.turns.empty() || session.turns[0].prompt.empty() || session.turns[0].output.size() < 2) continue;
      session.turns.resize(1);
      edits.push_back(std::move(session));
    }
  }
  if (edits.empty()) throw InputError("no session has a first turn with a prompt and more than one token of output");
  return edits;
}

enum class Source { none, ngram, prediction };

AnyStrategy make(Source source, TokenSpan old_version) {
  if (source == Source::none) return NoDrafter();
  NgramDrafter<> drafter;
  if (source == Source::ngram) return drafter;
  if (const auto added = drafter.predict(old_version); !added) throw InputError(std::string(added.error().message));
  return drafter;
}

replay::Counts replay_edits(std::span<const TraceSession> edits, Source source, bool in_context,
                            const replay::ReplaySetup& setup) {
  replay::Counts sum;
  for (const TraceSession& edit : edits) {
    const AnyStrategy strategy = make(source, edit.turns[0].prompt);
    TraceSession replayed = edit;
    if (!in_context) replayed.turns[0].prompt = {edit.turns[0].prompt.back()};
    sum += replay::replay_session(replayed, strategy, setup);
  }
  return sum;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

/// Prints all rows. Returns false if an output differs from the recording.
bool compare(const Options& options, std::span<const TraceSession> edits) {
  const replay::CostCurve curve = replay::CostCurve::parse("linear:0.02");
  replay::ReplaySetup all;
  all.curves = std::span(&curve, 1);
  all.calibrated = true;
  all.settings.max_nodes = options.max_nodes;
  replay::ReplaySetup paid = all;
  paid.control = {replay::ControlKind::cost, 0};

  bool sound = true;
  for (const bool in_context : {true, false}) {
    std::printf("\nold version %s\n", in_context ? "in the context too" : "only supplied");
    std::printf("| %-10s | %6s | %6s | %6s | %7s | %8s | %5s |\n", "strategy", "tokens", "passes", "MAT", "drafted",
                "accepted", "speed");
    for (const auto& [name, source] : {std::pair{"none", Source::none}, std::pair{"ngram", Source::ngram},
                                       std::pair{"prediction", Source::prediction}}) {
      const replay::Counts counts = replay_edits(edits, source, in_context, all);
      const replay::Counts weighed = replay_edits(edits, source, in_context, paid);
      for (const replay::Counts* one : {&counts, &weighed}) {
        if (one->lossless()) continue;
        std::fprintf(stderr, "reprise-bench-predicted: NOT LOSSLESS: %s: %s\n", name, one->fault.c_str());
        sound = false;
      }
      const auto real = [](std::uint64_t count) { return static_cast<double>(count); };
      const double mat = ratio(real(counts.tokens), real(counts.passes));
      const double speed = ratio(real(weighed.tokens), weighed.charges.at(0).cost);
      const auto whole = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
      std::printf("| %-10s | %6llu | %6llu | %6.2f | %7.1f | %7.1f%% | %5.2f |\n", name, whole(counts.tokens),
                  whole(counts.passes), mat, ratio(real(counts.drafted), real(counts.passes)),
                  100 * ratio(real(counts.accepted), real(counts.drafted)), speed);
    }
  }
  return sound;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    const Options options = read_options(arguments);
    if (options.help) {
      std::fputs(std::string(help).c_str(), stdout);
      return 0;
    }
    return compare(options, read_edits(options, argc > 0 ? argv[0] : "")) ? 0 : 1;
  } catch (const InputError& error) {
    std::fprintf(stderr, "reprise-bench-predicted: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reprise-bench-predicted: %s\n", error.what());
    return 1;
  }
}
