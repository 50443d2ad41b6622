// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "files.hpp"
#include "input_error.hpp"
#include "number.hpp"

namespace reprise::replay {
namespace {

constexpr std::string_view names[] = {
    "--strategy", "--control", "--cost",         "--cost-known",  "--noise",        "--seed",        "--max-nodes",
    "--shape",    "--memory",  "--memory-bytes", "--snapshot-in", "--snapshot-out", "--fingerprint", "--part",
    "--limit",    "--threads", "--by-category",  "--ceiling",     "--reasons",      "--reliability", "--format",
    "--output",   "--list",    "--help",         "--version"};
constexpr std::size_t most_memory_bytes = std::size_t{1} << 40;
constexpr std::size_t most_threads = 1024;
constexpr std::size_t most_seed = 1'000'000;

/// Walks over the arguments, splitting `--key=value`.
class Reader {
 public:
  Reader(std::span<const std::string> arguments, Options& options) : arguments_(arguments), options_(options) {}

  void read() {
    bool only_traces = false;
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      if (only_traces || argument.size() < 2 || argument[0] != '-') {
        if (argument.empty()) throw InputError("a trace is an empty text; give the path of a file");
        options_.traces.push_back(argument);
      } else if (argument == "--") {
        only_traces = true;
      } else {
        option(argument);
      }
    }
    agree();
  }

 private:
  void option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    name_ = argument.substr(0, equals);
    if (equals != std::string::npos) given_ = argument.substr(equals + 1);
    if (name_ == "-h") name_ = "--help";
    if (std::find(std::begin(names), std::end(names), name_) == std::end(names))
      throw InputError("there is no option " + name_ + "; see --help for those there are");
    if (name_ == "--strategy") {
      options_.strategies.push_back(value("SPEC"));
    } else if (name_ == "--cost") {
      options_.costs.push_back(value("CURVE"));
    } else if (name_ == "--control") {
      for (const ControlSpec& spec : parse_control(value("auto, cost, all, hindsight or best:K")))
        options_.controls.push_back(spec);
    } else {
      once();
      single();
    }
    if (given_) throw InputError(name_ + " takes no value, but got '" + *given_ + "'");
  }

  void single() {
    if (name_ == "--cost-known") {
      options_.settings.cost_known = cost_known(value("told, learned or carried"));
    } else if (name_ == "--noise") {
      options_.settings.noise = noise(value("X"));
    } else if (name_ == "--seed") {
      options_.settings.seed = count(value("N"), "seed", most_seed);
    } else if (name_ == "--max-nodes") {
      options_.settings.max_nodes = count(value("N"), "drafted tokens", most_drafted_nodes);
    } else if (name_ == "--shape") {
      options_.settings.trees = trees(value("tree or chain"));
    } else if (name_ == "--part") {
      options_.part = part(value("all, a or b"));
    } else if (name_ == "--reasons") {
      options_.reasons = true;
    } else if (name_ == "--reliability") {
      options_.reliability = true;
    } else if (name_ == "--memory") {
      options_.settings.kept = kept(value("session or past"));
    } else if (name_ == "--memory-bytes") {
      options_.settings.memory_bytes = count(value("N"), "bytes", most_memory_bytes);
      options_.memory_bytes_given = true;
    } else if (name_ == "--snapshot-in") {
      options_.snapshot_in = value("FILE");
    } else if (name_ == "--snapshot-out") {
      options_.snapshot_out = value("FILE");
    } else if (name_ == "--fingerprint") {
      options_.fingerprint = fingerprint(value("N"));
    } else if (name_ == "--by-category") {
      options_.by_category = true;
    } else if (name_ == "--ceiling") {
      options_.ceiling = true;
    } else if (name_ == "--format") {
      options_.format = format(value("table, json or csv"));
    } else if (name_ == "--output") {
      options_.output = value("FILE");
    } else if (name_ == "--limit") {
      options_.limit = count(value("N"), "sessions of each trace", std::size_t{1} << 53);
    } else if (name_ == "--threads") {
      options_.threads = count(value("N"), "threads", most_threads);
    } else if (name_ == "--list") {
      options_.list = true;
    } else if (name_ == "--help") {
      options_.help = true;
    } else {
      options_.version = true;
    }
  }

