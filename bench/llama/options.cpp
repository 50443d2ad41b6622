// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/options.hpp"
#include "option_rows.hpp"
#include "replay/strategies.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// Rejects combinations of options that have no effect or contradict each other.
class Agreement {
 public:
  Agreement(Options& options, const tools::GivenOptions& given) : o_(options), given_(given) {}

  void agree() {
    if (!given_("--model")) throw InputError("--model is missing: the path of a GGUF file; see --help");
    inputs();
    given_.only(o_.sampling.drawn(), {"--seed"}, "applies to sampled tokens only; give --temperature above 0 as well");
    given_.only(given_("--record"), {"--top-k"}, "is an option of --record; give that as well");
    o_.batched = given_("--sequences") && !given_("--profile");
    given_.only(o_.compare, {"--warm", "--again", "--cost-model", "--picks", "--prompt-rows"},
                "is an option of --compare; give that as well");
    given_.only(o_.compare || o_.batched, {"--repeat", "--epsilon"},
                "is an option of --compare and of --sequences; give one of them as well");
    given_.only(given_("--profile"), {"--contexts", "--most-drafted", "--pass-times"},
                "is an option of --profile; give that as well");
    given_.only(o_.batched, {"--rules", "--chunk"}, "is an option of --sequences; give that as well");
    given_.only(given_("--sequences") || given_("--profile"), {"--cache"},
                "is an option of --sequences and of --profile; give one of them as well");
    given_.only(o_.kept == replay::Kept::session, {"--repeat"},
                "does not go with --memory past: a repetition would draft from its own session");
    given_.only(o_.kept == replay::Kept::session, {"--cost-model"},
                "does not go with --memory past: the predicted replays have no memory");
    memories();
    if (o_.picks == PickSource::recorded) recorded_picks();
    std::size_t runs = 0;
    for (const std::string& spec : o_.strategies) runs += replay::make_runs(spec).size();  // refuses unknown ones
    if (runs > 1 && !o_.compare)
      throw InputError("--strategy names several strategies; only --compare runs more than one");
    one_of({"--compare", "--record", "--profile", "--flips"});
    outputs_are_nothing_else();
    for (const char* other : {"--record", "--profile", "--flips"})
      for (const char* name : {"--strategy", "--leaves", "--cost", "--memory"})
        given_.never_both(other, name, "nothing is drafted there");
    given_.only(o_.compare || o_.batched || o_.flips, {"--format"},
                "is an option of --compare, --sequences and --flips; give one of them as well");
    given_.only(o_.sampling.plain(), {"--record", "--flips", "--profile"},
                "always takes the likeliest token; leave out --temperature");
    for (const char* other : {"--record", "--flips", "--profile"})
      given_.never_both(other, "--grammar", "the likeliest token is always taken there");
    if (o_.flips && !given_("--trace")) throw InputError("--flips runs over the tokens of a recording; give --trace");
    if (given_("--profile")) return make_room_for_profile();
    if (o_.batched) return agree_batched();
    o_.engine.sequences = static_cast<std::uint32_t>(o_.leaves);
  }

 private:
  void one_of(std::initializer_list<const char*> modes) const {
    std::string names;
    for (const char* name : modes)
      if (given_(name)) {
        if (!names.empty()) throw InputError(names + " and " + name + " do not go together: each is a run of its own");
        names = name;
      }
  }

  /// The conditions of --picks recorded.
  void recorded_picks() const {
    given_.only(given_("--trace"), {"--picks"}, "recorded takes the tokens of a recording; give --trace");
    given_.only(o_.sampling.plain(), {"--picks"}, "recorded draws nothing; leave out --temperature");
    given_.never_both("--picks", "--grammar", "the recorded tokens need not follow it");
    given_.never_both("--picks", "--epsilon", "all texts are the recorded one, so there is no difference to judge");
  }

  /// The conditions of the options for memories.
  void memories() const {
    given_.only(o_.kept == replay::Kept::past, {"--warm", "--snapshot-in", "--snapshot-out"},
                "needs --memory past: with --memory session, nothing is kept from session to session");
    given_.only(o_.part != replay::TracePart::all, {"--warm"},
                "runs the half of the sessions that is not measured; give --part a or --part b as well");
    given_.only(given_("--snapshot-in") || given_("--snapshot-out"), {"--fingerprint"},
                "needs --snapshot-in or --snapshot-out: it identifies the tokenizer of such a file");
    given_.never_both("--flips", "--part", "it runs over all sessions of the trace; choose some with --limit");
  }

