// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "advice.hpp"
#include "common/bundled_files.hpp"
#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/terminal.hpp"
#include "common/text.hpp"
#include "corpora.hpp"
#include "options.hpp"
#include "page.hpp"
#include "page_collect.hpp"
#include "past.hpp"
#include "report_json.hpp"
#include "report_seeds.hpp"
#include "reprise/core/token.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "seeds.hpp"
#include "strategies.hpp"
#include "vocabulary.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t key_column = 26;  // of --list

/// A line of --list: `name` from the column `indent`, and what follows from `column` on.
std::string list_line(std::size_t indent, std::string_view name, std::size_t column, const std::string& meaning) {
  std::string line = std::string(indent, ' ').append(name);
  if (line.size() < column || name.empty())
    line.resize(column, ' ');
  else
    line += "\n" + std::string(column, ' ');
  return line + tools::wrapped(meaning, column) + "\n";
}

template <class AnyReport>
void write(std::ostream& out, bool json, const AnyReport& report, const TableStyle& style) {
  json ? write_json(out, report) : write_table(out, report, style);
}

/// Writes the output of `print` to the file of the options or to standard output. Returns the exit status.
template <class Print>
int deliver(const Options& options, const Surroundings& surroundings, Print&& print) {
  if (options.output.empty()) {
    print(surroundings.out);
    surroundings.out.flush();
    if (surroundings.out) return exit_done;
    surroundings.error << "reprise-replay: standard output could not be written\n";
    return exit_failed;
  }
  // Complete results first: once the file is opened, only writing can fail.
  std::ostringstream text;
  print(text);
  std::ofstream file(options.output, std::ios::binary | std::ios::trunc);
  file << text.str();
  file.close();
  if (file) return exit_done;
  surroundings.error << "reprise-replay: " << tools::printable(options.output) << ": could not be written\n";
  return exit_failed;
}