  /// Options that have no effect together are a mistake, not a wish.
  void agree() const {
    const auto given = [&](std::string_view name) {
      return std::find(seen_.begin(), seen_.end(), name) != seen_.end();
    };
    if (options_.settings.cost_known == CostKnown::told)
      for (const char* name : {"--noise", "--seed"})
        if (given(name))
          throw InputError(std::string(name) + " is of pass times, which only --cost-known learned and carried use");
    if (options_.settings.kept != Kept::past)
      for (const char* name : {"--memory-bytes", "--snapshot-in", "--snapshot-out"})
        if (given(name)) throw InputError(std::string(name) + " is of memories, which only --memory past has");
    if (given("--fingerprint") && options_.snapshot_in.empty() && options_.snapshot_out.empty())
      throw InputError("--fingerprint is of snapshots: give --snapshot-in or --snapshot-out too");
    if (!options_.output.empty())
      for (const auto& [name, path] :
           {std::pair("--snapshot-in", &options_.snapshot_in), std::pair("--snapshot-out", &options_.snapshot_out)})
        if (!path->empty() && same_file(*path, options_.output))
          throw InputError(std::string(name) + " and --output are the same file; give two");
    if (options_.format != Format::table)
      for (const char* name : {"--reasons", "--reliability"})
        if (given(name)) throw InputError(std::string(name) + " is for the table; --format json always has it");
  }

  void once() {
    if (std::find(seen_.begin(), seen_.end(), name_) != seen_.end())
      throw InputError(name_ + " is given twice; once is enough");
    seen_.push_back(name_);
  }

  std::string value(std::string_view what) {
    std::optional<std::string> value;
    value.swap(given_);
    if (!value && at_ < arguments_.size()) value = arguments_[at_++];
    if (!value || value->empty()) throw InputError(name_ + " needs a value: " + name_ + " " + std::string(what));
    return *value;
  }

  std::size_t count(const std::string& text, const std::string& what, std::size_t most) const {
    const auto number = parse_integer(text);
    if (!number || *number < 1 || static_cast<std::uint64_t>(*number) > most)
      throw InputError(name_ + " " + text + ": expected a number of " + what + ", from 1 to " + std::to_string(most));
    return static_cast<std::size_t>(*number);
  }

  static CostKnown cost_known(const std::string& text) {
    for (const CostKnown known : {CostKnown::told, CostKnown::learned, CostKnown::carried})
      if (name(known) == text) return known;
    throw InputError("--cost-known " + text + ": there are told, learned and carried");
  }
  static bool trees(const std::string& text) {
    for (const bool trees : {true, false})
      if (shape_name(trees) == text) return trees;
    throw InputError("--shape " + text + ": there are tree and chain");
  }
  static TracePart part(const std::string& text) {
    for (const TracePart part : {TracePart::all, TracePart::a, TracePart::b})
      if (name(part) == text) return part;
    throw InputError("--part " + text + ": there are all, a and b");
  }
  static double noise(const std::string& text) {
    const auto number = parse_real(text);
    if (!number || *number < 0 || *number > 0.5)
      throw InputError("--noise " + text + ": expected a number from 0 to 0.5, as in 0.1");
    return *number;
  }

  static Format format(const std::string& text) {
    if (text == "table") return Format::table;
    if (text == "json") return Format::json;
    if (text == "csv") return Format::csv;
    throw InputError("--format " + text + ": there are table, json and csv");
  }

  static Kept kept(const std::string& text) {
    for (const Kept kept : {Kept::session, Kept::past})
      if (name(kept) == text) return kept;
    throw InputError("--memory " + text + ": there are session and past");
  }
  static std::uint64_t fingerprint(const std::string& text) {
    const auto number = parse_unsigned(text);
    if (!number) throw InputError("--fingerprint " + text + ": expected a whole number from 0 to 2^64 - 1");
    return *number;
  }

  std::span<const std::string> arguments_;
  Options& options_;
  std::size_t at_ = 0;
  std::string name_;
  std::optional<std::string> given_;
  std::vector<std::string> seen_;
};

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  Reader(arguments, options).read();
  return options;
}

