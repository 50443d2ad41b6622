// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "answer.hpp"
#include "batch_compare.hpp"
#include "batch_report.hpp"
#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/interrupt.hpp"
#include "common/progress.hpp"
#include "common/text.hpp"
#include "compare.hpp"
#include "compare_report.hpp"
#include "engine.hpp"
#include "flips.hpp"
#include "generate.hpp"
#include "inputs.hpp"
#include "memory_file.hpp"
#include "options.hpp"
#include "passes.hpp"
#include "profile.hpp"
#include "record.hpp"
#include "replay/strategies.hpp"
#include "replay/trace.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// The destination of results: the file of --output, or standard output.
class Output {
 public:
  Output(const std::string& path, std::ostream& standard) : path_(path), standard_(standard) {
    if (!path.empty()) tools::check_writable(path, "--output " + path);
  }
  /// The first call empties the file, so call it after all checks of the input.
  [[nodiscard]] std::ostream& stream() {
    if (path_.empty()) return standard_;
    if (!file_.is_open()) file_.open(path_, std::ios::binary | std::ios::trunc);
    return file_;
  }
  /// Throws EngineError if some output could not be written.
  void finish() {
    stream().flush();
    if (!stream()) throw EngineError((path_.empty() ? "standard output" : path_) + ": could not be written");
  }

 private:
  const std::string& path_;
  std::ostream& standard_;
  std::ofstream file_;
};

class Tool {
 public:
  Tool(std::span<const std::string> arguments, const Surroundings& surroundings)
      : options_(parse_options(arguments)),
        arguments_(arguments),
        around_(surroundings),
        progress_(surroundings.show_progress ? &surroundings.error : nullptr, surroundings.progress_columns),
        output_(options_.output, surroundings.out) {}

  int run() {
    if (options_.help != tools::Help::none) return print(help_text(options_.help == tools::Help::all));
    if (options_.version) return print("reprise-llama " + std::string(version_string) + "\n");
    if (!options_.profile.empty()) return profile();
    if (options_.flips) return flips();
    // All checks come before the first generated token.
    auto specs = options_.strategies;
    if (specs.empty()) specs.emplace_back(replay::default_strategy);
    if (options_.cost != "learned") told_ = curve("--cost", options_.cost);
    const replay::CostCurve* const told = told_ ? &*told_ : nullptr;
    draftings_ = make_draftings(specs, told, options_.kept);
    std::optional<PredictionSettings> prediction;
    if (!options_.cost_model.empty())
      prediction = PredictionSettings{curve("--cost-model", options_.cost_model), told_, options_.leaves > 1};
    const std::vector<BatchRule> rules =
        options_.batched ? batch_rules(rule_names(), told_.has_value()) : std::vector<BatchRule>();
    check_memory_files(draftings_, options_.snapshot_in, options_.snapshot_out);
    std::vector<Request> requests = read_requests(options_.inputs);
    if (!options_.grammar.empty()) {
      options_.sampling.grammar = read_text("--grammar", options_.grammar);
      for (Request& request : requests) request.turns.resize(1);  // the grammar describes one answer
    }
    engine_ = Engine::load(options_.engine);
    check_requests(requests, options_.inputs, engine_);
    if (!readable_grammar(options_.sampling, engine_.vocab()))
      throw tools::InputError("--grammar " + options_.grammar +
                              ": llama.cpp cannot read it; give GBNF with a rule named root (--verbose shows why)");
    std::vector<Request> others = take_part(requests, options_.part);
    if (options_.warm) filling_ = std::move(others);
    if (options_.again != 0) repeat_some(requests, options_.again);
    if (!options_.snapshot_in.empty()) load_memory(draftings_, options_.snapshot_in, fingerprint());
    settings_ = {options_.sampling, options_.leaves, options_.inputs.raw, told, options_.picks, options_.prompt_rows};
    if (!options_.record.empty()) return record_all(requests);
    if (options_.batched) return batch_all(requests, rules);
    const int status = options_.compare ? compare_all(requests, std::move(prediction)) : generate_all(requests);
    if (!options_.snapshot_out.empty()) save_memory(draftings_.front(), options_.snapshot_out, fingerprint());
    return status;
  }

 private:
  int print(const std::string& text) {
    output_.stream() << text;
    output_.finish();
    return exit_done;
  }
  [[nodiscard]] replay::CostCurve curve(const std::string& option, const std::string& spec) const {
    // Bundled curves are named without a path, so parse_options() cannot make this check.
    const std::vector<tools::InputFile> inputs = {{"the curve", replay::find_curve(spec, around_.profile_folders)}};
    tools::check_not_an_input(options_.output, "--output " + options_.output, inputs);
    return replay::CostCurve::parse(spec, around_.profile_folders, option);
  }

  [[nodiscard]] std::uint64_t fingerprint() const {
    return options_.fingerprint ? *options_.fingerprint : fingerprint_of(engine_);
  }

  int generate_all(const std::vector<Request>& requests) {
    for (const Request& request : requests) {
      const RequestRun run = stream(request, requests.size() > 1);
      output_.finish();
      if (requests.size() > 1) around_.error << tools::printable(request.id) << ": ";
      write_summary(around_.error, run);
    }
    return exit_done;
  }

  /// Prints an answer while it is generated.
  RequestRun stream(const Request& request, bool named) {
    std::ostream& out = output_.stream();
    if (named) out << "=== " << tools::printable(request.id) << "\n";
    CharacterStream characters;
    Watch watch;
    watch.on_tokens = [&](TokenSpan tokens) {
      out << characters.add(engine_.text(tokens)) << std::flush;
      return true;
    };
    watch.on_turn = [&](const TurnRun& turn) {
      out << characters.rest() << "\n" << std::flush;
      return turn.output.size();
    };
    return run_request(engine_, request, draftings_[0], settings_, watch);
  }