std::string counted(std::size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Throws InputError for impossible memory options, before minutes are spent and before a file is written.
void check_memories(const Options& options, const Assignment& assignment) {
  if (options.settings.kept != Kept::past) return;
  if (const std::size_t count = replays(assignment); !options.snapshot_out.empty() && count != 1)
    throw tools::InputError(
        "--snapshot-out " + options.snapshot_out + ": a snapshot holds the memory of one replay, but there are " +
        std::to_string(count) + " (" + counted(assignment.traces.size(), "trace") + ", " +
        counted(assignment.runs.size(), "strategy run") + ", " + counted(assignment.curves.size(), "curve") +
        "); give one TRACE, one --strategy, one --control and one --cost");
  if (const std::uint64_t all = tools::machine_memory(); all != 0 && options.settings.memory_bytes > all)
    throw tools::InputError("--memory-bytes " + std::to_string(options.settings.memory_bytes) + ": this machine has " +
                            std::to_string(all) + " bytes of memory; give less");
  bool sequences = false;
  for (const StrategyRun& run : assignment.runs) {
    sequences = sequences || run.remembers == Remembers::sequences;
    if (run.remembers == Remembers::sequences) continue;
    for (const auto& [option, path] :
         {std::pair("--snapshot-in ", &options.snapshot_in), std::pair("--snapshot-out ", &options.snapshot_out)})
      if (!path->empty())
        throw tools::InputError(option + *path + ": " + run.spec +
                                " has no memory that can be saved; see --list for strategies that do");
  }
  if (options.memory_bytes_given && !sequences)
    throw tools::InputError("--memory-bytes " + std::to_string(options.settings.memory_bytes) +
                            ": none of the strategies given keeps a memory of sessions; see --list for those that do");
  // Only sizes that are certainly too small are refused here. The first replay with such a memory reports a lack of
  // memory or an unusable snapshot when it begins.
  if (Past past; sequences && options.settings.memory_bytes < mebibyte) give_room(past, options.settings.memory_bytes);
  if (!options.snapshot_out.empty())
    tools::check_replaceable(options.snapshot_out, "--snapshot-out " + options.snapshot_out);
}

/// The bytes of the snapshot that memories start with.
Bytes read_snapshot(const Options& options) {
  Bytes bytes;
  if (options.snapshot_in.empty()) return bytes;
  const std::string name = "--snapshot-in " + options.snapshot_in + ": ";
  // A token takes 18 bytes in a memory but less than 5 in a file. So a file of this size holds far more than such a
  // memory can.
  const std::size_t most = 2 * options.settings.memory_bytes + mebibyte;
  if (const auto read = load_file(options.snapshot_in, bytes, most); !read) {
    const Error& error = read.error();
    throw tools::InputError(name + tools::words(error) +
                            (error.code == ErrorCode::file_too_large
                                 ? " (" + std::to_string(error.value) + " bytes, for --memory-bytes " +
                                       std::to_string(options.settings.memory_bytes) + " at most " +
                                       std::to_string(error.limit) + ")"
                                 : std::string()));
  }
  if (bytes.size() == 0) throw tools::InputError(name + "the file is empty; give a saved snapshot");
  return bytes;
}

/// Writes the page about a replay. Returns the exit status.
int deliver_page(const Options& options, const Surroundings& surroundings, const Report& report, const PageData& page,
                 const Vocabulary& words) {
  std::ostringstream text;
  write_page(text, report, page, words);
  if (tools::replace_text(options.report, text.view())) return exit_done;
  surroundings.error << "reprise-replay: " << tools::printable(options.report) << ": could not be written\n";
  return exit_failed;
}

/// Saves the snapshot of the past that the replay left. Returns the exit status.
int deliver_snapshot(const Options& options, const std::vector<std::byte>& bytes, std::ostream& error) {
  const auto saved = save_file(options.snapshot_out, bytes);
  if (saved) return exit_done;
  error << "reprise-replay: " << tools::printable(options.snapshot_out) << ": " << tools::words(saved.error()) << "\n";
  return exit_failed;
}

std::vector<StrategyRun> runs_of(const Options& options, const Corpora& corpora) {
  std::vector<StrategyRun> runs;
  auto specs = options.strategies;
  if (specs.empty()) specs.emplace_back(default_strategy);
  // A page compares. A snapshot is of one strategy, so it leaves no room for others.
  if (options.strategies.empty() && !options.report.empty() && options.snapshot_in.empty() &&
      options.snapshot_out.empty())
    specs.insert(specs.end(), std::begin(default_rivals), std::end(default_rivals));
  for (const std::string& spec : specs)
    for (StrategyRun& run : make_runs(spec, corpora.stores())) runs.push_back(std::move(run));
  const auto reads = [](const StrategyRun& run) { return run.remembers == Remembers::sequences; };
  if (!options.corpora.empty() && std::none_of(runs.begin(), runs.end(), reads))
    throw tools::InputError("--corpus " + options.corpora.front() +
                            ": none of the strategies given reads a corpus; see --list for those that do");
  return runs;
}

/// The traces with the sessions that --limit and --part select.
std::vector<Trace> read_traces(const Options& options, const std::vector<std::string>& paths) {
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    Trace& trace = traces.emplace_back(read_trace(path, options.limit));
    if (options.part == TracePart::all) continue;
    std::erase_if(trace.sessions, [&](const TraceSession& session) { return part_of(session.id) != options.part; });
    if (trace.sessions.empty())
      throw tools::InputError("--part " + std::string(name(options.part)) + ": " + path +
                              ": no session belongs to that part");
  }
  return traces;
}

/// All sessions as one trace, in the order of the files.
std::vector<Trace> joined(std::vector<Trace> traces) {
  Trace stream = std::move(traces.front());
  for (std::size_t i = 1; i < traces.size(); ++i)
    std::move(traces[i].sessions.begin(), traces[i].sessions.end(), std::back_inserter(stream.sessions));
  if (traces.size() > 1) stream.path = "stream of " + std::to_string(traces.size()) + " traces";
  std::vector<Trace> one;
  one.push_back(std::move(stream));
  return one;
}

