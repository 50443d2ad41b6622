// SPDX-License-Identifier: Apache-2.0
// The drafters that need only text, and their combinations, on the same short text. Others have programs of their own:
// predicted_output.cpp, draft_model.cpp, hybrid.cpp (a draft head) and json_grammar.cpp (forced tokens).
#include "player.hpp"

#include <reprise/draft/external_drafter.hpp>
#include <reprise/draft/prompt_lookup_drafter.hpp>
#include <reprise/draft/union_drafter.hpp>
#include <reprise/history.hpp>
#include <reprise/index/suffix_array.hpp>
#include <reprise/reprise.hpp>
#include <reprise_methods/best_of.hpp>
#include <reprise_methods/lookahead_drafter.hpp>
#include <reprise_methods/repetition_gate.hpp>
#include <reprise_methods/rest_drafter.hpp>
#include <reprise_methods/token_recycling_drafter.hpp>
#include <reprise_methods/token_table_drafter.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

// The functions that a drafter may have besides those of DraftStrategy. A wrong signature is no error, so assert that
// those of your drafter are found.
using Default = reprise::NgramDrafter<>;
static_assert(reprise::ReservableStrategy<Default>);  // memory is allocated before decoding begins
static_assert(reprise::RebasableStrategy<Default>);   // it keeps its evidence when the context is replaced
static_assert(reprise::MeasurableStrategy<Default>);  // it reports its memory
static_assert(reprise::CalibratedStrategy<Default>);  // its probabilities are learned from the accepted tokens
static_assert(reprise::TopKLearner<Default> && reprise::RowLearner<Default>);  // it learns from rankings
static_assert(reprise::DistributionStrategy<reprise::ExternalDrafter>);  // its drafts can be drawn from a distribution

using reprise::PromptLookupDrafter;
using reprise::PromptLookupOptions;

const std::string verse = "the owl and the pussycat went to sea in a beautiful pea green boat. ";
const std::string text = verse + "they took some honey and plenty of money. " + verse + "the owl looked up. " + verse;
const std::string earlier = "once upon a time, " + verse + "the end. ";  // an earlier request
constexpr std::size_t prompt = 20;

// Decodes the text, and prints the mean number of tokens per pass. Returns false if a token is wrong.
template <class Session>
bool plays(const char* name, const char* use, Session session) {
  Player engine(text, prompt);
  const auto generated =
      reprise::generate(session, engine, to_tokens(text.substr(0, prompt)), reprise::Limits{.eos = {0}});
  if (!generated || generated->finish != reprise::FinishReason::eos) return false;
  std::printf("%-22s %5.2f   %s\n", name, generated->statistics.mean_accepted_tokens(), use);
  return std::string(generated->tokens.begin(), generated->tokens.end()) == text.substr(prompt);
}

// A draft as long as it pays, if each drafted token costs 2% of a pass.
template <class Drafter>
auto as_it_pays(Drafter drafter) {
  return reprise::speculator_with(std::move(drafter), {.curve = reprise::CostCurve::linear(0.02)});
}

PromptLookupDrafter<> lookup(const PromptLookupOptions& options) { return *PromptLookupDrafter<>::make(options); }

}  // namespace

int main() {
  using Ngram = reprise::NgramDrafter<>;
  bool all = true;
  std::puts("The figures show that each drafter works. The text is too short to rank them.\n");
  std::puts("drafter                tokens per pass, use it");
  all &= plays("NoDrafter", "as the baseline: plain decoding", as_it_pays(reprise::NoDrafter()));
  all &= plays("NgramDrafter", "by default: every match votes, and each token has a probability", as_it_pays(Ngram()));
  // Lookups state no probabilities. Their own length is sent whole, because a Session without a control sends all.
  all &= plays("PromptLookupDrafter", "if drafting must cost next to nothing: one match, a fixed length",
               reprise::Session(lookup(
                   {.max_ngram = 3, .occurrence = PromptLookupOptions::Occurrence::most_recent, .draft_length = 8})));
  all &= plays("a preset", "to draft exactly what another engine drafts",
               reprise::Session(lookup(reprise::presets::vllm())));
  all &= plays("with a suffix array", "to find each longest match, whatever its length",
               reprise::Session(*PromptLookupDrafter<reprise::SuffixArrayIndex>::make()));

  // Combinations. UnionDrafter makes trees for engines that verify them, and chains for this one.
  all &= plays("FirstMatch", "if one drafter is right whenever it drafts, and another should draft otherwise",
               as_it_pays(reprise::FirstMatch(lookup({.min_ngram = 6}), Ngram())));
  all &= plays("UnionDrafter", "to merge the drafts of several drafters",
               as_it_pays(reprise::UnionDrafter(lookup({}), Ngram())));
  all &= plays("BestOf", "to use the best draft of several, for engines that verify only chains",
               as_it_pays(reprise::BestOf(lookup({}), Ngram())));

  // Extras: methods of other systems.
  reprise::RepetitionGateOptions gate;
  gate.prompt_only = false;  // the output counts too
  all &= plays("RepetitionGate", "to draft only where the text repeats itself",
               as_it_pays(*reprise::RepetitionGate<Ngram>::make(Ngram(), gate)));
  all &= plays("LookaheadDrafter", "if rows are free: n-grams from the model's own guesses",
               as_it_pays(*reprise::LookaheadDrafter::make(reprise::LookaheadOptions{.ngram = 3})));
  all &= plays("TokenRecyclingDrafter", "if the engine shows its likeliest tokens for each row",
               as_it_pays(*reprise::TokenRecyclingDrafter::make(reprise::TokenRecyclingOptions{.candidates = 4})));

  auto table = reprise::TokenTable::make(reprise::TokenTableOptions{.bytes = std::size_t{1} << 16});
  table->learn(to_tokens(earlier), 0);
  const reprise::TokenTable::Counts counts = table->counts();
  all &=
      counts.added > 0 && plays("TokenTableDrafter", "to share one table of constant size between all requests",
                                as_it_pays(reprise::TokenTableDrafter(&*table, reprise::TokenTableDrafterOptions{})));

  auto past = reprise::HistoryStore::make({.max_bytes = 1 << 20});
  past->begin_sequence(1);
  past->append(to_tokens(earlier), reprise::Origin::output);
  past->end_sequence();
  all &= plays("RestDrafter", "to draft from a large text by the shares of its continuations",
               reprise::Session(*reprise::RestDrafter::make(reprise::RestOptions{.store = *past})));
  return all ? 0 : 1;
}
