// SPDX-License-Identifier: Apache-2.0
#include "strategies.hpp"

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "peers/adaptive_lookup.hpp"
#include "peers/published_token_recycling_drafter.hpp"
#include "peers/racer_drafter.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise_methods/rest_drafter.hpp"
#include "reprise_methods/token_table.hpp"
#include "reprise_methods/token_table_drafter.hpp"
#include "support/hostile_strategy.hpp"
#include "support/naive_index.hpp"
#include "table_strategy.hpp"

namespace reprise::replay {
namespace {

using testing::NaiveIndex;

constexpr std::int64_t longest_ngram = NgramOrders::largest;
constexpr std::string_view of_preset = "preset";  // the key keeps the value of the preset

KeyInfo index_key() {
  return {"index",
          "rolling_hash",
          "index of earlier text; the drafts are the same",
          0,
          0,
          {"rolling_hash", "suffix_array", "naive"}};
}
KeyInfo length_key(std::string_view name, std::string_view default_value) {
  return {name, default_value, "most tokens drafted", 0, most_draft_nodes};
}
KeyInfo ngram_key(std::string_view name, std::string_view default_value, std::string_view meaning,
                  std::int64_t most = longest_ngram) {
  return {name, default_value, meaning, 1, most};
}

template <class Index>
AnyStrategy drafter_over(const PromptLookupOptions& options) {
  auto made = PromptLookupDrafter<Index>::make(options);
  if (!made) {
    const Error& error = made.error();
    throw tools::InputError(std::string(error.message) + " (" + std::to_string(error.value) + ", limit " +
                            std::to_string(error.limit) + ")");
  }
  return *std::move(made);
}
AnyStrategy drafter(const Settings& settings, const PromptLookupOptions& options) {
  const std::string_view index = settings.word("index");
  if (index == "suffix_array") return drafter_over<SuffixArrayIndex>(options);
  if (index == "naive") return drafter_over<NaiveIndex>(options);
  return drafter_over<RollingHashIndex>(options);
}

std::uint32_t ngram(const Settings& settings, std::string_view key) {
  return static_cast<std::uint32_t>(settings.number(key));
}
std::size_t length(const Settings& settings, std::string_view key) {
  return static_cast<std::size_t>(settings.number(key));
}

AnyStrategy make_ngram(const Settings& settings, Past* past) {
  NgramOptions options;
  if (settings.word("rows") == "no") options.top_k = 0;
  if (past != nullptr) options = past->memory->options(0, options);
  if (settings.word("next_tokens") != "yes") options.next_tokens = nullptr;
  std::size_t stores = options.stores[0].empty() ? 0 : 1;
  for (const DatastoreRef& store : settings.stores)
    if (stores < NgramOptions::max_stores) options.stores[stores++] = store;
  const std::string_view index = settings.word("index");
  if (index == "suffix_array") return NgramDrafter<SuffixArrayIndex>(options);
  if (index == "naive") return NgramDrafter<NaiveIndex>(options);
  return NgramDrafter<RollingHashIndex>(options);
}
AnyStrategy make_copy(const Settings& settings, Past*) {
  PromptLookupOptions options;
  options.min_ngram = ngram(settings, "min_ngram");
  options.max_ngram = ngram(settings, "max_ngram");
  if (options.min_ngram > options.max_ngram)
    throw tools::InputError("min_ngram is larger than max_ngram (" + std::to_string(options.min_ngram) + ", limit " +
                            std::to_string(options.max_ngram) + ")");
  options.draft_length = length(settings, "k");
  options.candidates = ngram(settings, "candidates");
  options.copy_past_end = settings.word("past_end") == "yes";
  const std::string_view prefer = settings.word("prefer");
  options.occurrence = prefer == "earliest"   ? PromptLookupOptions::Occurrence::earliest
                       : prefer == "frequent" ? PromptLookupOptions::Occurrence::most_frequent
                                              : PromptLookupOptions::Occurrence::most_recent;
  return drafter(settings, options);
}
AnyStrategy make_pld(const Settings& settings, Past*) {
  return drafter(settings, presets::prompt_lookup(ngram(settings, "n"), length(settings, "k")));
}
AnyStrategy make_hf(const Settings& settings, Past*) {
  return drafter(settings, presets::hugging_face(ngram(settings, "n"), length(settings, "k")));
}
AnyStrategy make_vllm(const Settings& settings, Past*) {
  const std::int64_t lengths = settings.number("max") - settings.number("min") + 1;
  if (lengths < 1) throw tools::InputError("min is larger than max");
  if (lengths > static_cast<std::int64_t>(NgramOrders::capacity))
    throw tools::InputError("min to max are " + std::to_string(lengths) + " n-gram lengths; at most " +
                            std::to_string(NgramOrders::capacity) + " can be looked up");
  return drafter(settings, presets::vllm(ngram(settings, "min"), ngram(settings, "max"), length(settings, "k")));
}
AnyStrategy make_ngram_simple(const Settings& settings, Past*) {
  return drafter(settings, presets::llama_cpp_simple(ngram(settings, "n"), length(settings, "m")));
}
AnyStrategy make_ds4(const Settings& settings, Past*) {
  std::optional<Token> eos;
  if (settings.word("eos") != "none") eos = static_cast<Token>(settings.number("eos"));
  return drafter(settings, presets::ds4(ngram(settings, "n"), length(settings, "k"), eos));
}
AnyStrategy make_hostile(const Settings& settings, Past*) {
  return testing::HostileStrategy(static_cast<std::uint64_t>(settings.number("seed")));
}
AnyStrategy make_adaptive(const Settings&, Past*) { return peers::AdaptiveLookup(); }
AnyStrategy make_none(const Settings&, Past*) { return NoDrafter(); }

AnyStrategy make_token_table(const Settings& settings, Past* past) {
  const std::string_view preset = settings.word("preset");
  const bool llama = preset == "llama.cpp";
  const bool mlx = preset == "mlx-lm";
  TokenTableOptions table = llama ? presets::llama_cpp_mod_table()
                            : mlx ? presets::mlx_lm_mod_table()
                                  : TokenTableOptions();
  TokenTableDrafterOptions options = llama ? presets::llama_cpp_mod(nullptr)
                                     : mlx ? presets::mlx_lm_mod(nullptr)
                                           : TokenTableDrafterOptions();
  const auto given = [&](std::string_view key) { return settings.word(key) != of_preset; };
  if (given("n")) table.ngram = ngram(settings, "n");
  if (given("min")) options.min_draft = length(settings, "min");
  if (given("k")) options.max_draft = length(settings, "k");
  table.bytes = length(settings, "bytes");
  if (past == nullptr) return TableStrategy(table, options, nullptr);
  if (past->table == nullptr) past->table = make_table(table);
  return TableStrategy(table, options, past->table);
}

AnyStrategy make_token_recycling(const Settings&, Past* past) {
  if (past != nullptr && past->strategy) return *past->strategy;
  return peers::PublishedTokenRecyclingDrafter();
}

AnyStrategy make_racer(const Settings& settings, Past* past) {
  if (past != nullptr && past->strategy) return *past->strategy;
  peers::RacerOptions options;
  options.nodes = length(settings, "nodes");
  options.ngram = length(settings, "ngram");
  options.trie_nodes = length(settings, "trie");
  options.refill = settings.word("refill") == "yes";
  return peers::RacerDrafter::make(options).value();  // the keys have the same limits
}

/// The datastore of methods that draft from nothing else: the first corpus, or the past. Empty without both.
DatastoreRef datastore_of(const Settings& settings, const Past* past) {
  if (!settings.stores.empty()) return settings.stores.front();
  return past == nullptr ? DatastoreRef() : past->memory->options().stores[0];
}

AnyStrategy make_rest(const Settings& settings, Past* past) {
  RestOptions options;
  options.store = datastore_of(settings, past);
  options.nodes = length(settings, "nodes");
  options.max_ngram = length(settings, "max_ngram");
  options.min_ngram = length(settings, "min_ngram");
  options.places = length(settings, "places");
  options.continuation = length(settings, "k");
  options.cut = settings.word("cut") == "yes";
  if (options.min_ngram > options.max_ngram)
    throw tools::InputError("min_ngram is larger than max_ngram (" + std::to_string(options.min_ngram) + ", limit " +
                            std::to_string(options.max_ngram) + ")");
  return RestDrafter::make(options).value();  // the keys have the same limits
}

/// The strategies of this library.
std::vector<StrategyInfo> own_strategies() {
  return {
      {"ngram",
       "recommended by the library: drafts from earlier matches, with learned probabilities",
       {{"index",
         "rolling_hash",
         "index of earlier text; suffix_array drafts less",
         0,
         0,
         {"rolling_hash", "suffix_array", "naive"}},
        {"next_tokens",
         "yes",
         "uses the counts and rankings of earlier sessions, if there are some",
         0,
         0,
         {"yes", "no"}},
        {"rows", "yes", "uses the top-k rows of the target, if it shows some", 0, 0, {"yes", "no"}}},
       ControlKind::cost,
       &make_ngram,
       Remembers::sequences},
      {"copy",
       "copies the tokens after the longest earlier match, always as many as allowed",
       {index_key(),
        ngram_key("min_ngram", "1", "shortest n-gram looked up"),
        ngram_key("max_ngram", "16", "longest agreement that counts"),
        length_key("k", "10"),
        {"prefer", "recent", "choice among equally long matches", 0, 0, {"recent", "earliest", "frequent"}},
        {"candidates", "24", "matches compared for each n-gram length", 1, 64},
        {"past_end", "yes", "a copy that reaches the end continues with its own tokens", 0, 0, {"yes", "no"}}},
       ControlKind::all,
       &make_copy},
  };
}

/// Prompt lookup as implemented by other systems.
std::vector<StrategyInfo> lookup_presets() {
  using Range = std::numeric_limits<Token>;
  return {
      {"pld",
       "prompt lookup decoding as first published: the first match with k tokens after it",
       {ngram_key("n", "3", "longest n-gram looked up", 8), length_key("k", "10"), index_key()},
       ControlKind::all,
       &make_pld},
      {"hf",
       "Hugging Face transformers' prompt lookup: the first match",
       {ngram_key("n", "3", "longest n-gram looked up", 8), length_key("k", "10"), index_key()},
       ControlKind::all,
       &make_hf},
      {"vllm",
       "vLLM's ngram proposer: the first match of the longest n-gram",
       {ngram_key("min", "2", "shortest n-gram looked up"), ngram_key("max", "5", "longest n-gram looked up"),
        length_key("k", "5"), index_key()},
       ControlKind::all,
       &make_vllm},
      {"ngram-simple",
       "llama.cpp's ngram-simple: the most recent match with n tokens after it",
       {ngram_key("n", "3", "n-gram looked up"), length_key("m", "10"), index_key()},
       ControlKind::all,
       &make_ngram_simple},
      {"ds4",
       "ds4's lookup: the most recent match, cut after an end-of-sequence token",
       {ngram_key("n", "4", "n-gram looked up"),
        length_key("k", "7"),
        {"eos", "none", "end-of-sequence token, or none", Range::min(), Range::max(), {}, "none"},
        index_key()},
       ControlKind::all,
       &make_ds4},
      {"adaptive",
       "a rival that no system ships: the latest longest match, and as many tokens as pay",
       {},
       ControlKind::marginal,
       &make_adaptive},
  };
}

/// Methods that draft from the target's top-k rows, with the rules of their authors.
std::vector<StrategyInfo> ranked_methods() {
  return {
      {"token-recycling",
       "Token Recycling as published: a tree of 80 nodes, from the target's top-k rows",
       {},
       ControlKind::all,
       &make_token_recycling,
       Remembers::strategy,
       peers::PublishedTokenRecyclingDrafter::max_nodes},
      {"racer",
       "RACER as published: retrieval from a trie of n-grams, then the target's top-k rows",
       {{"nodes", "63", "most tokens drafted", 1, peers::RacerDrafter::max_nodes},
        {"ngram", "10", "length of the n-grams in the trie", 2, longest_ngram},
        {"trie", "10000", "nodes of the trie", longest_ngram + 2, std::int64_t{1} << 24},
        {"refill", "yes", "fills the draft up to its size (SGLang's port)", 0, 0, {"yes", "no"}}},
       ControlKind::all,
       &make_racer,
       Remembers::strategy,
       peers::RacerDrafter::max_nodes},
  };
}

/// Methods that draft from a datastore alone, with the rules of their authors.
std::vector<StrategyInfo> retrieval_methods() {
  return {
      {"rest",
       "REST as published: the most frequent continuations in a corpus or past sessions",
       {{"nodes", "64", "most tokens drafted", 1, RestDrafter::max_nodes},
        ngram_key("max_ngram", "16", "longest suffix looked up"),
        ngram_key("min_ngram", "2", "shortest suffix looked up"),
        {"places", "5000", "most places of a suffix; a history finds at most 12", 1, 65'536},
        {"k", "10", "tokens read at a place", 1, 64},
        {"cut", "no", "cuts the draft as in the authors' repository", 0, 0, {"yes", "no"}}},
       ControlKind::all,
       &make_rest,
       Remembers::sequences,
       RestDrafter::max_nodes},
  };
}

std::vector<StrategyInfo> other_strategies() {
  return {
      {"token-table",
       "a hash table: the last n tokens to the next one (ngram-mod of llama.cpp, mlx-lm)",
       {{"preset", "none", "settings of another system", 0, 0, {"none", "llama.cpp", "mlx-lm"}},
        {"n", of_preset, "tokens that determine the next one", 1, longest_ngram, {}, of_preset},
        {"min", of_preset, "drafts with fewer tokens are dropped", 1, 64, {}, of_preset},
        {"k", of_preset, "most tokens drafted", 0, 64, {}, of_preset},
        {"bytes", "16777216", "size of the table, 8 bytes per n-gram", 1024, std::int64_t{1} << 36}},
       ControlKind::all,
       &make_token_table,
       Remembers::ngrams},
      {"hostile",
       "for checks: drafts many kinds of garbage with arbitrary probabilities",
       {{"seed", "1", "seed of the garbage", 1, 1'000'000}},
       ControlKind::all,
       &make_hostile},
      {"none", "no drafting: plain decoding", {}, ControlKind::all, &make_none},
  };
}

/// All strategies, in the order of --list.
std::vector<StrategyInfo> registry() {
  std::vector<StrategyInfo> all;
  for (const auto& group :
       {own_strategies(), lookup_presets(), ranked_methods(), retrieval_methods(), other_strategies()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

/// A description of the values that a key accepts, for messages.
std::string range(const KeyInfo& key) {
  if (key.words.empty()) {
    const std::string numbers = "a whole number from " + std::to_string(key.least) + " to " + std::to_string(key.most);
    return key.no_number.empty() ? numbers : numbers + ", or " + std::string(key.no_number);
  }
  std::string all;
  for (const std::string_view word : key.words) all += (all.empty() ? "" : ", ") + std::string(word);
  return all;
}

bool fits(const KeyInfo& key, std::string_view value) {
  if (!key.words.empty()) {
    for (const std::string_view word : key.words)
      if (word == value) return true;
    return false;
  }
  if (!key.no_number.empty() && value == key.no_number) return true;
  const auto number = tools::parse_integer(value);
  return number && *number >= key.least && *number <= key.most;
}

const StrategyInfo& find(const Spec& spec) {
  std::string names;
  for (const StrategyInfo& info : strategies()) {
    if (info.name == spec.name) return info;
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  throw tools::InputError("--strategy " + spec.text() + ": there is no strategy " + spec.name + "; the choices are " +
                          names);
}

Settings settings_of(const StrategyInfo& info, const Spec& spec) {
  Settings settings;
  std::string names;
  for (const KeyInfo& key : info.keys) {
    settings.set(key.name, std::string(key.default_value));
    names += (names.empty() ? "" : ", ") + std::string(key.name);
  }
  for (const auto& [name, value] : spec.settings) {
    const KeyInfo* key = nullptr;
    for (const KeyInfo& candidate : info.keys)
      if (candidate.name == name) key = &candidate;
    if (key == nullptr)
      throw tools::InputError("--strategy " + spec.text() + ": strategy " + spec.name +
                              (names.empty() ? " has no settings, so no '" + name + "'"
                                             : " has no setting '" + name + "'; its settings are: " + names));
    if (!fits(*key, value))
      throw tools::InputError("--strategy " + spec.text() + ": " + name + "=" + value + ": expected " + range(*key));
    settings.set(key->name, value);
  }
  return settings;
}

}  // namespace

std::int64_t Settings::number(std::string_view key) const {
  return tools::parse_integer(word(key)).value();  // checked by fits()
}

std::span<const StrategyInfo> strategies() {
  static const std::vector<StrategyInfo> all = registry();
  return all;
}

std::vector<StrategyRun> make_runs(std::string_view spec, std::span<const DatastoreRef> stores) {
  std::vector<StrategyRun> runs;
  for (const Spec& one : parse_spec(spec)) {
    const StrategyInfo& info = find(one);
    Settings settings = settings_of(info, one);
    settings.stores.assign(stores.begin(), stores.end());
    // A longer draft that the user asks for is not cut to the usual length.
    std::size_t max_nodes = info.max_nodes;
    for (const KeyInfo& key : info.keys)
      if (key.name == "k" && settings.word("k") != of_preset)
        max_nodes = std::max(max_nodes, static_cast<std::size_t>(settings.number("k")));
    const auto make = [&info, settings, text = one.text()](Past* past) {
      try {
        return info.make(settings, past);
      } catch (const tools::InputError& error) {
        throw tools::InputError("--strategy " + text + ": " + error.what());
      }
    };
    runs.push_back({one.text(), make(nullptr), info.control, info.remembers, max_nodes,
                    [make](Past& past) { return make(&past); }});
  }
  return runs;
}

}  // namespace reprise::replay
