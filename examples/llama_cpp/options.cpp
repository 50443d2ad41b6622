// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>

#include "replay/input_error.hpp"
#include "replay/number.hpp"
#include "replay/strategies.hpp"

namespace reprise::llama {
namespace {

using replay::InputError;

/// `text` as a number. Messages show all of `argument`, which it is or is a part of.
std::size_t count(const std::string& name, const std::string& text, std::size_t least, std::size_t most,
                  const std::string& argument, const char* expected = "a whole number") {
  const auto value = replay::parse_integer(text);
  if (!value || *value < static_cast<std::int64_t>(least) || *value > static_cast<std::int64_t>(most))
    throw InputError(name + " " + argument + ": expected " + expected + " from " + std::to_string(least) + " to " +
                     std::to_string(most));
  return static_cast<std::size_t>(*value);
}

double real(const std::string& name, const std::string& text, double least, double most, const char* range) {
  const auto value = replay::parse_real(text);
  if (!value || *value < least || *value > most) throw InputError(name + " " + text + ": expected a number " + range);
  return *value;
}

class Reader {
 public:
  explicit Reader(std::span<const std::string> arguments) : arguments_(arguments) {}

  Options read() {
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      if (argument.size() > 1 && argument[0] == '-')
        option(argument);
      else if (files_ == nullptr || argument.empty())
        throw InputError("'" + argument + "' belongs to no option; files come behind --prompts or --trace");
      else
        files_->push_back(argument);
    }
    if (!o_.help && !o_.version) agree();
    return o_;
  }

 private:
  using Take = std::function<void(const std::string& name, const std::string& value)>;

  template <class Integer>
  static Take number(Integer& into, std::size_t least, std::size_t most) {
    return [&into, least, most](const auto& name, const auto& value) {
      into = static_cast<Integer>(count(name, value, least, most, value));
    };
  }
  static Take number(double& into, double least, double most, const char* range) {
    return [&into, least, most, range](const auto& name, const auto& value) {
      into = real(name, value, least, most, range);
    };
  }
  static Take text(std::string& into) {
    return [&into](const auto&, const auto& value) { into = value; };
  }
  Take list(std::vector<std::string>& into) {
    return [this, &into](const auto&, const auto& value) {
      into.push_back(value);
      files_ = &into;
    };
  }

  static Take numbers(std::vector<std::size_t>& into, std::size_t least, std::size_t most) {
    return [&into, least, most](const auto& name, const auto& value) {
      into.clear();
      for (std::size_t from = 0; from <= value.size();) {
        const std::size_t to = std::min(value.find(',', from), value.size());
        into.push_back(count(name, value.substr(from, to - from), least, most, value,
                             "whole numbers with commas between them, each"));
        from = to + 1;
      }
    };
  }

  void option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    if (name == "-h") name = "--help";
    files_ = nullptr;
    if (const auto flag = flags_.find(name); flag != flags_.end()) {
      if (equals != std::string::npos)
        throw InputError(name + " takes no value, but got '" + argument.substr(equals + 1) + "'");
      *flag->second = true;
      given_.insert(name);
      return;
    }
    const auto found = with_value_.find(name);
    if (found == with_value_.end()) throw InputError("there is no option " + name + "; see --help for those there are");
    if (!given_.insert(name).second && name != "--strategy" && name != "--prompts" && name != "--trace")
      throw InputError(name + " is given twice; once is enough");
    std::optional<std::string> value;
    if (equals != std::string::npos)
      value = argument.substr(equals + 1);
    else if (at_ < arguments_.size())
      value = arguments_[at_++];
    if (!value || value->empty()) throw InputError(name + " needs a value; see --help");
    found->second(name, *value);
  }

  [[nodiscard]] bool given(const std::string& name) const { return given_.count(name) != 0; }
  /// `names` have an effect only where `condition` holds: given without, they are a mistake, not a wish.
  void only(bool condition, std::initializer_list<const char*> names, const std::string& why) const {
    for (const char* name : names)
      if (!condition && given(name)) throw InputError(std::string(name) + " " + why);
  }
  void never_both(const char* one, const char* other, const char* why) const {
    if (given(one) && given(other))
      throw InputError(std::string(one) + " and " + other + " do not go together: " + why);
  }

