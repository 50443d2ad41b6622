// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <optional>

#include "input_error.hpp"
#include "number.hpp"

namespace reprise::replay {
namespace {

constexpr std::string_view names[] = {"--strategy", "--cost",    "--memory", "--by-category", "--format", "--output",
                                      "--limit",    "--threads", "--list",   "--help",        "--version"};
constexpr std::size_t most_threads = 1024;

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
    } else {
      once();
      single();
    }
    if (given_) throw InputError(name_ + " takes no value, but got '" + *given_ + "'");
  }

  void single() {
    if (name_ == "--memory") {
      memory(value("session or past"));
    } else if (name_ == "--by-category") {
      options_.by_category = true;
    } else if (name_ == "--format") {
      options_.format = format(value("table, json or csv"));
    } else if (name_ == "--output") {
      options_.output = value("FILE");
    } else if (name_ == "--limit") {
      options_.limit = count(value("N"), "sessions of each trace", static_cast<std::size_t>(1) << 53);
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

  static Format format(const std::string& text) {
    if (text == "table") return Format::table;
    if (text == "json") return Format::json;
    if (text == "csv") return Format::csv;
    throw InputError("--format " + text + ": there are table, json and csv");
  }

  static void memory(const std::string& text) {
    if (text == "past")
      throw InputError(
          "--memory past: no strategy keeps memory from session to session in this version, so there is nothing to "
          "replay with it; use --memory session");
    if (text != memory_kept) throw InputError("--memory " + text + ": there are session and past");
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
                        default: the bundled synthetic ones

  --strategy SPEC       name[:key=value,...], as in ngram:index=rolling_hash,max_ngram=16 or vllm:min=2,max=5,k=5;
                        a value may be a range, k=0..15: one run each. May be given several times.
                        default: ngram, what the library recommends
  --cost CURVE          time of a pass by its shape, relative to a pass without a draft: linear:S (1 + S x drafted),
                        or FILE.json (measured times). May be given several times.
                        default: linear:0 linear:0.005 linear:0.02 linear:0.05 linear:0.1 linear:0.3
  --memory session      what is kept from session to session: nothing. (past: no strategy can yet)
  --by-category         also one result for each category of a trace
  --format FORMAT       table (default), json or csv
  --output FILE         write there instead of to standard output
  --limit N             the first N sessions of each trace
  --threads N           sessions replayed at the same time (default 1). The counts do not depend on it; the times
                        are cleanest with 1
  --list                the strategies with their keys, and the curves
  --help, --version

Results: tokens (all output tokens but the first of each turn), passes, drafted, accepted; MAT = tokens / passes;
acceptance rate = accepted / drafted; drafting time in ns per output token (begin, observe, propose and feedback; each
call includes 20 to 25 ns for reading the clock) and per propose; the most memory held in a session; speedup =
tokens / summed cost of the passes, drafting time not charged.

exit status: 0; 1 when an output differed from its recording or the results could not be written; 2 when an argument,
trace or curve cannot be used.
)";
}

}  // namespace reprise::replay
