// SPDX-License-Identifier: Apache-2.0
// Draft::push after the end of a generation: nothing is drafted there.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "reprise/core/draft.hpp"

namespace reprise::draft_stops_test {
namespace {

constexpr std::array<Token, 2> eos = {2, 3};
constexpr std::array<Token, 1> ids = {7};

struct Room {
  std::array<DraftNode, 16> nodes;
  Draft draft;
  explicit Room(const DraftBudget::Stops& stops, DraftKind kind = DraftKind::ordered)
      : draft(nodes, {.max_nodes = 16, .stops = stops}) {
    draft.clear(kind);
  }
  bool push(Token token, NodeIndex parent) { return draft.push({.token = token, .parent = parent}); }
};

TEST(DraftStops, TheEndIsDraftedAndNothingAfterIt) {
  for (const DraftBudget::Stops& stops :
       {DraftBudget::Stops{.eos = eos}, DraftBudget::Stops{.more_eos = eos}, DraftBudget::Stops{.ids = eos}}) {
    Room room(stops);
    EXPECT_TRUE(room.push(5, anchor_parent));
    EXPECT_TRUE(room.push(3, 0));
    EXPECT_TRUE(room.draft.ends(1));
    EXPECT_FALSE(room.draft.ends(0));
    EXPECT_FALSE(room.push(8, 1));
    EXPECT_FALSE(room.draft.malformed());
    EXPECT_TRUE(room.push(8, 0)) << "another path goes on";
    EXPECT_FALSE(room.draft.ends(anchor_parent));
  }
}

TEST(DraftStops, ASequenceMayBeginInTheOutput) {
  const std::vector<std::vector<Token>> sequences = {{}, {4, 5, 6}};
  const std::vector<Token> output = {9, 4};
  Room room({.sequences = sequences, .output = output});
  EXPECT_TRUE(room.push(5, anchor_parent));
  EXPECT_TRUE(room.push(6, 0));
  EXPECT_TRUE(room.draft.ends(1));
  EXPECT_FALSE(room.push(1, 1));
  EXPECT_TRUE(room.push(1, 0));
  EXPECT_TRUE(room.push(4, 2));
  EXPECT_TRUE(room.push(5, 3));
  EXPECT_TRUE(room.push(6, 4));
  EXPECT_FALSE(room.push(6, 5)) << "a sequence of drafted tokens alone";
}

TEST(DraftStops, ASequenceThatBeginsBeforeTheOutputDoesNotCount) {
  const std::vector<std::vector<Token>> sequences = {{4, 5}};
  Room room({.sequences = sequences});
  EXPECT_TRUE(room.push(5, anchor_parent));
  EXPECT_TRUE(room.push(1, 0));
}

TEST(DraftStops, ASampledDraftEndsThere) {
  Room room({.ids = ids}, DraftKind::sampled);
  EXPECT_TRUE(room.push(7, anchor_parent));
  EXPECT_FALSE(room.push(1, 0));
  EXPECT_EQ(room.draft.size(), 1U);
}

TEST(DraftStops, NegativeTokensAreNeverDrafted) {
  Room room({});
  EXPECT_FALSE(room.push(-1, anchor_parent));
  EXPECT_TRUE(room.push(0, anchor_parent));
  EXPECT_FALSE(room.push(-2147483647 - 1, 0));
  EXPECT_EQ(room.draft.size(), 1U);
  EXPECT_FALSE(room.draft.malformed());
}

}  // namespace
}  // namespace reprise::draft_stops_test
