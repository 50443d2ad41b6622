// SPDX-License-Identifier: Apache-2.0
#include "option_rows.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/input_error.hpp"

namespace reprise::llama {
namespace {

using tools::fingerprint;
using tools::flag;
using tools::Option;
using tools::real;
using tools::text;
using tools::texts;
using tools::whole;
using tools::whole_numbers;
using tools::word;

constexpr std::string_view purpose =
    R"(Generates with llama.cpp, drafting from the text so far: the same answer in fewer passes.

usage: reprise-llama --model FILE.gguf INPUT [OPTION]...

INPUT, one of:
)";

constexpr std::string_view exit_notes = R"(
exit status: 0 done; 1 the engine failed; 2 an input cannot be used. --compare: 0 all texts are
identical; 3 some texts differ, each first at a near tie; 4 a text is wrong. --sequences: the same,
and 130 after an interrupt.
)";

constexpr std::string_view a_whole_number = "a whole number";

std::vector<Option> common_rows(Options& o) {
  return {{"--prompt", "TEXT", "one turn", text(o.inputs.prompt)},
          {.name = "--prompts",
           .value = "FILE...",
           .help = "sessions, one JSON object a line: {\"id\", \"category\", \"turns\":\n"
                   "[\"text\", ...]}; optional: \"system\": \"text\", and \"draft\": false\n"
                   "(nothing is drafted for this session)",
           .read = texts(o.inputs.prompts),
           .repeats = true,
           .list = true},
          {.name = "--trace",
           .value = "FILE...",
           .help = "recorded token traces; each turn generates as many tokens as were recorded",
           .read = texts(o.inputs.traces),
           .repeats = true,
           .list = true},
          {"", "", "\n"},
          {"--max-tokens", "N", "tokens of each answer (default 256)",
           whole(o.inputs.max_tokens, 1, 1 << 20, a_whole_number)},
          {"--temperature", "T",
           "above 0: draw, with top-k 40, top-p 0.95, min-p 0.05 and --seed; 0 (default): always the likeliest token",
           real(o.sampling.temperature, 0, 100, "from 0 to 100")},
          {"--context", "N", "tokens (default 4096; 0: the model's training context)",
           whole(o.engine.context, 0, 1 << 30, a_whole_number)},
          {"--threads", "N", "threads of llama.cpp (default 2)", whole(o.engine.threads, 1, 1024, a_whole_number)},
          {.name = "--strategy",
           .value = "SPEC",
           .help = "as in reprise-replay: name[:key=value,...]; none: plain decoding\n"
                   "(default ngram)",
           .read = texts(o.strategies),
           .repeats = true},
          {"--cost", "COST",
           "cost of passes, by which control cuts the drafts of strategies with learned\n"
           "probabilities; drafts of other strategies are sent whole.\n"
           "  learned     (default) learned from pass times\n"
           "  linear:S    1 + S x drafted tokens\n"
           "  FILE.json   a measured curve",
           text(o.cost)},
          {.name = "--compare",
           .value = "",
           .help = "runs every session without drafting and with each --strategy (may be given\n"
                   "several times), in turn, and prints both speeds and whether the text is the same; with\n"
                   "a given --cost, also the speedup under that curve",
           .read = flag(o.compare),
           .repeats = true},
          {"--sequences", "N,...",
           "decodes up to N sessions at once, in shared passes, for each N, with each of\n"
           "the --rules; compares every text with the session decoded alone",
           whole_numbers(o.sequences, 64)},
          {"--record", "FILE", "appends the tokens of every session as a trace; skips sessions that FILE has",
           text(o.record)},
          {"--profile", "FILE",
           "measures the cost of passes by their rows and writes a curve file;\n"
           "takes no INPUT",
           text(o.profile)},
          {.name = "--flips",
           .value = "",
           .help = "counts how often the likeliest token depends on the number of rows of a\n"
                   "pass; needs --trace",
           .read = flag(o.flips),
           .repeats = true},
          {"--format", "FORMAT", "of --compare, --sequences and --flips: table (default) or json",
           word<bool>(o.json, {{"table", false}, {"json", true}})},
          {"--output", "FILE", "write there instead of to standard output", text(o.output)}};
}

