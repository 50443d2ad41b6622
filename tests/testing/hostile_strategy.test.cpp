// SPDX-License-Identifier: Apache-2.0
#include "support/hostile_strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "support/lent_context.hpp"

namespace reprise::testing::hostile_strategy_test {
namespace {

/// A draft that records the nodes pushed into it.
struct Recorded {
  Draft draft;
  std::vector<DraftNode> pushed = {};
  std::vector<std::size_t> at = {};  ///< the size of the draft at each push

  [[nodiscard]] const DraftBudget& budget() const { return draft.budget(); }
  [[nodiscard]] std::size_t size() const { return draft.size(); }
  void clear(DraftKind kind) { draft.clear(kind); }
  void truncate(std::size_t nodes) { draft.truncate(nodes); }
  void leave_out() { draft.leave_out(); }
  void hold_back() { draft.hold_back(); }
  bool push(const DraftNode& node) {
    pushed.push_back(node);
    at.push_back(draft.size());
    return draft.push(node);
  }
};

TEST(HostileStrategy, WritesEveryKindOfGarbage) {
  HostileStrategy strategy(1, 4);
  std::array<DraftNode, 8> storage;
  std::set<int> seen;
  for (int i = 0; i < 500; ++i) {
    Recorded recorded{Draft(storage, {})};
    strategy.write_garbage(recorded);
    const Draft& draft = recorded.draft;
    const auto note = [&](int kind, bool holds) {
      if (holds) seen.insert(kind);
    };
    note(0, draft.empty());
    note(1, draft.size() == storage.size());
    note(2, draft.view().kind() == DraftKind::sampled);
    for (std::size_t k = 0; k < recorded.pushed.size(); ++k) {
      const DraftNode& node = recorded.pushed[k];
      const auto n = static_cast<NodeIndex>(recorded.at[k]);
      note(3, node.parent == n);
      note(4, node.parent > n);
      note(5, node.parent == std::numeric_limits<NodeIndex>::max());
      note(6, node.parent < anchor_parent);
      note(7, node.token == std::numeric_limits<Token>::min());
      note(8, node.token == std::numeric_limits<Token>::max());
      note(9, node.auxiliary);
      note(12, node.token >= 0 && node.token < 4 && node.parent == n - 1);
      note(13, n == static_cast<NodeIndex>(storage.size()));
      if (k == 0) continue;
      const DraftNode& before = recorded.pushed[k - 1];
      note(10, node.path_probability > before.path_probability);
      note(11, node.token == before.token && node.parent == before.parent);
    }
  }
  EXPECT_EQ(seen.size(), 14U);
}
TEST(HostileStrategy, GetsNothingMalformedIntoADraft) {
  HostileStrategy strategy(1, 4);
  std::set<int> seen;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t max_nodes = static_cast<std::size_t>(i) % 12;
    const std::size_t max_depth = i % 3 == 0 ? 3 : unlimited;
    const std::size_t max_leaves = i % 4 == 0 ? 2 : unlimited;
    const auto shape = i % 5 == 0 ? DraftShape::chain : DraftShape::tree;
    const DraftBudget budget{.max_nodes = max_nodes, .max_depth = max_depth, .max_leaves = max_leaves, .shape = shape};
    const Drafted drafted = propose(strategy, {}, budget, 8);
    const std::vector<DraftNode>& nodes = drafted.nodes;
    ASSERT_LE(nodes.size(), std::min<std::size_t>(max_nodes, 8));
    std::vector<std::size_t> depths;
    std::vector<bool> inner(nodes.size());
    const bool chain = shape == DraftShape::chain || drafted.kind == DraftKind::sampled;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const NodeIndex parent = nodes[n].parent;
      ASSERT_GE(parent, anchor_parent);
      ASSERT_LT(parent, static_cast<NodeIndex>(n));
      const auto before = static_cast<std::size_t>(std::max<NodeIndex>(parent, 0));
      depths.push_back(parent == anchor_parent ? 1 : depths[before] + 1);
      ASSERT_LE(depths.back(), max_depth);
      ASSERT_TRUE(!chain || (parent == static_cast<NodeIndex>(n) - 1 && !nodes[n].auxiliary));
      ASSERT_TRUE(nodes[n].auxiliary || parent == anchor_parent || !nodes[before].auxiliary);
      if (parent != anchor_parent) inner[before] = true;
      for (std::size_t other = 0; other < n; ++other)
        ASSERT_FALSE(nodes[other].parent == parent && nodes[other].token == nodes[n].token && !nodes[other].auxiliary &&
                     !nodes[n].auxiliary);
      ASSERT_TRUE(n == 0 || drafted.kind == DraftKind::sampled ||
                  nodes[n].path_probability <= nodes[n - 1].path_probability);
      seen.insert(nodes[n].auxiliary ? 0 : parent < static_cast<NodeIndex>(n) - 1 ? 1 : 2);
    }
    ASSERT_LE(static_cast<std::size_t>(std::count(inner.begin(), inner.end(), false)), max_leaves);
    seen.insert(drafted.malformed ? 3 : 4);
    if (nodes.size() > 6) seen.insert(drafted.kind == DraftKind::sampled ? 5 : 6);
  }
  EXPECT_EQ(seen.size(), 7U) << "what is left is not all alike";
}
TEST(HostileStrategy, GivesTheSameGarbageForTheSameSeed) {
  HostileStrategy one(7);
  HostileStrategy two(7);
  for (int i = 0; i < 50; ++i) {
    const Drafted first = propose(one, {}, {}, 8);
    const Drafted second = propose(two, {}, {}, 8);
    ASSERT_EQ(first.tokens(), second.tokens());
  }
}

}  // namespace
}  // namespace reprise::testing::hostile_strategy_test
