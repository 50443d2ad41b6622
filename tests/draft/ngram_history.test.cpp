// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_store.hpp"
#include "support/ngram_world.hpp"

namespace reprise::ngram_history_test {
namespace {

using Tokens = std::vector<Token>;
using Nodes = std::vector<DraftNode>;
using testing::draft_of;
using testing::LentNgram;
using testing::same_nodes;

constexpr DraftBudget tree = {.max_nodes = 16, .shape = DraftShape::tree};
constexpr DraftBudget chain = {.max_nodes = 16, .shape = DraftShape::chain};

Tokens run_of(std::size_t size, Token first) {
  Tokens tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}
HistoryStore memory_of(std::size_t segments) {
  return std::move(*HistoryStore::make({.max_bytes = HistoryStore::bytes_for(32 * segments)}));
}
void remember(HistoryStore& memory, TokenSpan tokens, SequenceTag id = 1) {
  memory.begin_sequence(id);
  memory.append(tokens, Origin::output);
  memory.end_sequence();
}
LentNgram<> drafter_of(const HistoryStore& memory, TokenSpan context) {
  NgramOptions options;
  options.stores = {memory};
  LentNgram<> drafter(options);
  drafter.begin(context);
  return drafter;
}
/// The target picks the first `accepted` tokens of the chain, then another token.
void accept(LentNgram<>& drafter, const Nodes& nodes, std::size_t accepted) {
  std::vector<NodeIndex> path(accepted);
  std::iota(path.begin(), path.end(), NodeIndex{0});
  drafter.feedback({DraftView(nodes, DraftKind::ordered), {}, path, Token{999'999}, Cut::none, {}});
}

TEST(NgramMemory, ForetellsWhatOnlyThePastKnows) {
  HistoryStore memory = memory_of(8);
  const Tokens past = run_of(100, 0);
  remember(memory, past);
  LentNgram<> drafter = drafter_of(memory, Tokens{7000, 50, 51});
  const Nodes nodes = draft_of(drafter, chain);
  ASSERT_GE(nodes.size(), 3U);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].token, 52 + static_cast<Token>(i));
    EXPECT_EQ(nodes[i].source, DraftSource::history);
    EXPECT_EQ(nodes[i].match_length, 2 + i);
  }
}

TEST(NgramMemory, IsLookedUpAnewForEachDraft) {
  HistoryStore memory = memory_of(8);
  LentNgram<> drafter = drafter_of(memory, Tokens{7000, 50, 51});
  const auto from_memory = [&] {
    const Nodes nodes = draft_of(drafter, tree);
    return std::count_if(nodes.begin(), nodes.end(),
                         [](const DraftNode& n) { return n.source == DraftSource::history; });
  };
  EXPECT_EQ(from_memory(), 0);
  remember(memory, run_of(100, 0));
  EXPECT_GT(from_memory(), 0);
  memory.remove(1);
  EXPECT_EQ(from_memory(), 0);
}

TEST(NgramMemory, ChangesNothingWhereItKnowsNothing) {
  HistoryStore memory = memory_of(8);
  remember(memory, run_of(100, 500'000));
  const Tokens context = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2};
  LentNgram<> with = drafter_of(memory, context);
  LentNgram<> without;
  without.begin(context);
  EXPECT_TRUE(same_nodes(draft_of(with, tree), draft_of(without, tree)));
}

TEST(NgramMemory, BelongsToTheContextWhereThatSaysSoToo) {
  HistoryStore memory = memory_of(8);
  remember(memory, Tokens{1, 2, 3, 4, 5, 6, 7, 8});
  LentNgram<> drafter = drafter_of(memory, Tokens{1, 2, 3, 40, 1, 2});
  const Nodes nodes = draft_of(drafter, tree);
  bool both = false;
  bool alone = false;
  for (const DraftNode& node : nodes) {
    both = both || (node.token == 3 && node.parent == anchor_parent && node.source == DraftSource::context);
    alone = alone || (node.token == 4 && node.source == DraftSource::history);
  }
  EXPECT_TRUE(both && alone) << testing::describe(nodes);
}

TEST(NgramMemory, EndsWhereTheSequenceEnds) {
  HistoryStore memory = memory_of(8);
  remember(memory, Tokens{1, 2, 3, 4, 5}, 1);
  remember(memory, Tokens{6, 7, 8, 9, 10}, 2);
  LentNgram<> drafter = drafter_of(memory, Tokens{1, 2, 3});
  for (const DraftNode& node : draft_of(drafter, tree)) EXPECT_LE(node.token, 5);
}

TEST(NgramMemory, GivesTextThatWasUsedASecondChance) {
  for (const bool of_use : {false, true}) {
    HistoryStore memory = memory_of(4);
    remember(memory, run_of(32, 0), 1);
    if (of_use) {
      LentNgram<> drafter = drafter_of(memory, Tokens{10, 11});
      const Nodes nodes = draft_of(drafter, chain);
      ASSERT_GT(nodes.size(), 1U);
      accept(drafter, nodes, 1);
    }
    remember(memory, run_of(32 * 4, 1000), 2);
    LentNgram<> later = drafter_of(memory, Tokens{10, 11});
    const Nodes nodes = draft_of(later, chain);
    EXPECT_EQ(!nodes.empty() && nodes[0].token == 12, of_use);
    EXPECT_EQ(memory.counts().second_chances, of_use ? 1U : 0U);
  }
}

}  // namespace
}  // namespace reprise::ngram_history_test