std::vector<Option> input_rows(Options& o) {
  return {{"", "", "\nInput and engine:\n"},
          {.name = "--raw",
           .value = "",
           .help = "use the text unchanged, without the model's chat template",
           .read = flag(o.inputs.raw),
           .repeats = true},
          {"--limit", "N", "the first N sessions of each file",
           whole(o.inputs.limit, 1, std::uint64_t{1} << 40, a_whole_number)},
          {"--part", "PART",
           "all (default), or one half of the sessions, a or b, by a hash of the id as\n"
           "in reprise-replay",
           word<replay::TracePart>(
               o.part, {{"all", replay::TracePart::all}, {"a", replay::TracePart::a}, {"b", replay::TracePart::b}})},
          {"--leaves", "N", "drafts may be trees with up to N paths (default 1: chains)",
           whole(o.leaves, 1, 64, a_whole_number)},
          {.name = "--verbose",
           .value = "",
           .help = "print llama.cpp's own log to standard error",
           .read = flag(o.engine.verbose),
           .repeats = true},
          // To llama.cpp the next larger seed means a random one.
          {"--seed", "N", "seed of the draws (default 1)", whole(o.sampling.seed, 0, 0xFFFFFFFE, a_whole_number)},
          {.name = "--grammar",
           .value = "FILE",
           .help = "answers follow this grammar (GBNF, as of llama.cpp). Only the first turn of\n"
                   "each session runs",
           .read = text(o.grammar)}};
}

std::vector<Option> memory_rows(Options& o) {
  return {{"", "", "\nMemory:\n"},
          {"--memory", "KEPT",
           "the state that a session leaves to the next ones, for each --strategy apart.\n"
           "  session     (default) nothing\n"
           "  past        its tokens, or the tables that the strategy has learned;\n"
           "              strategies without a memory (see --list of reprise-replay) run\n"
           "              as before",
           word<replay::Kept>(o.kept, {{"session", replay::Kept::session}, {"past", replay::Kept::past}})},
          {.name = "--snapshot-in",
           .value = "FILE",
           .help = "memories start with the contents of this file",
           .read = text(o.snapshot_in)},
          {.name = "--snapshot-out",
           .value = "FILE",
           .help = "saves the memory of the only strategy at the end: tokens, calibration,\n"
                   "and the table of next tokens (docs/formats.md)",
           .read = text(o.snapshot_out)},
          {.name = "--fingerprint",
           .value = "N",
           .help = "fingerprint of the tokenizer in these files; a file with another one is\n"
                   "refused (default: computed from the model's vocabulary;\n"
                   "reprise-replay uses 0)",
           .read = fingerprint(o.fingerprint)}};
}

std::vector<Option> comparison_rows(Options& o) {
  return {{"", "", "\nWith --compare:\n"},
          {.name = "--repeat",
           .value = "N",
           .help = "repetitions, in alternating order (default 1)",
           .read = whole(o.repeat, 1, 1000, a_whole_number)},
          {.name = "--warm",
           .value = "",
           .help = "with --memory past and --part: the sessions of the other half run first and\n"
                   "fill the memories; they are not in the results",
           .read = flag(o.warm)},
          {.name = "--again",
           .value = "N",
           .help = "runs N of the sessions, evenly chosen, once more at the end: a category\n"
                   "'repeated', which is not in the sum of all",
           .read = whole(o.again, 1, 1'000'000, a_whole_number)},
          {.name = "--epsilon",
           .value = "E",
           .help = "a difference is a near tie if logits shifted by up to E explain it\n"
                   "(default 0.05)",
           .read = real(o.epsilon, 0, 10, "of logits, from 0 to 10")},
          {.name = "--picks",
           .value = "SOURCE",
           .help = "the tokens that are committed.\n"
                   "  target      (default) those that the model picks\n"
                   "  recorded    those of the --trace, as if the model had picked them. The\n"
                   "              model still runs all passes and shows its likeliest tokens.\n"
                   "              All strategies commit the same text",
           .read = word<PickSource>(o.picks, {{"target", PickSource::target}, {"recorded", PickSource::recorded}})},
          {.name = "--prompt-rows",
           .value = "",
           .help = "also shows strategies the likeliest tokens after each token of a prompt;\n"
                   "racer always gets them. The prefill takes longer, because it computes the\n"
                   "logits of all tokens",
           .read = flag(o.prompt_rows)},
          {.name = "--cost-model",
           .value = "CURVE",
           .help = "also print the speedup that a replay of the same tokens predicts under this\n"
                   "curve",
           .read = text(o.cost_model)}};
}