  int compare_all(const std::vector<Request>& requests, std::optional<PredictionSettings> prediction) {
    fill_memories(engine_, filling_, draftings_, settings_, progress_);
    const auto results = compare(engine_, requests, draftings_,
                                 {settings_, options_.repeat, options_.epsilon, std::move(prediction)}, progress_);
    const CompareReport report{results,         engine_,          settings_,     options_.cost,  options_.cost_model,
                               options_.repeat, options_.epsilon, options_.kept, filling_.size()};
    if (options_.json)
      write_json(output_.stream(), report);
    else
      write_table(output_.stream(), report);
    output_.finish();
    return status(report.verdict());
  }
  static int status(Verdict verdict) {
    return verdict == Verdict::identical ? exit_done : verdict == Verdict::near_tie ? exit_near_tie : exit_wrong;
  }

  /// The rules of batched runs.
  [[nodiscard]] std::vector<std::string> rule_names() const {
    if (!options_.rules.empty()) return options_.rules;
    const bool planned = draftings_.front().calibrated();
    std::vector<std::string> names = {"plain"};
    if (planned && told_) names.emplace_back("told");
    if (planned) names.emplace_back("learned");
    for (const char* fixed : {"1", "2", "4", "8"}) names.emplace_back(fixed);
    return names;
  }
  int batch_all(const std::vector<Request>& requests, const std::vector<BatchRule>& rules) {
    const Drafting& drafting = draftings_.front();
    for (const BatchRule& rule : rules)
      if (rule.plans() && !drafting.calibrated())
        throw InputError("--rules " + rule.name() + ": weighs probabilities, and " + drafting.spec +
                         " does not learn any; leave it out, or give --strategy ngram");
    const tools::InterruptFlag interrupt;
    const BatchCompareSettings settings{
        options_.sequences,        rules,
        told_ ? &*told_ : nullptr, {1, options_.chunk, settings_, &tools::InterruptFlag::raised},
        options_.repeat,           options_.epsilon};
    const BatchComparison comparison = compare_batches(engine_, requests, drafting, settings, progress_);
    const BatchReport report{comparison, requests, engine_, settings, drafting.spec, options_.cost};
    options_.json ? write_json(output_.stream(), report) : write_table(output_.stream(), report);
    output_.finish();
    return comparison.partial ? exit_interrupted : status(comparison.verdict());
  }

  int record_all(const std::vector<Request>& requests) {
    std::set<std::string> ids;
    for (const Request& request : requests)
      if (!ids.insert(request.id).second)
        throw InputError(request.where + ": id: another session also has the id " + request.id +
                         "; give them different ids");
    TraceWriter trace = TraceWriter::open(options_.record, &around_.error, engine_.vocabulary());
    const RecordCounts counts = record(engine_, requests, settings_, trace, progress_, options_.record_top_k);
    write_counts(output_.stream(), counts);
    output_.finish();
    return exit_done;
  }

  int profile() {
    engine_ = Engine::load(options_.engine);
    ProfileSettings settings;
    settings.contexts = options_.contexts;
    settings.sequences = options_.sequences;
    settings.drafted = ProfileSettings::up_to(options_.most_drafted);
    settings.keep_times = options_.pass_times != 0;
    if (settings.keep_times) settings.repetitions = options_.pass_times;
    const ProfileFacts facts{hardware_text(),         engine_.description(), library(),
                             options_.engine.threads, date_text(),           command()};
    LlamaPasses passes(engine_.context());
    std::ostringstream table;
    run_profile(passes, settings, facts, options_.profile, table, progress_);
    output_.stream() << table.str();
    output_.finish();
    return exit_done;
  }

  int flips() {
    std::vector<replay::TraceSession> sessions;
    for (const std::string& path : options_.inputs.traces)
      for (replay::TraceSession& session : replay::read_trace(path, options_.inputs.limit).sessions)
        sessions.push_back(std::move(session));
    engine_ = Engine::load(options_.engine);
    LlamaPasses passes(engine_.context());
    const std::vector<WidthFlips> widths = measure_flips(passes, sessions, {}, progress_);
    if (options_.json)
      write_flips_json(output_.stream(), widths, engine_.description(), library(), options_.engine.threads);
    else
      write_flips_table(output_.stream(), widths);
    output_.finish();
    return exit_done;
  }

  static std::string library() { return "llama.cpp " + std::string(llama_version()); }
  /// The command line, with the model's file name instead of its path.
  [[nodiscard]] std::string command() const {
    std::string text = "reprise-llama";
    const std::string& model = options_.engine.model;
    for (const std::string& argument : arguments_)
      text += " " + (argument == model || argument == "--model=" + model
                         ? argument.substr(0, argument.size() - model.size()) +
                               std::filesystem::path(model).filename().string()
                         : argument);
    return text;
  }

  Options options_;
  std::span<const std::string> arguments_;
  const Surroundings& around_;
  tools::Progress progress_;
  Output output_;
  std::optional<replay::CostCurve> told_;  // empty: learned from pass times
  std::vector<Drafting> draftings_;
  Engine engine_;
  Settings settings_;
  std::vector<Request> filling_;  // sessions that fill the memories before the measured ones
};

}  // namespace

int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings) {
  try {
    return Tool(arguments, surroundings).run();
  } catch (const InputError& error) {
    surroundings.error << "reprise-llama: " << tools::printable(error.what()) << "\n";
    return exit_bad_input;
  } catch (const std::exception& error) {
    surroundings.error << "reprise-llama: " << tools::printable(error.what()) << "\n";
    return exit_failed;
  }
}

}  // namespace reprise::llama