std::string_view help_text() {
  return R"(Replays recorded token traces with draft strategies and counts what they would have saved.

usage: reprise-replay [OPTION]... [TRACE]...

  TRACE                 a file of recorded sessions, one JSON object a line:
                        {"id", "category", "turns": [{"prompt": [ids], "output": [ids]}]}
                        default: the bundled ones, recorded from SmolLM2-135M-Instruct

  --strategy SPEC       name[:key=value,...], as in ngram:index=rolling_hash,max_ngram=16 or vllm:min=2,max=5,k=5;
                        a value may be a range, k=0..15: one run each. May be given several times.
                        default: ngram, what the library recommends
  --control CONTROL     how much of each draft is sent. May be given several times.
                          cost      what pays under the curve, so there is one replay for each curve
                          all       all of it
                          best:K    its K best tokens, always; or a range, best:0..32: one run each
                          hindsight as far into the draft as the recording agrees: more than any control can know
                          auto      (default) cost for strategies that learn their probabilities (see --list),
                                    all for the others
  --cost CURVE          time of a pass by its shape, relative to a pass without a draft: linear:S (1 + S x drafted),
                        or FILE.json (measured times; step-8.json and moe.json are bundled). May be given several
                        times. default: linear:0 linear:0.005 linear:0.02 linear:0.05 linear:0.1 linear:0.3
  --cost-known HOW      how control knows the curve:
                          told      (default) it is given it
                          learned   from the times of the passes alone, anew in each session. The times are
                                    simulated, 10 ms for a plain pass, and noisy
                          carried   likewise, but what was learned is kept from session to session, as one engine
                                    would; these sessions are replayed one after the other
  --noise X             of those times, standard deviation over mean, 0 to 0.5 (default 0.1). One in a hundred takes
                        ten times as long, whatever X is
  --seed N              of the noise (default 1)
  --max-nodes N         most tokens drafted in a pass, 1 to 32 (default 32)
  --shape SHAPE         tree (default): drafts as they are; chain: the best chain of each
  --memory MEMORY       what is kept from session to session:
                          session   (default) nothing
                          past      sessions leave their prompts, outputs and what was learned from them to the next
                                    ones, in the order of the file, for strategies that have a memory (see --list;
                                    the others are replayed as with session, and their results say so). A memory is
                                    that of one trace, strategy, control and curve, and begins empty. Its sessions are
                                    replayed one after the other
  --memory-bytes N      ceiling of such a memory (default 67108864, which are 64 MiB); a token takes 17
  --snapshot-in FILE    memories begin with what this file holds, which may be twice --memory-bytes and 1 MiB long
  --snapshot-out FILE   afterwards the memory is saved there, and what was learned: of one trace, strategy, control and
                        curve (reprise/memory/memory_snapshot.hpp, docs/formats.md); not when the exit status is 1
  --fingerprint N       of the tokenizer of these files, any number that you choose: a file of another is refused
                        (default 0)
  --part PART           all (default), or one half of the sessions, a or b, by a hash of the id (64-bit FNV-1a, even or
                        odd): what was chosen on one half can be judged on the other
  --limit N             the first N sessions of each trace; of these, the part
  --by-category         also one result for each category of a trace
  --ceiling             also what no drafter can beat that copies from its session: one that knows, for each pass,
                        where from and how far
  --reasons             the table also says why drafts were not sent whole
  --reliability         the table also draws what was claimed of drafted tokens against what came true
  --format FORMAT       table (default), json or csv
  --output FILE         write there instead of to standard output
  --threads N           sessions replayed at the same time (default 1); where they go one after the other, whole runs.
                        The counts do not depend on it; the times are cleanest with 1
  --list                the strategies with their keys, and the curves
  --help, --version

Results: tokens (all output tokens but the first of each turn), passes, drafted, accepted; MAT = tokens / passes;
acceptance rate = accepted / drafted; drafting time in ns per output token (begin, observe, propose and feedback; each
call includes 20 to 25 ns for reading the clock) and per propose; time in control likewise; the most memory held in a
session, and that of what is kept from session to session; speedup = tokens / summed cost of the passes, drafting time
not charged; worst loss = the most, in passes without a draft, that up to 1,000 passes in a row of a session cost beyond
the tokens they gave; calibration error = mean distance between the claimed and the observed probability of a drafted
token whose parent was right, in 20 bins.

exit status: 0; 1 when an output differed from its recording or the results could not be written; 2 when an argument,
trace, curve or snapshot cannot be used.
)";
}

}  // namespace reprise::replay
