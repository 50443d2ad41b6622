// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/options.hpp"

namespace reprise::replay {
namespace {

using tools::fingerprint;
using tools::flag;
using tools::InputError;
using tools::Option;
using tools::real;
using tools::text;
using tools::texts;
using tools::whole;
using tools::word;

constexpr std::string_view purpose =
    R"(Replays recorded token traces with draft strategies and counts what they would have saved.

usage: reprise-replay [OPTION]... [TRACE]...

)";

constexpr std::string_view notes = R"(
Meaning of the results:
  MAT                tokens / passes; tokens: all output tokens except the first of each turn
  acceptance rate    accepted / drafted
  speedup            tokens / summed cost of the passes; drafting time is not charged
  drafting time      CPU time of the thread (wall time on systems without such a clock) in begin, observe,
                     propose and feedback, in ns per output token and per propose. Time in control likewise
  memory             largest memory held in a session, and size of the state kept between sessions
  worst loss         largest cost, in passes without a draft, of up to 1,000 passes in a row of a session,
                     beyond the tokens they committed
  calibration error  mean distance between the claimed and the observed probability of a drafted token whose
                     parent was right, in 20 bins

exit status: 0 done; 1 an output differed from its recording or results could not be written;
2 an argument, trace, curve or snapshot cannot be used.
)";

/// Values with their names in --help and in results.
template <class T, class... Others>
std::vector<std::pair<std::string_view, T>> named(T first, Others... others) {
  return {{name(first), first}, {name(others), others}...};
}

std::vector<Option> common_rows(Options& o) {
  return {{.name = "--strategy",
           .value = "SPEC",
           .help = "name[:key=value,...], as in vllm:min=2,max=5; k=0..15 is one run each. May be given several times. "
                   "Default: ngram",
           .read = texts(o.strategies),
           .repeats = true},
          {.name = "--cost",
           .value = "CURVE",
           .help = "time of a pass, relative to one without a draft: linear:S (1 + S x drafted tokens) or FILE.json "
                   "(measured). May be given several times. Default: S from 0 to 0.3",
           .read = texts(o.costs),
           .repeats = true},
          {.name = "--memory",
           .value = "MEMORY",
           .help = "state from earlier sessions: session (default) none; calibration: learned probabilities, no text; "
                   "past: also prompts and outputs",
           .read = word(o.settings.kept, named(Kept::session, Kept::calibration, Kept::past)),
           .wanted = "session, calibration or past"},
          {"--by-category", "", "also one result for each category of a trace", flag(o.by_category)},
          {"--advise", "",
           "instead of results: the settings of the library that pay for these traces under one --cost, and C++ to "
           "paste (docs/choosing.md)",
           flag(o.advise)},
          {"--report", "FILE",
           "also write a page there, HTML in one file, about the first strategy under the middle cost; without "
           "--strategy, also with those of other systems",
           text(o.report)},
          {.name = "--format",
           .value = "FORMAT",
           .help = "table (default) or json",
           .read = word<bool>(o.json, {{"table", false}, {"json", true}}),
           .wanted = "table or json"},
          {"--output", "FILE", "write there instead of to standard output", text(o.output)},
          {"--list", "", "list the strategies with their keys, and the curves", flag(o.list)}};
}

