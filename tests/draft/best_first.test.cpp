// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/best_first.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace reprise::detail::best_first_test {
namespace {

struct Item {
  Probability path;
  Token token = 0;
  NodeIndex parent = anchor_parent;
  std::uint16_t depth = 0;
  [[nodiscard]] DraftNode node() const noexcept { return {.token = token, .parent = parent, .path_probability = path}; }
};

/// A tree in which every node has the same children: tokens 0, 1, ... with these tenths of its probability.
struct Grown {
  std::vector<DraftNode> nodes;
  std::vector<NodeIndex> expanded;
};
Grown grow(const std::vector<std::uint32_t>& tenths, const DraftBudget& budget, std::size_t able = unlimited) {
  std::array<DraftNode, 16> storage;
  Draft draft(storage, budget);
  std::array<Item, 8> written;
  Grown grown;
  const std::size_t size = grow_best_first(written, draft, [&](NodeIndex parent, auto& frontier) {
    const bool root = parent == anchor_parent;
    const Item before = root ? Item{.path = Probability::one()} : written[static_cast<std::size_t>(parent)];
    if (grown.expanded.size() == able) return;
    grown.expanded.push_back(parent);
    for (std::size_t i = 0; i < tenths.size(); ++i)
      frontier.push({before.path * Probability::ratio(tenths[i], 10), static_cast<Token>(i), parent,
                     static_cast<std::uint16_t>(before.depth + 1)});
  });
  EXPECT_EQ(size, draft.size());
  EXPECT_FALSE(draft.malformed());
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(written[i].token, draft[i].token);
  grown.nodes.assign(draft.view().begin(), draft.view().end());
  return grown;
}
using Placed = std::vector<std::pair<NodeIndex, Token>>;
Placed placed(const Grown& grown) {
  Placed found;
  for (const DraftNode& node : grown.nodes) found.emplace_back(node.parent, node.token);
  return found;
}

TEST(BestFirst, WritesTheMostProbablePathsFirst) {
  // Paths in order: .6, .36, .3, .216, then two of .18. Of equal ones, the one that was added first goes first.
  EXPECT_EQ(placed(grow({6, 3}, {.max_nodes = 5})), (Placed{{-1, 0}, {0, 0}, {-1, 1}, {1, 0}, {0, 1}}));
}

TEST(BestFirst, EveryPrefixIsTheBestSmallerDraft) {
  const Placed all = placed(grow({6, 3}, {.max_nodes = 8}));
  for (std::size_t nodes = 0; nodes < 8; ++nodes) {
    const Placed fewer = placed(grow({6, 3}, {.max_nodes = nodes}));
    EXPECT_EQ(fewer, Placed(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(nodes))) << nodes;
  }
}

TEST(BestFirst, KeepsTheBestChildOnlyInAChain) {
  const Placed chain = {{-1, 1}, {0, 1}, {1, 1}};
  EXPECT_EQ(placed(grow({3, 6}, {.max_nodes = 3, .shape = DraftShape::chain})), chain);
  EXPECT_EQ(placed(grow({3, 6}, {.max_nodes = 3, .max_leaves = 1})), chain);
}

TEST(BestFirst, WritesNoMoreThanItHasRoomFor) { EXPECT_EQ(grow({6, 3}, {.max_nodes = 16}).nodes.size(), 8U); }

TEST(BestFirst, SkipsAPathTooMany) {
  EXPECT_EQ(placed(grow({6, 3}, {.max_nodes = 4, .max_leaves = 2})), (Placed{{-1, 0}, {0, 0}, {-1, 1}, {1, 0}}));
}

TEST(BestFirst, DoesNotExpandAtTheGreatestDepthNorAfterTheLastNode) {
  EXPECT_EQ(grow({6, 3}, {.max_nodes = 6, .max_depth = 1}).expanded, std::vector<NodeIndex>{anchor_parent});
  EXPECT_EQ(grow({6, 3}, {.max_nodes = 2}).expanded, (std::vector<NodeIndex>{anchor_parent, 0}));
  EXPECT_TRUE(grow({6, 3}, {.max_nodes = 0}).expanded.empty());
  EXPECT_TRUE(grow({6, 3}, {.max_nodes = 4, .max_depth = 0}).expanded.empty());
}

TEST(BestFirst, WritesWhatWaitsWhenNoMoreCanBeExpanded) {
  const Grown grown = grow({6, 3}, {.max_nodes = 6}, 2);
  EXPECT_EQ(grown.expanded, (std::vector<NodeIndex>{anchor_parent, 0}));
  EXPECT_EQ(placed(grown), (Placed{{-1, 0}, {0, 0}, {-1, 1}, {0, 1}}));
}

}  // namespace
}  // namespace reprise::detail::best_first_test