  void agree() {
    if (!given("--model")) throw InputError("--model is missing: the path of a GGUF file; see --help");
    inputs();
    only(o_.sampling.drawn(), {"--top-k", "--top-p", "--min-p", "--seed"},
         "is of drawn tokens; give --temperature above 0 as well");
    only(o_.compare, {"--repeat", "--epsilon", "--cost-model"}, "is of --compare; give that as well");
    only(given("--profile"), {"--contexts", "--sequences"}, "is of --profile; give that as well");
    std::size_t runs = 0;
    for (const std::string& spec : o_.strategies) runs += replay::make_runs(spec).size();  // refuses unknown ones
    if (runs > 1 && !o_.compare) throw InputError("--strategy names several; only --compare runs more than one");
    never_both("--quiet", "--statistics", "one asks for less on standard error, the other for more");
    one_of({"--compare", "--record", "--profile", "--flips"});
    output_is_nothing_else();
    for (const char* other : {"--record", "--profile", "--flips"})
      for (const char* name : {"--strategy", "--leaves", "--cost", "--statistics"})
        never_both(other, name, "nothing is drafted there");
    for (const char* other : {"--record", "--profile"}) never_both(other, "--format", "what it prints has one form");
    only(o_.sampling.plain(), {"--record", "--flips", "--profile"},
         "is of the likeliest tokens; leave out --temperature and --repeat-penalty");
    if (o_.flips && !given("--trace")) throw InputError("--flips runs over the tokens of a recording; give --trace");
    if (given("--profile")) return make_room_for_profile();
    o_.engine.sequences = static_cast<std::uint32_t>(o_.leaves);
    if (o_.engine.batch < o_.leaves + 33)
      throw InputError("--batch " + std::to_string(o_.engine.batch) +
                       ": a pass has up to 33 rows and one for each leaf more; give " + std::to_string(o_.leaves + 33) +
                       " or more");
  }

  void one_of(std::initializer_list<const char*> modes) const {
    std::string names;
    for (const char* name : modes)
      if (given(name)) {
        if (!names.empty()) throw InputError(names + " and " + name + " do not go together: each is a run of its own");
        names = name;
      }
  }

  /// --output replaces what was there.
  void output_is_nothing_else() const {
    if (!given("--output")) return;
    std::vector<std::string> others = {o_.engine.model, o_.inputs.prompt_file, o_.record, o_.profile,
                                       o_.cost,         o_.cost_model};
    for (const auto* files : {&o_.inputs.prompts, &o_.inputs.traces})
      others.insert(others.end(), files->begin(), files->end());
    if (std::find(others.begin(), others.end(), o_.output) != others.end())
      throw InputError("--output " + o_.output + ": is given for something else as well; give a file of its own");
  }

  /// Measuring needs a cache for each sequence, and llama.cpp counts the tokens of all of them.
  void make_room_for_profile() {
    const std::size_t longest = *std::max_element(o_.contexts.begin(), o_.contexts.end());
    const std::size_t most = *std::max_element(o_.sequences.begin(), o_.sequences.end());
    o_.engine.sequences = static_cast<std::uint32_t>(most);
    o_.engine.unified = false;
    if (!given("--context")) o_.engine.context = static_cast<std::uint32_t>(most * (longest + 256));
    if (!given("--batch")) o_.engine.batch = static_cast<std::uint32_t>(std::max<std::size_t>(512, 33 * most));
  }

