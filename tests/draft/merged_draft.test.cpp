// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/merged_draft.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace reprise::detail::merged_draft_test {
namespace {

using ::testing::ElementsAre;

using Tree = MergedDraft<8>;

Tree::Claim claim(Token token, std::uint32_t percent, DraftSource source = DraftSource::context) {
  return {.token = token, .probability = Probability::ratio(percent, 100), .source = source};
}
Tree::Claim auxiliary(Token token, std::uint32_t percent) {
  Tree::Claim made = claim(token, percent);
  made.auxiliary = true;
  return made;
}
std::vector<DraftNode> written(Tree& tree, const DraftBudget& budget = {}) {
  std::vector<DraftNode> storage(16);
  Draft draft(storage, budget);
  tree.write(draft);
  return {draft.view().begin(), draft.view().end()};
}
std::vector<Token> tokens(Tree& tree, const DraftBudget& budget = {}) {
  std::vector<Token> found;
  for (const DraftNode& node : written(tree, budget)) found.push_back(node.token);
  return found;
}

TEST(MergedDraft, KeepsAuxiliaryNodesApart) {
  Tree tree;
  const NodeIndex one = tree.add(anchor_parent, auxiliary(1, 60));
  EXPECT_NE(tree.add(anchor_parent, claim(1, 50)), one);
  EXPECT_NE(tree.add(anchor_parent, auxiliary(1, 40)), one);
  EXPECT_EQ(written(tree).size(), 3U);
}
TEST(MergedDraft, WritesNothingBesideWhatIsForcedButAuxiliaryNodes) {
  for (const bool forced_first : {true, false}) {
    Tree tree;
    const Tree::Claim forced = claim(1, 100, DraftSource::jump_forward);
    if (forced_first) tree.add(anchor_parent, forced);
    const NodeIndex two = tree.add(anchor_parent, claim(2, 100));
    tree.add(two, claim(3, 100));
    const NodeIndex one = tree.add(anchor_parent, forced);
    tree.add(anchor_parent, claim(1, 100));
    tree.add(one, claim(4, 50));
    tree.add(anchor_parent, auxiliary(5, 40));
    EXPECT_THAT(tokens(tree), ElementsAre(1, 4, 5));
    EXPECT_EQ(written(tree).at(0).source, DraftSource::jump_forward);
  }
}
TEST(MergedDraft, TakesNoMoreThanFit) {
  Tree tree;
  NodeIndex last = anchor_parent;
  for (Token token = 0; token < 8; ++token) last = tree.add(last, claim(token, 90));
  EXPECT_EQ(tree.add(last, claim(9, 90)), anchor_parent);
  EXPECT_EQ(tree.add(anchor_parent, claim(0, 95)), 0) << "what is there is still found";
  EXPECT_EQ(written(tree).size(), 8U);
  std::vector<DraftNode> storage(3);
  Draft draft(storage, {});
  tree.write(draft);
  EXPECT_EQ(draft.size(), 3U);
  tree.clear();
  EXPECT_EQ(tokens(tree).size(), 0U);
}

TEST(MergedDraft, WritesTheOthersWhereThereIsNoRoomForWhatIsForced) {
  Tree tree;
  for (Token token = 0; token < 8; ++token) tree.add(anchor_parent, claim(token, 90));
  EXPECT_EQ(tree.add(anchor_parent, claim(9, 100, DraftSource::jump_forward)), anchor_parent);
  EXPECT_EQ(written(tree).size(), 8U);
}
TEST(MergedDraft, AnAuxiliaryNodeIsNeverForced) {
  Tree tree;
  tree.add(anchor_parent, claim(1, 90));
  Tree::Claim aside = auxiliary(2, 50);
  aside.source = DraftSource::jump_forward;
  tree.add(anchor_parent, aside);
  EXPECT_THAT(tokens(tree), ElementsAre(1, 2));
}

}  // namespace
}  // namespace reprise::detail::merged_draft_test