std::vector<Option> drafting_rows(Options& o) {
  return {
      {"", "", "\nDrafts:\n"},
      {.name = "--control",
       .value = "CONTROL",
       .help = "how much of each draft is sent. May be given several times.\n"
               "  cost       the part that pays under the curve; one replay per curve\n"
               "  marginal   its first tokens that are likelier than the cost of each, by the\n"
               "             true curve; one replay per curve\n"
               "  all        all of it\n"
               "  best:K     always its K best tokens; or a range, best:0..32: one run each\n"
               "  hindsight  as far into the draft as the recording agrees: more than any\n"
               "             control can know\n"
               "  auto       (default) cost for strategies that learn their probabilities,\n"
               "             marginal for adaptive (see --list), all for the others",
       .read =
           [&o](const auto&, const auto& value) {
             for (const ControlSpec& spec : parse_control(value)) o.controls.push_back(spec);
           },
       .repeats = true,
       .wanted = "auto, cost, marginal, all, hindsight or best:K"},
      {"--max-nodes", "N", "most tokens drafted in a pass, 1 to 64 (default 32; exceptions: see --list)",
       whole(o.settings.max_nodes, 1, most_draft_nodes, "a number of drafted tokens,")},
      {.name = "--shape",
       .value = "SHAPE",
       .help = "what the engine can verify:\n  chain  (default) the best chain of each draft, which is what the "
               "library drafts for an engine with two "
               "functions, verify and commit\n"
               "  tree   drafts as they are, for an engine that verifies trees (Capabilities::max_leaves)",
       .read = word<bool>(o.settings.trees, {{shape_name(false), false}, {shape_name(true), true}}),
       .wanted = "chain or tree"},
      {.name = "--top-k",
       .value = "WHICH",
       .help = "rankings of the target:\n  off  (default) no rankings are shown, as for an engine with two functions\n"
               "  on   the top-k rows of accepted tokens are shown to strategies that want them, as for an engine "
               "with top_k(i). Rows of rejected tokens are not in a trace: a lower bound",
       .read = word<bool>(o.settings.top_k, {{"off", false}, {"on", true}}),
       .wanted = "off or on"},
      {.name = "--eos",
       .value = "ID",
       .help = "a token that ends a generation, so that nothing is drafted after it, as in\n"
               "an engine that tells its sessions. May be given several times. Default: none",
       .read =
           [&o](const auto& name, const auto& value) {
             o.settings.eos.push_back(
                 static_cast<Token>(tools::read_whole(name, value, 0, std::size_t{0x7fffffff}, "a token id,", value)));
           },
       .repeats = true},
      {.name = "--corpus",
       .value = "FILE",
       .help = "a corpus that reprise-index has built (docs/formats.md). Strategies that\n"
               "read one (see --list) draft from it too. May be given up to three times",
       .read = texts(o.corpora),
       .repeats = true},
      {"--fingerprint", "N",
       "fingerprint of the tokenizer, any number that you choose; a file with\n"
       "another one is refused (default: 0 for snapshots, any for corpora)",
       fingerprint(o.fingerprint)}};
}

std::vector<Option> cost_rows(Options& o) {
  return {{"", "", "\nKnowledge of costs:\n"},
          {.name = "--pass-times",
           .value = "FILE",
           .help = "a recording of pass times of a real engine (docs/formats.md). Its medians\n"
                   "are a further curve. With --cost-known learned or carried, times are drawn\n"
                   "from it instead of simulated. May be given several times; without --cost,\n"
                   "only these curves are used",
           .read = texts(o.pass_times),
           .repeats = true},
          {.name = "--cost-known",
           .value = "HOW",
           .help = "how control knows the curve:\n"
                   "  told      (default) it receives the curve\n"
                   "  learned   from pass times only, starting again in each session. The times\n"
                   "            are simulated, 10 ms for a plain pass, and noisy\n"
                   "  carried   the same, but knowledge is kept from session to session, as in\n"
                   "            one engine; these sessions are replayed one after the other\n"
                   "  assumed   neither the curve nor times: it drafts by --cost-prior",
           .read = word(o.settings.cost_known,
                        named(CostKnown::told, CostKnown::learned, CostKnown::carried, CostKnown::assumed)),
           .wanted = "told, learned, carried or assumed"},
          {"--cost-prior", "PRIOR",
           "the costs that control assumes before it has pass times: gpu-batch-1,\n"
           "cpu-quantised, or a curve as for --cost, at a context of 0 tokens. Default:\n"
           "none; a drafted token is assumed to cost 5%",
           text(o.settings.cost_prior)},
          {"--noise", "X", "noise of those times: standard deviation over mean, 0 to 0.5 (default 0.1)",
           real(o.settings.noise, 0, 0.5, "from 0 to 0.5, as in 0.1")},
          {.name = "--outliers",
           .value = "P:FACTOR",
           .help = "P percent of the passes, a whole number from 0 to 50, take FACTOR (1 to\n"
                   "1000) times as long, whatever the noise is (default 1:10)",
           .read = [&o](const auto&, const auto& value) { o.settings.outliers = parse_outliers(value); }},
          {.name = "--slowdown",
           .value = "F@PASS",
           .help = "after PASS passes, or after half of the tokens (F@middle), all times are F\n"
                   "(0.01 to 100) times as long. Both count from where the control knows\n"
                   "nothing: in each session with learned, in the whole stream of sessions with\n"
                   "carried",
           .read = [&o](const auto&, const auto& value) { o.settings.slowdown = parse_slowdown(value); }},
          {.name = "--poison",
           .value = "MODE:N",
           .help = "the reported times of the first N passes are wrong, and right from then on.\n"
                   "Passes count as for --slowdown. The drawing of --seeds shows how the learned\n"
                   "curve recovers. MODE is one of\n"
                   "  random        each time is off by a random factor of 0.01 to 100\n"
                   "  drafts-dear   passes with a draft look 30 times as long, as while kernels\n"
                   "                are compiled\n"
                   "  plain-cheap   passes without a draft look 50 times as short\n"
                   "  drafts-free   passes with a draft look 20 times as short, others 5 times\n"
                   "                as long\n"
                   "  first-slow    the first pass of each row count takes 30 to 300 times as\n"
                   "                long\n"
                   "  slow-machine  all take three times as long, in the N passes after half of\n"
                   "                the tokens\n"
                   "  missing       no time is reported",
           .read = [&o](const auto&, const auto& value) { o.settings.poison = parse_poison(value); }},
          {"--seed", "N", "seed of the noise (default 1)", whole(o.settings.seed, 1, 1'000'000, "a number of seed,")},
          {"--seeds", "N",
           "replay with N seeds, from --seed on, and once with the curve told. The\n"
           "results are speedups relative to told: mean, worst, the seed of the worst,\n"
           "and the seeds that are still below 0.97 of told in the last quarter of the\n"
           "tokens",
           whole(o.seeds, 1, 1'000'000, "a number of seeds,")}};
}

