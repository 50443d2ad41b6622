// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "engine.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_methods/best_of.hpp"
#include "reprise_testing/report.hpp"

// A header of each part is found.
static_assert(reprise::DraftStrategy<reprise::BestOf<reprise::NgramDrafter<>, reprise::PromptLookupDrafter<>>>);
static_assert(reprise::Datastore<reprise::CorpusStore> && sizeof(reprise::testing::Report) > 0);

int main() {
  Engine engine;
  reprise::Speculator session;
  const std::vector<reprise::Token> prompt = {'>'};
  reprise::Limits limits;
  limits.max_tokens = 200;
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return std::puts(generated.error().message.data()), 1;

  const std::vector<reprise::Token> drafted(generated->tokens.begin(), generated->tokens.end());
  const bool same = drafted == decode_plain(200);
  const double mean = generated->statistics.mean_accepted_tokens();
  std::printf("reprise %s: %zu tokens, %.2f a pass, %s plain decoding\n", reprise::version_string.data(),
              drafted.size(), mean, same ? "the same as" : "not the same as");
  return same && drafted.size() == 200 && mean > 2 ? 0 : 1;
}