  void inputs() {
    std::string names;
    int kinds = 0;
    for (const char* name : {"--prompt", "--prompt-file", "--prompts", "--trace"})
      if (given(name)) names += (kinds++ > 0 ? " and " : "") + std::string(name);
    if (given("--profile")) {
      if (kinds != 0) throw InputError("--profile measures passes over made-up tokens; leave out " + names);
      for (const char* name : {"--system", "--raw", "--max-tokens", "--limit"})
        never_both("--profile", name, "it measures passes over made-up tokens");
      return;
    }
    if (kinds == 0) throw InputError("nothing to generate: give --prompt, --prompt-file, --prompts or --trace");
    if (kinds > 1) throw InputError(names + " do not go together: give one of them");
    only(!given("--prompts") && !given("--trace"), {"--system"},
         "goes with --prompt and --prompt-file; files of sessions say it themselves");
    only(!given("--trace"), {"--raw", "--max-tokens"}, "is of text; a trace has tokens, and says how many follow");
    never_both("--system", "--raw", "only a chat template has a place for a system text; write it into the prompt");
    only(given("--prompts") || given("--trace"), {"--limit"}, "is of files of sessions: --prompts and --trace");
  }

  std::span<const std::string> arguments_;
  std::size_t at_ = 0;
  Options o_ = [] {
    Options options;
    options.engine.context = 4096;
    return options;
  }();
  std::vector<std::string>* files_ = nullptr;  // that further arguments belong to
  std::set<std::string> given_;
  const std::map<std::string, bool*> flags_ = {{"--raw", &o_.inputs.raw}, {"--compare", &o_.compare},
                                               {"--flips", &o_.flips},    {"--statistics", &o_.statistics},
                                               {"--quiet", &o_.quiet},    {"--verbose", &o_.engine.verbose},
                                               {"--help", &o_.help},      {"--version", &o_.version}};
  const std::map<std::string, Take> with_value_ = {
      {"--model", text(o_.engine.model)},
      {"--prompt", text(o_.inputs.prompt)},
      {"--prompt-file", text(o_.inputs.prompt_file)},
      {"--prompts", list(o_.inputs.prompts)},
      {"--trace", list(o_.inputs.traces)},
      {"--system", text(o_.inputs.system)},
      {"--strategy", [this](const auto&, const auto& value) { o_.strategies.push_back(value); }},
      {"--cost", text(o_.cost)},
      {"--cost-model", text(o_.cost_model)},
      {"--max-tokens", number(o_.inputs.max_tokens, 1, 1 << 20)},
      {"--limit", number(o_.inputs.limit, 1, std::size_t{1} << 40)},
      {"--context", number(o_.engine.context, 0, 1 << 30)},
      {"--batch", number(o_.engine.batch, 1, 1 << 20)},
      {"--threads", number(o_.engine.threads, 1, 1024)},
      {"--temperature", number(o_.sampling.temperature, 0, 100, "from 0 to 100")},
      {"--top-k", number(o_.sampling.top_k, 0, 1 << 30)},
      {"--top-p", number(o_.sampling.top_p, 0, 1, "from 0 to 1")},
      {"--min-p", number(o_.sampling.min_p, 0, 1, "from 0 to 1")},
      {"--repeat-penalty", number(o_.sampling.repeat_penalty, 0.01, 100, "from 0.01 to 100; 1 is none")},
      {"--seed", number(o_.sampling.seed, 0, 0xFFFFFFFE)},  // the next one asks llama.cpp for any seed
      {"--leaves", number(o_.leaves, 1, 64)},
      {"--repeat", number(o_.repeat, 1, 1000)},
      {"--epsilon", number(o_.epsilon, 0, 10, "of logits, from 0 to 10")},
      {"--record", text(o_.record)},
      {"--contexts", numbers(o_.contexts, 1, 1 << 20)},
      {"--sequences", numbers(o_.sequences, 1, 64)},
      {"--profile", text(o_.profile)},
      {"--output", text(o_.output)},
      {"--format", [this](const auto& name, const auto& value) {
         if (value != "table" && value != "json") throw InputError(name + " " + value + ": there are table and json");
         o_.format = value == "json" ? Format::json : Format::table;
       }}};
};

}  // namespace

Options parse_options(std::span<const std::string> arguments) { return Reader(arguments).read(); }

}  // namespace reprise::llama