/// The file with the texts of tokens: that of --vocabulary, or the bundled one if all traces lie beside it.
std::string find_vocabulary(const Options& options, const std::vector<std::string>& traces,
                            const Surroundings& surroundings) {
  if (!options.vocabulary.empty()) return options.vocabulary;
  for (const std::filesystem::path& folder : surroundings.trace_folders) {
    const std::string file = (folder / "vocabulary.json").generic_string();
    const bool beside = std::all_of(traces.begin(), traces.end(), [&](const std::string& trace) {
      return tools::same_file((std::filesystem::path(trace).parent_path() / "vocabulary.json").string(), file);
    });
    std::error_code error;
    if (beside && std::filesystem::is_regular_file(file, error)) return file;
  }
  return {};
}

/// Puts the sessions of a trace into a random order.
void shuffle(Trace& trace, std::size_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TraceSession>& sessions = trace.sessions;
  for (std::size_t i = sessions.size(); i > 1; --i)
    std::swap(sessions[i - 1], sessions[static_cast<std::size_t>(random() % i)]);
}

/// The curves of the options: those of --cost first, then those of --pass-times.
std::vector<CostCurve> curves_of(const Options& options, const std::vector<std::string>& costs,
                                 const Surroundings& surroundings) {
  std::vector<CostCurve> curves;
  for (const std::string& cost : costs) curves.push_back(CostCurve::parse(cost, surroundings.profile_folders));
  for (const std::string& path : options.pass_times) curves.push_back(CostCurve::from_pass_times(path));
  return curves;
}

/// The prior that --cost-prior names: one of CostPrior's own, or the costs of a curve. Without a name, it is empty.
CostPrior prior_of(const std::string& spec, const Surroundings& surroundings) {
  if (spec.empty()) return {};
  if (spec == "gpu-batch-1") return CostPrior::gpu_batch_1();
  if (spec == "cpu-quantised") return CostPrior::cpu_quantised();
  return CostPrior::of(CostCurve::parse(spec, surroundings.profile_folders, "--cost-prior").for_control());
}

int replay_and_report_seeds(const Options& options, const Assignment& assignment, tools::Progress& progress,
                            const Surroundings& surroundings) {
  const std::vector<SeedRow> rows = replay_seeds(assignment, options.seeds, progress);
  const int delivered = deliver(options, surroundings, [&](std::ostream& out) {
    write(out, options.json,
          SeedReport{rows, assignment.curves, assignment.settings, options.part, has_top_k(assignment.traces)},
          surroundings.table);
  });
  return std::max(delivered, report_faults(rows, surroundings.error));
}

int replay_and_advise(const Options& options, const Assignment& assignment, std::span<const DatastoreRef> stores,
                      tools::Progress& progress, const Surroundings& surroundings) {
  const Advice advice = advise(assignment, stores, progress);
  const bool top_k = options.settings.top_k && has_top_k(assignment.traces);
  const AdviceReport report = {advice, assignment.curves.front(), assignment.settings, options.part, top_k};
  const int delivered = deliver(options, surroundings, [&](std::ostream& out) { write_table(out, report); });
  if (advice.fault.empty()) return delivered;
  surroundings.error << "reprise-replay: NOT LOSSLESS: " << tools::printable(advice.fault) << "\n";
  return exit_failed;
}

