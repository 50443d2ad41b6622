// SPDX-License-Identifier: Apache-2.0
// Draft::push with random nodes, under any budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::draft_push_test {
namespace {

// Two drafts over one storage could overwrite each other's nodes. Accepted nodes could then have other parents, be
// deeper than allowed, or have more leaves.
static_assert(!std::is_copy_constructible_v<Draft> && !std::is_move_constructible_v<Draft>);
static_assert(!std::is_copy_assignable_v<Draft> && !std::is_move_assignable_v<Draft>);

/// What becomes of a node. A malformed or an unlikely one is refused, and the draft says so afterwards.
enum class Answer : std::uint8_t { taken, refused, malformed, unlikely };

/// The rules of Draft over the nodes so far, written straight from its documentation.
struct Rules {
  DraftBudget budget;
  DraftKind kind = DraftKind::ordered;
  std::vector<DraftNode> nodes = {};
  bool ended = false;

  [[nodiscard]] std::size_t depth(NodeIndex node) const {
    return node == anchor_parent ? 0 : 1 + depth(nodes[static_cast<std::size_t>(node)].parent);
  }
  [[nodiscard]] std::size_t leaves() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      count += std::none_of(nodes.begin(), nodes.end(),
                            [&](const DraftNode& n) { return n.parent == static_cast<NodeIndex>(i); });
    return count;
  }
  [[nodiscard]] bool chain() const {
    return kind == DraftKind::sampled || budget.shape == DraftShape::chain || budget.max_leaves <= 1;
  }
  [[nodiscard]] Answer answer(const DraftNode& node) const {
    if (ended || nodes.size() >= budget.max_nodes) return Answer::refused;
    if (node.parent < anchor_parent || node.parent >= static_cast<NodeIndex>(nodes.size())) return Answer::malformed;
    const bool behind_auxiliary =
        node.parent != anchor_parent && nodes[static_cast<std::size_t>(node.parent)].auxiliary;
    if (node.auxiliary ? chain() : behind_auxiliary) return Answer::malformed;
    if (kind == DraftKind::ordered && !nodes.empty() && node.path_probability > nodes.back().path_probability)
      return Answer::malformed;
    if (node.path_probability < budget.min_path_probability) return Answer::unlikely;
    for (const DraftNode& other : nodes)
      if (other.parent == node.parent && other.token == node.token && !other.auxiliary && !node.auxiliary)
        return Answer::malformed;
    Rules after = *this;
    after.nodes.push_back(node);
    return after.depth(node.parent) + 1 <= budget.max_depth &&
                   after.leaves() <= (chain() ? std::min<std::size_t>(budget.max_leaves, 1) : budget.max_leaves)
               ? Answer::taken
               : Answer::refused;
  }
};

/// Draft::push keeps notes of the first nodes to avoid most searches. One draft in 60 goes beyond the notes.
TEST(DraftPush, TakesExactlyTheNodesThatTheRulesAllow) {
  testing::Random random(1);
  std::size_t taken = 0;
  std::size_t refused = 0;
  std::size_t longest = 0;
  std::vector<DraftNode> room(150);
  for (int round = 0; round < 6000; ++round) {
    const bool large = round % 60 == 0;
    const std::span<DraftNode> storage = std::span(room).first(large ? 150 : 8);
    DraftBudget budget{.max_nodes = large ? 150 : random.below(10), .max_leaves = random.below(large ? 40 : 5)};
    if (random.chance(50)) budget.max_depth = random.below(5);
    if (random.chance(30)) budget.max_leaves = unlimited;
    if (random.chance(20)) budget.shape = DraftShape::chain;
    if (random.chance(30)) budget.min_path_probability = Probability::ratio(1, 2);
    Draft draft(storage, budget);
    Rules rules{budget, random.chance(20) ? DraftKind::sampled : DraftKind::ordered};
    rules.budget.max_nodes = std::min<std::size_t>(budget.max_nodes, storage.size());
    draft.clear(rules.kind);
    bool malformed = false;
    bool left_out = false;
    for (int i = 0; i < (large ? 500 : 24); ++i) {
      if (random.chance(large ? 1 : 5)) {
        const std::size_t size = random.below(storage.size());
        draft.truncate(size);
        if (size < rules.nodes.size()) rules.nodes.resize(size);
      }
      const std::size_t falls = large ? rules.nodes.size() / 16 : static_cast<std::size_t>(i) / 2;
      const DraftNode node{
          .token = static_cast<Token>(random.below(large ? 12 : 3)),
          .parent = static_cast<NodeIndex>(random.below(rules.nodes.size() + 3)) - 2,
          .path_probability = Probability::ratio(static_cast<std::uint32_t>(20 - random.below(falls + 1)), 20),
          .auxiliary = random.chance(large ? 4 : 15)};
      const Answer answer = rules.answer(node);
      const bool allowed = answer == Answer::taken;
      ASSERT_EQ(draft.push(node), allowed) << "round " << round << ", push " << i;
      malformed = malformed || answer == Answer::malformed;
      left_out = left_out || answer == Answer::unlikely;
      ASSERT_EQ(draft.malformed(), malformed);
      ASSERT_EQ(draft.left_out(), left_out);
      (allowed ? taken : refused) += 1;
      if (allowed) rules.nodes.push_back(node);
      rules.ended = rules.ended || (!allowed && rules.kind == DraftKind::sampled);
      ASSERT_EQ(draft.size(), rules.nodes.size());
      longest = std::max(longest, draft.size());
    }
    ASSERT_EQ(draft.chain(), rules.chain());
    ASSERT_EQ(draft.full(), rules.nodes.size() == rules.budget.max_nodes);
    ASSERT_TRUE(std::equal(draft.view().begin(), draft.view().end(), rules.nodes.begin(), rules.nodes.end(),
                           [](const DraftNode& a, const DraftNode& b) {
                             return a.token == b.token && a.parent == b.parent &&
                                    a.path_probability == b.path_probability && a.auxiliary == b.auxiliary;
                           }));
  }
  EXPECT_GT(longest, 100U);
  EXPECT_GT(taken, 5000U);
  EXPECT_GT(refused, 5000U);
}

}  // namespace
}  // namespace reprise::draft_push_test