  /// Checks that no output file is used twice: --output, --profile and --snapshot-out replace their file, and --record
  /// appends to one with sessions of its own. --snapshot-in and --snapshot-out may be the same file.
  void outputs_are_nothing_else() const {
    struct File {
      const char* option;
      const std::vector<std::string> paths;
      bool written = false;
    };
    const File files[] = {{"--output", {o_.output}, true},
                          {"--profile", {o_.profile}, true},
                          {"--record", {o_.record}, true},
                          {"--snapshot-in", {o_.snapshot_in}},  // may be the file of the next row
                          {"--snapshot-out", {o_.snapshot_out}, true},
                          {"--model", {o_.engine.model}},
                          {"--prompts", o_.inputs.prompts},
                          {"--grammar", {o_.grammar}},
                          {"--cost", {o_.cost}},
                          {"--cost-model", {o_.cost_model}},
                          {"--trace", o_.inputs.traces}};
    for (const File* file = files; file != std::end(files); ++file) {
      if (!file->written || !given_(file->option)) continue;
      const std::string& output = file->paths.front();
      for (const File* other = file + 1; other != std::end(files); ++other)
        for (const std::string& path : other->paths)
          if (given_(other->option) && tools::same_file(path, output))
            throw InputError(std::string(file->option) + " " + output +
                             ": is given for something else as well; give a file of its own");
    }
  }

  /// The conditions of --sequences. Sets the context for the largest number of sequences.
  void agree_batched() {
    for (const char* other : {"--compare", "--record", "--flips"})
      given_.never_both("--sequences", other, "each is a run of its own");
    given_.never_both("--sequences", "--leaves", "its drafts are chains");
    given_.never_both("--sequences", "--memory", "its sessions run side by side, so none is in the past");
    o_.engine.sequences = static_cast<std::uint32_t>(*std::max_element(o_.sequences.begin(), o_.sequences.end()));
  }

  /// Sets the context for measuring: a cache per sequence, and llama.cpp counts the tokens of all sequences together.
  void make_room_for_profile() {
    const std::size_t longest = *std::max_element(o_.contexts.begin(), o_.contexts.end());
    const std::size_t most = *std::max_element(o_.sequences.begin(), o_.sequences.end());
    o_.engine.sequences = static_cast<std::uint32_t>(most);
    if (!given_("--cache")) o_.engine.unified = false;
    if (!given_("--context")) o_.engine.context = static_cast<std::uint32_t>(most * (longest + 256));
    o_.engine.batch = static_cast<std::uint32_t>(std::max<std::size_t>(512, (o_.most_drafted + 1) * most));
  }

  void inputs() {
    std::string names;
    int kinds = 0;
    for (const char* name : {"--prompt", "--prompts", "--trace"})
      if (given_(name)) names += (kinds++ > 0 ? " and " : "") + std::string(name);
    if (given_("--profile")) {
      if (kinds != 0) throw InputError("--profile measures passes over made-up tokens; leave out " + names);
      for (const char* name : {"--raw", "--max-tokens", "--limit", "--part"})
        given_.never_both("--profile", name, "it measures passes over made-up tokens");
      return;
    }
    if (kinds == 0) throw InputError("nothing to generate: give --prompt, --prompts or --trace");
    if (kinds > 1) throw InputError(names + " do not go together: give one of them");
    given_.only(!given_("--trace"), {"--raw", "--max-tokens"},
                "applies to text; a trace has tokens, and states how many to generate");
    given_.only(given_("--prompts") || given_("--trace"), {"--limit", "--part"},
                "applies to files of sessions: --prompts and --trace");
  }

  Options& o_;
  const tools::GivenOptions& given_;
};

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  options.engine.context = 4096;
  const tools::GivenOptions given = tools::parse(option_table(options), arguments);
  if (options.help == tools::Help::none && !options.version) Agreement(options, given).agree();
  return options;
}

std::string help_text(bool all) {
  Options options;
  return option_table(options).help(all);
}

}  // namespace reprise::llama