int replay(const Options& options, const Surroundings& surroundings) {
  const Corpora corpora(options.corpora, options.fingerprint);
  const std::vector<StrategyRun> runs = runs_of(options, corpora);
  auto controls = options.controls;
  if (controls.empty()) controls.emplace_back();

  auto costs = options.costs;
  if (costs.empty() && options.pass_times.empty()) costs.assign(std::begin(default_costs), std::end(default_costs));
  const std::vector<CostCurve> curves = curves_of(options, costs, surroundings);

  if (!options.output.empty()) tools::check_writable(options.output, "--output " + options.output);
  if (!options.report.empty()) tools::check_writable(options.report, "--report " + options.report);
  const Bytes snapshot = read_snapshot(options);
  const auto paths = options.traces.empty() ? tools::find_traces(surroundings.trace_folders) : options.traces;
  const std::string vocabulary = options.report.empty() ? "" : find_vocabulary(options, paths, surroundings);
  const Vocabulary words = vocabulary.empty() ? Vocabulary() : Vocabulary::read(vocabulary);
  std::vector<tools::InputFile> inputs;
  for (const std::string& path : paths) inputs.push_back({"the trace", path});
  for (const std::string& cost : costs) inputs.push_back({"the curve", find_curve(cost, surroundings.profile_folders)});
  for (const std::string& path : options.pass_times) inputs.push_back({"the pass times", path});
  for (const std::string& path : options.corpora) inputs.push_back({"the corpus", path});
  tools::check_not_an_input(options.output, "--output " + options.output, inputs);
  if (!vocabulary.empty()) inputs.push_back({"the vocabulary", vocabulary});
  if (!options.report.empty()) tools::check_not_an_input(options.report, "--report " + options.report, inputs);
  tools::check_not_an_input(options.snapshot_out, "--snapshot-out " + options.snapshot_out, inputs);
  std::vector<Trace> traces = read_traces(options, paths);
  if (options.top_k_given && options.settings.top_k && !has_top_k(traces))
    throw tools::InputError(
        "--top-k on: no turn of the traces has top_k; record one with reprise-llama --top-k, or "
        "leave the option out");
  for (const Trace& trace : traces)
    if (!has_output(trace))
      surroundings.error << "reprise-replay: " << tools::printable(trace.path)
                         << ": nothing to replay: no turn has two output tokens or more\n";
  corpora.check(traces);
  if (options.stream) traces = joined(std::move(traces));
  if (options.shuffle != 0)
    for (Trace& trace : traces) shuffle(trace, options.shuffle);

  std::vector<std::byte> left;
  Assignment assignment = {traces,          runs,           controls, curves, options.settings, options.by_category,
                           options.threads, options.ceiling};
  assignment.settings.prior = prior_of(options.settings.cost_prior, surroundings);
  assignment.snapshot_in = {
      {snapshot.data(), snapshot.size()}, options.fingerprint.value_or(0), "--snapshot-in " + options.snapshot_in};
  if (!options.snapshot_out.empty()) assignment.snapshot_out = &left;
  check_memories(options, assignment);
  tools::Progress progress(surroundings.show_progress ? &surroundings.error : nullptr, surroundings.progress_columns);
  if (options.advise) return replay_and_advise(options, assignment, corpora.stores(), progress, surroundings);
  if (options.seeds != 0) return replay_and_report_seeds(options, assignment, progress, surroundings);
  std::optional<PageCollector> page;
  if (!options.report.empty()) {
    // The times of these replays are not shown, so they need no quiet cores.
    const std::size_t cores = std::max<std::size_t>(1, std::thread::hardware_concurrency());
    page.emplace(assignment, options.report_sessions, options.threads_given ? options.threads : cores);
    assignment.observer = &*page;
  }
  const std::vector<Row> rows = replay_all(assignment, progress);
  std::vector<HeadRow> heads;
  if (!options.head_costs.empty()) heads = replay_heads(assignment, options.head_costs, progress);
  const Report report = {rows, curves, assignment.settings, options.part, has_top_k(traces), heads};
  const int delivered =
      deliver(options, surroundings, [&](std::ostream& out) { write(out, options.json, report, surroundings.table); });
  int status = std::max(delivered, report_faults(rows, surroundings.error));
  if (page) {
    const PageData data = page->finish(corpora.stores(), progress);
    status = std::max(status, deliver_page(options, surroundings, report, data, words));
  }
  if (options.snapshot_out.empty()) return status;
  if (status == exit_done) return deliver_snapshot(options, left, surroundings.error);
  surroundings.error << "reprise-replay: " << tools::printable(options.snapshot_out)
                     << ": not saved, because of the error above\n";
  return status;
}

std::string values(const KeyInfo& key) {
  std::string text;
  if (key.words.empty()) {
    text = std::to_string(key.least) + ".." + std::to_string(key.most);
    if (!key.no_number.empty()) text += " or " + std::string(key.no_number);
  }
  for (const std::string_view word : key.words) text += (text.empty() ? "" : " | ") + std::string(word);
  return text;
}

}  // namespace