std::vector<Option> memory_rows(Options& o) {
  return {{"", "",
           "\nMemory. Each trace, strategy, control and curve has one of its own, empty at first; its sessions are "
           "replayed one after the other. A strategy without such a memory is replayed as with --memory session, and "
           "its results say so:\n"},
          {"--memory-bytes", "N", "upper limit of such a memory (default 67108864, 64 MiB); a token takes 18.2",
           whole(o.settings.memory_bytes, 1, std::uint64_t{1} << 40, "a number of bytes,")},
          {"--next-tokens", "N",
           "with --memory past: upper limit in bytes of the counts of next tokens that\n"
           "sessions leave to later ones (default 4194304, 4 MiB); 0: none. With\n"
           "--top-k on, the table is twice as large: the other half is for rankings",
           whole(o.settings.next_token_bytes, 0, std::uint64_t{1} << 40, "a number of bytes,")},
          {"--snapshot-in", "FILE",
           "memories start with the contents of this file, at most 2 x --memory-bytes +\n"
           "1 MiB",
           text(o.snapshot_in)},
          {"--snapshot-out", "FILE",
           "save the history and the calibration of the only trace, strategy, control\n"
           "and curve there (reprise/history/history_snapshot.hpp, docs/formats.md),\n"
           "unless the exit status is 1; the table of next tokens is not saved",
           text(o.snapshot_out)}};
}

std::vector<Option> session_rows(Options& o) {
  return {{"", "", "\nSessions:\n"},
          {.name = "--part",
           .value = "PART",
           .help = "all (default), or one half of the sessions, a or b, by a hash of the id\n"
                   "(64-bit FNV-1a, even or odd): choose settings on one half, and judge them on\n"
                   "the other",
           .read = word(o.part, named(TracePart::all, TracePart::a, TracePart::b)),
           .wanted = "all, a or b"},
          {"--limit", "N", "the first N sessions of each trace; of these, the part",
           whole(o.limit, 1, std::uint64_t{1} << 53, "a number of sessions of each trace,")},
          {"--stream", "",
           "replay all traces as one, in the order given: one result for all, and state\n"
           "that is kept from session to session is also kept from file to file",
           flag(o.stream)},
          {"--shuffle", "SEED",
           "replay the sessions of a trace or of the stream in a random order of this\n"
           "seed; with --stream and --by-category: texts of several kinds, mixed",
           whole(o.shuffle, 1, 1'000'000, "a number of seed,")},
          {"--threads", "N",
           "sessions replayed in parallel (default 1); whole runs where sessions depend\n"
           "on each other. Counts do not depend on it; times are cleanest with 1.\n"
           "Without this option, the further replays of --report use all cores",
           whole(o.threads, 1, 1024, "a number of threads,")}};
}

std::vector<Option> report_rows(Options& o) {
  return {{"", "", "\nMore results:\n"},
          {.name = "--head-cost",
           .value = "H",
           .help = "also decode beside the draft head whose accepted lengths the traces have\n"
                   "(docs/formats.md), if each of its drafts costs H plain passes, 0 to 10: the\n"
                   "lookup alone, the head alone, and both. May be given several times; --report\n"
                   "draws them",
           .read =
               [&o](const auto& name, const auto& value) {
                 real(o.head_costs.emplace_back(), 0, 10, "from 0 to 10, as in 0.05")(name, value);
               },
           .repeats = true},
          {"--ceiling", "",
           "also an upper bound for drafters that copy from their session: an oracle\n"
           "that knows, for each pass, where to copy from and how far",
           flag(o.ceiling)},
          {.name = "--report-session",
           .value = "ID",
           .help = "show this session on the page, token by token, before the worst, the median\n"
                   "and the best of each category. May be given several times; a page shows up\n"
                   "to 24 sessions",
           .read = texts(o.report_sessions),
           .repeats = true},
          {"--vocabulary", "FILE",
           "the texts of the tokens on the page, as in vocab.json or tokenizer.json; the bundled traces have theirs\n"
           "(docs/formats.md)",
           text(o.vocabulary)}};
}

