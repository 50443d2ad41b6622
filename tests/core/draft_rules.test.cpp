// SPDX-License-Identifier: Apache-2.0
// Draft::push keeps notes to avoid most searches. This file states its rules without them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reprise/core/draft.hpp"
#include "support/streams.hpp"

namespace reprise::draft_rules_test {
namespace {

/// The rules of Draft::push for ordered drafts.
class Rules {
 public:
  explicit Rules(const DraftBudget& budget) : budget_(budget) {
    if (budget.shape == DraftShape::chain) budget_.max_leaves = std::min<std::size_t>(budget.max_leaves, 1);
  }
  bool push(const DraftNode& node) {
    if (nodes.size() == budget_.max_nodes) return false;
    if (node.parent < anchor_parent || node.parent >= static_cast<NodeIndex>(nodes.size())) return false;
    const bool chain = budget_.max_leaves <= 1;
    const bool after_auxiliary = node.parent >= 0 && nodes[static_cast<std::size_t>(node.parent)].auxiliary;
    if (node.auxiliary ? chain : after_auxiliary) return false;
    if (!nodes.empty() && node.path_probability > nodes.back().path_probability) return false;
    if (node.path_probability < budget_.min_path_probability) return false;
    for (const DraftNode& other : nodes)
      if (other.parent == node.parent && other.token == node.token && !other.auxiliary && !node.auxiliary) return false;
    std::size_t depth = 1;
    for (NodeIndex at = node.parent; at != anchor_parent; at = nodes[static_cast<std::size_t>(at)].parent) ++depth;
    if (depth > budget_.max_depth) return false;
    nodes.push_back(node);
    if (leaves() <= budget_.max_leaves) return true;
    nodes.pop_back();
    return false;
  }
  std::vector<DraftNode> nodes;

 private:
  /// The number of paths. Every child of the anchor begins one, and so does every child of another node after its
  /// first.
  [[nodiscard]] std::size_t leaves() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto sibling = [&](const DraftNode& other) { return other.parent == nodes[i].parent; };
      count += nodes[i].parent == anchor_parent ||
                       std::any_of(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i), sibling)
                   ? 1
                   : 0;
    }
    return count;
  }
  DraftBudget budget_;
};

TEST(DraftRules, AreThoseOfAPlainSearchWhateverIsPushedAndTruncated) {
  testing::SplitMix random(1);
  std::size_t longest = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 400; ++round) {
    DraftBudget budget;
    budget.max_nodes = random.one_in(2) ? 150 : random.between(1, 30);
    budget.max_depth = random.one_in(3) ? random.between(1, 6) : unlimited;
    budget.max_leaves = random.one_in(3) ? random.between(1, 12) : unlimited;
    budget.shape = random.one_in(8) ? DraftShape::chain : DraftShape::tree;
    if (random.one_in(4)) budget.min_path_probability = Probability::from_raw(700);
    std::vector<DraftNode> storage(150);
    Draft draft(storage, budget);
    Rules rules(budget);
    const bool deep = random.one_in(2);
    for (int step = 0; step < 300; ++step) {
      const std::size_t size = rules.nodes.size();
      DraftNode node;
      node.token = static_cast<Token>(random.below(deep ? 3 : 12));
      const std::size_t back = random.below(deep ? 4 : size + 1);
      node.parent = static_cast<NodeIndex>(size) - 1 - static_cast<NodeIndex>(back);
      if (random.one_in(50)) node.parent = static_cast<NodeIndex>(random.below(200)) - 20;
      node.path_probability = Probability::from_raw(static_cast<std::uint32_t>(1000 - 2 * size + random.below(2)));
      node.auxiliary = random.one_in(20);
      const bool written = rules.push(node);
      ASSERT_EQ(draft.push(node), written) << "round " << round << ", step " << step;
      refused += written ? 0 : 1;
      longest = std::max(longest, draft.size());
      if (random.one_in(60)) {
        const std::size_t kept = random.below(rules.nodes.size() + 1);
        rules.nodes.resize(kept);
        draft.truncate(kept);
      }
      ASSERT_EQ(draft.size(), rules.nodes.size());
    }
  }
  EXPECT_GT(longest, 100U) << "beyond the notes";
  EXPECT_GT(refused, 10'000U);
}

}  // namespace
}  // namespace reprise::draft_rules_test