int report_faults(std::span<const Row> rows, std::ostream& error) {
  int status = exit_done;
  for (const Row& row : rows) {
    if (row.counts.lossless() || row.category != all_categories) continue;
    status = exit_failed;
    if (!row.weighed() && row.curve != 0) continue;  // one replay is charged under several curves
    error << "reprise-replay: NOT LOSSLESS: "
          << tools::printable(row.trace + ": " + row.strategy + ": " + row.counts.fault) << "\n";
  }
  return status;
}

int report_faults(std::span<const SeedRow> rows, std::ostream& error) {
  int status = exit_done;
  for (const SeedRow& row : rows) {
    if (row.told.lossless() || row.category != all_categories) continue;
    status = exit_failed;
    error << "reprise-replay: NOT LOSSLESS: "
          << tools::printable(row.trace + ": " + row.strategy + ": " + row.told.fault) << "\n";
  }
  return status;
}

void write_list(std::ostream& out) {
  out << "strategies (--strategy name:key=value,...; a value may be a range: k=0..15)\n";
  for (const StrategyInfo& info : strategies()) {
    const auto more = [&out](const std::string& text) { out << list_line(16, "", 16, text); };
    out << "\n" << list_line(2, info.name, 16, std::string(info.meaning));
    if (info.name == default_strategy) more("(the default)");
    if (info.remembers == Remembers::sequences) more("--memory past: keeps sessions and learned state; can be saved");
    if (info.remembers == Remembers::sequences) more("--corpus: reads corpora");
    if (info.remembers == Remembers::ngrams) more("--memory past: keeps its table");
    if (info.remembers == Remembers::strategy) more("--memory past: keeps what it has learned");
    if (info.max_nodes > usual_draft_nodes)
      more("drafts up to " + std::to_string(info.max_nodes) + " tokens in a pass, if --max-nodes is " +
           std::to_string(usual_draft_nodes));
    if (info.control == ControlKind::cost) more("learns its probabilities: --control auto weighs costs");
    if (info.control == ControlKind::marginal) more("--control auto is marginal");
    for (const KeyInfo& key : info.keys) {
      const std::string setting = std::string(key.name) + "=" + std::string(key.default_value);
      const std::string choices = "(" + values(key) + ")";
      const bool fits = key_column + key.meaning.size() + 1 + choices.size() <= tools::narrow_terminal;
      out << list_line(6, setting, key_column, std::string(key.meaning) + (fits ? " " + choices : ""));
      if (!fits) out << list_line(key_column, "", key_column, choices);
    }
  }
  out << "\ncurves (--cost CURVE)\n\n"
      << list_line(2, "linear:S", 16, "a pass costs 1 + S x drafted tokens; S is a number from 0 to 65536")
      << list_line(2, "FILE.json", 16,
                   "measured: {\"version\": 1, \"base_ns\": t, \"points\": [{\"sequences\", \"context\", \"rows\", "
                   "\"ns\"}, ...]}; also searched among the bundled ones (step-8.json, moe.json) if it is not in the "
                   "current folder");
}

int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings) {
  try {
    const Options options = parse_options(arguments);
    const auto print = [&](auto&& text) { return deliver(options, surroundings, text); };
    if (options.help != tools::Help::none)
      return print([&](std::ostream& out) { out << help_text(options.help == tools::Help::all); });
    if (options.version) return print([](std::ostream& out) { out << "reprise-replay " << version_string << "\n"; });
    if (options.list) return print([](std::ostream& out) { write_list(out); });
    return replay(options, surroundings);
  } catch (const tools::InputError& error) {
    surroundings.error << "reprise-replay: " << tools::printable(error.what()) << "\n";
    return exit_bad_input;
  } catch (const std::exception& error) {
    surroundings.error << "reprise-replay: " << tools::printable(error.what()) << "\n";
    return exit_failed;
  }
}

}  // namespace reprise::replay
