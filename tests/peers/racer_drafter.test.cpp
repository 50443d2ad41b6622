// SPDX-License-Identifier: Apache-2.0
#include "peers/racer_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise_testing/check_strategy.hpp"
#include "support/fails.hpp"
#include "support/ranked_checks.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::peers::racer_drafter_test {
namespace {

using ::testing::ElementsAre;
using Lent = testing::Lent<RacerDrafter>;
using Tokens = std::vector<Token>;

const Tokens prompt = {1, 2, 3, 4, 5};
const DraftBudget whole = {.max_nodes = RacerDrafter::max_nodes};

Lent made(const RacerOptions& options = {}) { return Lent{RacerDrafter::make(options).value()}; }

std::uint64_t digest_with(const RacerOptions& options) {
  return testing::digest_of_rounds([&] { return made(options); }, whole, options.ngram, options.nodes);
}

// These drafts were once compared with those of a plain implementation over maps.
TEST(RacerDrafter, DraftsWhatItAlwaysDrafted) {
  EXPECT_EQ(digest_with({}), 16981979476444897698U);
  EXPECT_EQ(digest_with({.refill = false}), 5551619440762526989U);
  EXPECT_EQ(digest_with({.nodes = 7, .ngram = 3}), 13291739935215292126U);
  EXPECT_EQ(digest_with({.nodes = 1, .keep = false}), 17668134685650648095U);
  EXPECT_EQ(digest_with({.nodes = 31, .ngram = 2, .trie_nodes = 40}), 3138913178906390860U);
  EXPECT_EQ(digest_with({.ngram = 4, .trie_nodes = 6, .refill = false}), 17315593036754752895U);
  EXPECT_EQ(digest_with({.ngram = 5, .trie_nodes = 120}), 13933523385188430115U);
}

TEST(RacerDrafter, KeepsTheContractOfAStrategy) {
  // Small tries, because each check copies hundreds of drafters.
  for (const RacerOptions& options :
       {RacerOptions{.trie_nodes = 800, .keep = false}, RacerOptions{.ngram = 2, .trie_nodes = 800, .keep = false},
        RacerOptions{.ngram = 3, .trie_nodes = 40, .refill = false, .keep = false}})
    testing::expect_contract_with_rows([&] { return RacerDrafter::make(options).value(); }, whole);
}

// The check of S7 truncates a copy, which keeps the n-grams of the removed text.
TEST(RacerDrafter, KeepsTheClausesWithoutTruncationIfItKeepsItsKnowledge) {
  const auto report =
      testing::check_strategy([] { return RacerDrafter::make({.trie_nodes = 800}).value(); }, {.budget = whole});
  for (const testing::Report::Finding& finding : report.findings)
    if (finding.clause != "S1" && finding.clause != "S6" && finding.clause != "S7") {
      EXPECT_NE(finding.verdict, testing::Verdict::wrong) << report.to_string();
    }
}

TEST(RacerDrafter, LearnsTheRowsOfAPrompt) {
  Lent drafter = made();
  drafter.begin(prompt);
  drafter->learn_row(Tokens{5}, Tokens{9, 8});
  drafter->learn_row(Tokens{70'000}, Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_EQ(drafter.propose(whole).tokens()[0], 9);
  const TokenSpan row = drafter->top_k(70'000);
  EXPECT_THAT(Tokens(row.begin(), row.end()), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(RacerDrafter, KeepsItsKnowledgeFromSequenceToSequenceUnlessTold) {
  for (const bool keep : {true, false}) {
    Lent drafter = made({.ngram = 3, .keep = keep});
    drafter.begin(Tokens{1, 2, 3, 9, 9});
    drafter->learn_row(Tokens{2}, Tokens{7});
    drafter.begin(Tokens{1, 2});
    const Tokens tokens = drafter.propose(whole).tokens();
    EXPECT_EQ(tokens[0], keep ? 3 : 0);
    EXPECT_EQ(drafter->top_k(2)[0], keep ? 7 : 0);
  }
}

// --- Settings ---

TEST(RacerOptions, OutOfRangeAreRefused) {
  const auto make = [](const RacerOptions& options) { return RacerDrafter::make(options); };
  EXPECT_THAT(make({.nodes = 0}), testing::refuses(0, 1));
  EXPECT_THAT(make({.nodes = 64}), testing::refuses(64, 63));
  EXPECT_THAT(make({.ngram = 1}), testing::refuses(1, 2));
  EXPECT_THAT(make({.ngram = 33}), testing::refuses(33, 32));
  EXPECT_THAT(make({.ngram = 5, .trie_nodes = 6}), testing::refuses(6, 7));
  EXPECT_THAT(make({.trie_nodes = 1U << 25}), testing::refuses(1U << 25, 1U << 24));
  EXPECT_TRUE(make({.nodes = 63, .ngram = 32, .trie_nodes = 34}));
}

TEST(RacerOptions, NodesAndTrieNodesAreLimits) {
  for (const std::size_t nodes : {1U, 20U, 63U}) {
    Lent drafter = made({.nodes = nodes, .trie_nodes = 50});
    drafter.begin(prompt);
    for (int i = 0; i < 60; ++i) {
      testing::run_round(drafter, {.order = 2, .vocabulary = 30}, {.budget = whole});
      EXPECT_LE(drafter.propose(whole).nodes.size(), nodes);
    }
    EXPECT_EQ(drafter->trie_size(), 50U);
    EXPECT_LE(drafter->memory_bytes(), 50U * 56 + 50 * 32);
  }
}

TEST(RacerDrafter, CostsALosslessRunOfATransformerNoToken) {
  testing::expect_lossless_on_transformer(RacerDrafter(), whole);
}

}  // namespace
}  // namespace reprise::peers::racer_drafter_test
