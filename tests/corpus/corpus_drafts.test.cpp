// SPDX-License-Identifier: Apache-2.0
// Drafting from a corpus, alone and together with a history.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise_corpus/corpus_store.hpp"
#include "reprise_testing/lossless.hpp"
#include "reprise_testing/random.hpp"
#include "support/corpora.hpp"
#include "support/ngram_world.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::corpus_drafts_test {
namespace {

using testing::corpus_of;
using testing::CorpusBytes;
using testing::Documents;
using testing::Random;
using Tokens = std::vector<Token>;

/// Returns the tokens that the scripted engine generates after this prompt.
Tokens answer_of(const testing::ScriptedOptions& script, const Tokens& prompt, std::size_t size) {
  const auto make = [&](TokenSpan tokens) { return testing::ScriptedVerifier(script, tokens); };
  Limits limits;
  limits.max_tokens = size;
  return testing::compare_lossless(make, prompt, limits, NgramDrafter<>()).plain.output;
}

TEST(CorpusDrafts, NeverChangeTheOutput) {
  std::size_t from_stores = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    testing::ScriptedOptions script;
    script.seed = seed;
    const std::size_t alphabet = 2 + random.below(30);
    script.vocabulary = static_cast<Token>(alphabet);
    Documents documents = testing::random_documents(random, 10, 60, alphabet);
    Tokens prompt;
    for (std::size_t i = 0; i < 8; ++i) prompt.push_back(static_cast<Token>(random.below(alphabet)));
    // Half of the corpora hold the answer, or a part of it.
    const Tokens answer = answer_of(script, prompt, 60);
    if (random.chance(50)) documents.push_back(answer);
    for (Tokens& document : documents) std::erase_if(document, [](Token token) { return token < 0; });
    std::uint32_t vocabulary = 1;
    for (const Tokens& document : documents)
      for (const Token token : document) vocabulary = std::max(vocabulary, static_cast<std::uint32_t>(token) + 1);
    const CorpusBytes bytes = corpus_of(documents, vocabulary, 0, random.chance(50));
    const CorpusStore store = CorpusStore::open(bytes).value();
    HistoryStore history = HistoryStore::make({.max_bytes = HistoryStore::bytes_for(4096)}).value();
    history.append(TokenSpan(answer).first(answer.size() / 2), Origin::output);
    history.end_sequence();
    NgramOptions options;
    if (random.chance(50))
      options.stores = {history, store};
    else
      options.stores = {store, store, history};
    const auto make = [&](TokenSpan tokens) { return testing::ScriptedVerifier(script, tokens); };
    Limits limits;
    limits.max_tokens = 60;
    const auto report = testing::compare_lossless(make, prompt, limits, NgramDrafter<>(options));
    EXPECT_TRUE(report.identical()) << "seed " << seed << ": " << report.message;
    EXPECT_EQ(report.drafted.output, answer);
    from_stores += report.drafted.statistics.tokens - report.drafted.statistics.passes;
  }
  EXPECT_GT(from_stores, 0U);
}

}  // namespace
}  // namespace reprise::corpus_drafts_test