std::vector<Option> batch_rows(Options& o) {
  return {{"", "", "\nWith --sequences (also --repeat and --epsilon):\n"},
          {.name = "--rules",
           .value = "RULE,...",
           .help = "the number of tokens that each sequence drafts (default: all of these, told\n"
                   "only with --cost).\n"
                   "  plain       none\n"
                   "  told        BatchPlanner with the curve of --cost\n"
                   "  learned     BatchPlanner that learns from the times of whole passes\n"
                   "  1, 2, 4, 8  as many as the strategy has, up to this number (1 to 32)",
           .read = [&o](const std::string&, const std::string& value) { o.rules = tools::split_at_commas(value); }},
          {.name = "--chunk",
           .value = "N",
           .help = "most prompt tokens of a pass in which sequences decode (default 64);\n"
                   "0: prompts in passes of their own",
           .read = whole(o.chunk, 0, 1 << 20, a_whole_number)},
          {.name = "--cache",
           .value = "KIND",
           .help = "unified: one cache for all sequences, of --context tokens (default).\n"
                   "separate: one cache for each, of --context / N tokens (the default of\n"
                   "--profile)",
           .read = word<bool>(o.engine.unified, {{"unified", true}, {"separate", false}})}};
}

std::vector<Option> profile_rows(Options& o) {
  return {{"", "", "\nWith --record:\n"},
          {.name = "--top-k",
           .value = "N",
           .help = "also records the N likeliest tokens (1 to 1024) at the row that picked each\n"
                   "output token",
           .read = whole(o.record_top_k, 1, 1024, a_whole_number)},
          {"", "", "\nWith --profile (also --sequences, default 1,2,4):\n"},
          {.name = "--contexts",
           .value = "N,...",
           .help = "tokens in the cache of each sequence (default 128,1024,4096)",
           .read = whole_numbers(o.contexts, 1 << 20)},
          {.name = "--most-drafted",
           .value = "N",
           .help = "most drafted tokens of each sequence, 1 to 32 (default 32)",
           .read = whole(o.most_drafted, 1, 32, a_whole_number)},
          {.name = "--pass-times",
           .value = "N",
           .help = "runs N passes of each shape instead of 9, and also writes each time of\n"
                   "passes of one sequence, for reprise-replay --pass-times FILE",
           .read = whole(o.pass_times, 7, 100'000, a_whole_number)}};
}

}  // namespace

tools::OptionTable option_table(Options& o) {
  tools::OptionTable table;
  table.ends_with_dashes = false;
  table.operand = [](const auto&, const std::string& argument) {
    throw tools::InputError("'" + argument + "' belongs to no option; files follow --prompts or --trace");
  };
  table.rows.push_back({"", "", purpose});
  table.rows.push_back({"--model", "FILE", "", text(o.engine.model)});
  table.add(common_rows(o));
  table.add(tools::help_and_version(o.help, o.version));
  table.common_rows = table.rows.size();
  for (const auto& rows : {input_rows(o), memory_rows(o), comparison_rows(o), batch_rows(o), profile_rows(o)})
    table.add(rows);
  table.rows.push_back({"", "", exit_notes});
  return table;
}

}  // namespace reprise::llama