tools::OptionTable table_of(Options& o) {
  tools::OptionTable table;
  table.operand = tools::paths(o.traces, "TRACE");
  table.rows = {
      {"", "", purpose},
      {"TRACE", "", "recorded sessions, one JSON object a line (docs/formats.md). Default: the bundled ones", {}},
      {"", "", "\n"}};
  table.add(common_rows(o));
  table.add(tools::help_and_version(o.help, o.version));
  table.common_rows = table.rows.size();
  for (const auto& rows : {drafting_rows(o), cost_rows(o), memory_rows(o), session_rows(o), report_rows(o)})
    table.add(rows);
  table.rows.push_back({"", "", notes});
  return table;
}

/// Rejects options that an advice chooses or does not use.
void agree_to_advise(const Options& o, const tools::GivenOptions& given) {
  if (!o.advise) return;
  given.only(false,
             {"--strategy", "--control", "--shape", "--max-nodes", "--memory", "--memory-bytes", "--next-tokens",
              "--snapshot-in", "--snapshot-out"},
             "cannot be given with --advise, which tries several of these settings");
  given.only(false, {"--seeds", "--by-category", "--ceiling", "--head-cost", "--report", "--format"},
             "belongs to a replay of given settings; leave out --advise, or this option");
  if (o.costs.size() + o.pass_times.size() != 1)
    throw InputError(
        "--advise needs one --cost or --pass-times, because the best settings depend on what a pass costs; "
        "docs/choosing.md says how to measure a curve, and linear:0.02 is a guess for a GPU");
}

/// Rejects combinations of options that have no effect.
void agree(const Options& o, const tools::GivenOptions& given) {
  agree_to_advise(o, given);
  given.only(timed(o.settings.cost_known), {"--noise", "--outliers", "--slowdown", "--poison", "--seed", "--seeds"},
             "needs --cost-known learned or carried: otherwise no pass times are simulated");
  given.only(o.settings.cost_known != CostKnown::told, {"--cost-prior"},
             "needs --cost-known learned, carried or assumed: with told, control knows all costs");
  given.only(o.settings.cost_known == CostKnown::told || o.settings.cost_known == CostKnown::carried, {"--head-cost"},
             "needs --cost-known told or carried: what an engine learns of its head, it keeps");
  given.only(o.pass_times.empty() || !o.costs.empty(), {"--noise", "--outliers"},
             "needs --cost: all times come from the recordings of --pass-times");
  given.only(o.settings.kept == Kept::past, {"--memory-bytes", "--next-tokens", "--snapshot-in", "--snapshot-out"},
             "needs --memory past: otherwise, no text is kept from session to session");
  if (given("--fingerprint") && o.snapshot_in.empty() && o.snapshot_out.empty() && o.corpora.empty())
    throw InputError(
        "--fingerprint needs --snapshot-in, --snapshot-out or --corpus: it identifies the tokenizer of such a file");
  if (!o.output.empty())
    for (const auto& [name, path] : {std::pair("--snapshot-in", &o.snapshot_in), {"--snapshot-out", &o.snapshot_out}})
      if (!path->empty() && tools::same_file(*path, o.output))
        throw InputError(std::string(name) + " and --output are the same file; give two");
  given.only(!o.report.empty(), {"--report-session", "--vocabulary"}, "needs --report: it changes that page");
  for (const auto& [name, path] :
       {std::pair("--output", &o.output), {"--snapshot-in", &o.snapshot_in}, {"--snapshot-out", &o.snapshot_out}})
    if (!o.report.empty() && !path->empty() && tools::same_file(*path, o.report))
      throw InputError(std::string(name) + " and --report are the same file; give two");
  given.only(o.seeds == 0, {"--ceiling", "--head-cost", "--report", "--snapshot-out"},
             "belongs to one replay, but --seeds makes several; leave one of them out");
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  const tools::GivenOptions given = tools::parse(table_of(options), arguments);
  options.memory_bytes_given = given("--memory-bytes");
  options.threads_given = given("--threads");
  options.top_k_given = given("--top-k");
  for (const std::string& path : options.corpora)
    options.settings.corpora += (options.settings.corpora.empty() ? "" : ", ") + path;
  agree(options, given);
  return options;
}

std::string help_text(bool all) {
  Options options;
  return table_of(options).help(all);
}

}  // namespace reprise::replay
