// SPDX-License-Identifier: Apache-2.0
// Ids outside the vocabulary, such as those of images and padding: no strategy drafts them, and no match contains them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise_methods/lookahead_drafter.hpp"
#include "reprise_methods/rest_drafter.hpp"
#include "reprise_methods/token_recycling_drafter.hpp"
#include "reprise_methods/token_table.hpp"
#include "reprise_methods/token_table_drafter.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing::placeholders_test {
namespace {

using Tokens = std::vector<Token>;

constexpr std::uint32_t vocabulary = 1000;

/// Two kinds of placeholders of an engine: all alike, or all different.
constexpr Token above = 200'000;
bool outside(Token token) { return token < 0 || token >= static_cast<Token>(vocabulary); }

/// Repetitive text with runs of placeholders.
Tokens text_of(Random& random, std::size_t size) {
  Tokens tokens;
  while (tokens.size() < size) {
    const std::size_t kind = random.below(4);
    const std::size_t length = 1 + random.below(12);
    for (std::size_t i = 0; i < length; ++i)
      tokens.push_back(kind == 0 ? (random.chance(50) ? -1 : above) : static_cast<Token>(kind * 20 + i));
  }
  return tokens;
}
/// Replaces each placeholder by one that occurs only there.
Tokens distinct(Tokens tokens) {
  Token next = above + 1;
  for (Token& token : tokens)
    if (outside(token)) token = next++;
  return tokens;
}

/// Returns the draft of `strategy` after each of the last 40 tokens of `text`, which are observed as output.
template <DraftStrategy S>
std::vector<Tokens> drafts(S strategy, const Tokens& text, DraftShape shape) {
  std::vector<Tokens> all;
  const std::size_t begin = text.size() - 40;
  strategy.begin(TokenSpan(text).first(begin));
  std::vector<DraftNode> room(64);
  for (std::size_t size = begin; size <= text.size(); ++size) {
    const TokenSpan context = TokenSpan(text).first(size);
    if (size > begin) strategy.observe(context, 1, Origin::output);
    Draft draft(room, {.max_nodes = 16, .shape = shape, .vocabulary = vocabulary});
    strategy.propose(context, draft);
    EXPECT_FALSE(draft.malformed());
    Tokens& tokens = all.emplace_back();
    for (const DraftNode& node : draft.view()) tokens.push_back(node.token);
    Outcome outcome;
    outcome.draft = draft.view();
    strategy.feedback(context, outcome);
  }
  return all;
}

/// Checks that `strategy` drafts something, but no placeholder. If `exact`, the drafts must be the same with
/// placeholders that are all different, so no match contains one.
template <DraftStrategy S>
void check(const std::string& name, const S& strategy, bool exact = true) {
  for (const DraftShape shape : {DraftShape::chain, DraftShape::tree}) {
    Random random(7);
    std::size_t drafted = 0;
    for (int round = 0; round < 40; ++round) {
      const Tokens text = text_of(random, 60 + random.below(400));
      const std::vector<Tokens> all = drafts(S(strategy), text, shape);
      for (const Tokens& draft : all) {
        drafted += draft.size();
        ASSERT_TRUE(std::none_of(draft.begin(), draft.end(), outside)) << name;
      }
      if (exact) {
        ASSERT_EQ(all, drafts(S(strategy), distinct(text), shape)) << name << ", round " << round;
      }
    }
    EXPECT_GT(drafted, 1000U) << name;
  }
}

TEST(Placeholders, AreNeitherDraftedNorMatchedByLookups) {
  check("n-grams", NgramDrafter<>({.vocabulary = vocabulary}));
  check("a suffix array", NgramDrafter<SuffixArrayIndex>({.vocabulary = vocabulary}));
  PromptLookupOptions lookup;
  lookup.vocabulary = vocabulary;
  check("prompt lookup", PromptLookupDrafter<>::make(lookup).value());
  check("prompt lookup in a suffix array", PromptLookupDrafter<SuffixArrayIndex>::make(lookup).value());
  check("a union",
        UnionDrafter(NgramDrafter<>({.vocabulary = vocabulary}), PromptLookupDrafter<>::make(lookup).value()));
}

TEST(Placeholders, AreNeitherDraftedNorMatchedFromTextsOfOthers) {
  Random random(9);
  HistoryStore history = HistoryStore::make({.max_bytes = 1 << 20, .vocabulary = vocabulary}).value();
  auto table = TokenTable::make({.ngram = 2}).value();
  NgramDrafter<> predicted({.vocabulary = vocabulary});
  for (int i = 0; i < 10; ++i) {
    const Tokens text = text_of(random, 400);
    history.begin_sequence(static_cast<std::uint64_t>(i));
    history.append(text, Origin::output);
    history.end_sequence();
    table.learn(text, 2);
    ASSERT_TRUE(predicted.predict(text));
  }
  NgramOptions options{.vocabulary = vocabulary};
  options.stores = {history};
  check("n-grams with a history", NgramDrafter<>(options));
  check("REST", RestDrafter::make({.store = history, .min_ngram = 1}).value());
  check("a table", TokenTableDrafter(&table, {.min_draft = 0, .max_draft = 8}));
  check("a predicted output", predicted);
}

TEST(Placeholders, AreNotDraftedByOtherStrategies) {
  check("lookahead", LookaheadDrafter(), false);
  Random random(3);
  // Token recycling drafts only after it has learned from picks, which may be placeholders that a user appended.
  TokenRecyclingDrafter recycling;
  const Tokens text = text_of(random, 500);
  recycling.begin(TokenSpan(text).first(1));
  std::vector<DraftNode> room(64);
  std::size_t drafted = 0;
  for (std::size_t size = 1; size < text.size(); ++size) {
    Draft draft(room, {.vocabulary = vocabulary});
    recycling.propose(TokenSpan(text).first(size), draft);
    for (const DraftNode& node : draft.view()) ASSERT_FALSE(outside(node.token));
    drafted += draft.size();
    Outcome outcome;
    outcome.draft = draft.view();
    outcome.pick = text[size];
    recycling.feedback(TokenSpan(text).first(size), outcome);
    recycling.observe(TokenSpan(text).first(size + 1), 1, Origin::output);
  }
  EXPECT_GT(drafted, 1000U);
}

}  // namespace
}  // namespace reprise::testing::placeholders_test
