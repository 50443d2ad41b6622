// SPDX-License-Identifier: Apache-2.0
// Every drafter of the library on the same text, with the sentence that says when to use it. AnyStrategy holds a
// drafter that is chosen at run time.
#include "player.hpp"

#include <reprise/extras/best_of.hpp>
#include <reprise/extras/lookahead_drafter.hpp>
#include <reprise/extras/repetition_gate.hpp>
#include <reprise/extras/rest_drafter.hpp>
#include <reprise/extras/token_recycling_drafter.hpp>
#include <reprise/extras/token_table_drafter.hpp>
#include <reprise/reprise.hpp>

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

using reprise::AnyStrategy;
using reprise::PromptLookupDrafter;
using reprise::PromptLookupOptions;

const std::string verse = "the owl and the pussycat went to sea in a beautiful pea green boat. ";
const std::string text = verse + "they took some honey and plenty of money. " + verse + "the owl looked up. " + verse;
constexpr std::size_t prompt = 20;

// Decodes the text, and returns the mean number of tokens per pass; 0 if a token is wrong.
double decode(AnyStrategy drafter) {
  const reprise::CostOptions costs{.curve = reprise::CostCurve::linear(0.02)};
  reprise::Session<AnyStrategy, reprise::CostControl> session(std::move(drafter), reprise::CostControl(costs));
  Player engine(text, prompt);
  const auto generated =
      reprise::generate(session, engine, to_tokens(text.substr(0, prompt)), reprise::Limits{.eos = {0}});
  if (!generated || generated->finish != reprise::FinishReason::eos) return 0;
  if (generated->tokens.size() != text.size() - prompt) return 0;
  return generated->statistics.mean_accepted_tokens();
}

bool plays(const char* name, const char* use, AnyStrategy drafter) {
  const double mean = decode(std::move(drafter));
  std::printf("%-24s %5.2f   %s\n", name, mean, use);
  return mean >= 1;
}

PromptLookupDrafter<> lookup(const PromptLookupOptions& options) { return *PromptLookupDrafter<>::make(options); }

}  // namespace

int main() {
  bool all = true;
  std::puts("drafter                  tokens per pass, use it");
  all &= plays("NoDrafter", "as the baseline: plain decoding", reprise::NoDrafter());
  all &= plays("NgramDrafter", "by default: every match votes, and each token has a probability",
               reprise::NgramDrafter<>(reprise::NgramOptions{}));
  all &= plays("PromptLookupDrafter", "if drafting must cost next to nothing: one match, a fixed length",
               lookup({.max_ngram = 3, .occurrence = PromptLookupOptions::Occurrence::most_recent, .draft_length = 8}));
  all &= plays("a preset", "to draft exactly what another engine drafts", lookup(reprise::presets::vllm()));
  all &= plays("with a suffix array", "to find each longest match, whatever its length",
               *PromptLookupDrafter<reprise::SuffixArrayIndex>::make());

  // Combinations.
  all &= plays("FirstMatch", "if one drafter is right whenever it drafts, and another should draft otherwise",
               reprise::FirstMatch(lookup({.min_ngram = 6}), reprise::NgramDrafter<>(reprise::NgramOptions{})));
  all &= plays("UnionDrafter", "to merge the drafts of several drafters into one tree",
               reprise::UnionDrafter(lookup({}), reprise::NgramDrafter<>(reprise::NgramOptions{})));
  all &= plays("BestOf", "to use the best draft of several, for engines that verify only chains",
               reprise::BestOf(lookup({}), reprise::NgramDrafter<>(reprise::NgramOptions{})));

  // Extras: methods of other systems.
  reprise::RepetitionGateOptions gate;
  gate.prompt_only = false;  // the output counts too
  all &= plays("RepetitionGate", "to draft only where the text repeats itself",
               *reprise::RepetitionGate<PromptLookupDrafter<>>::make(lookup({}), gate));
  all &= plays("LookaheadDrafter", "if rows are free: n-grams from the model's own guesses",
               *reprise::LookaheadDrafter::make(reprise::LookaheadOptions{.ngram = 3}));
  all &= plays("TokenRecyclingDrafter", "if the engine shows its likeliest tokens for each row",
               *reprise::TokenRecyclingDrafter::make(reprise::TokenRecyclingOptions{.candidates = 4}));

  auto table = reprise::TokenTable::make(reprise::TokenTableOptions{.bytes = std::size_t{1} << 16});
  table->learn(to_tokens(text), 0);  // an earlier request
  const reprise::TokenTable::Counts counts = table->counts();
  all &= counts.added > 0 && plays("TokenTableDrafter", "to share one table of constant size between all requests",
                                   reprise::TokenTableDrafter(&*table, reprise::TokenTableDrafterOptions{}));

  auto past = reprise::HistoryStore::make({.max_bytes = 1 << 20});
  past->begin_sequence(1);
  past->append(to_tokens(text), reprise::Origin::output);
  past->end_sequence();
  all &= plays("RestDrafter", "to draft from a large text by the shares of its continuations",
               *reprise::RestDrafter::make(reprise::RestOptions{.store = *past}));
  return all ? 0 : 1;
}
