// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/pass_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::select_nodes_test {
namespace {

using detail::Constraint;
using detail::select_nodes;
using detail::SelectedNodes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Paths = std::vector<std::vector<Token>>;

DraftNode node(Token token, NodeIndex parent) { return {.token = token, .parent = parent}; }

/// Returns which nodes of a draft are refused. rule(path) is the number of allowed tokens of a path.
template <class Rule>
std::vector<bool> refused(const std::vector<DraftNode>& nodes, const Rule& rule, Paths* asked = nullptr) {
  std::vector<Constraint> constraints(nodes.size(), Constraint::refused);
  std::vector<Token> room(nodes.size());
  detail::constrain(
      DraftView(nodes, DraftKind::ordered),
      [&](TokenSpan path) {
        if (asked != nullptr) asked->emplace_back(path.begin(), path.end());
        return rule(path);
      },
      constraints, room);
  std::vector<bool> out;
  for (const Constraint constraint : constraints) out.push_back(constraint == Constraint::refused);
  return out;
}
std::size_t even_only(TokenSpan path) {
  const auto odd = std::find_if(path.begin(), path.end(), [](Token token) { return token % 2 != 0; });
  return static_cast<std::size_t>(odd - path.begin());
}

TEST(Constrain, AsksOnceForEachPathFromTheAnchorOn) {
  Paths asked;
  refused({node(2, -1), node(4, 0), node(6, 1), node(8, 0), node(10, -1)}, even_only, &asked);
  EXPECT_THAT(asked, ElementsAre(ElementsAre(2, 4, 6), ElementsAre(2, 8), ElementsAre(10)));
}
TEST(Constrain, DoesNotAskAgainBehindWhatWasRefused) {
  Paths asked;
  const auto answers = refused({node(3, -1), node(2, 0), node(4, 0)}, even_only, &asked);
  EXPECT_TRUE(answers[0]);
  EXPECT_EQ(asked.size(), 1U);
}
TEST(Constrain, NeverAsksAboutAuxiliaryNodes) {
  std::vector<DraftNode> nodes = {node(2, -1), node(3, 0), node(5, -1)};
  nodes[1].auxiliary = nodes[2].auxiliary = true;
  Paths asked;
  EXPECT_THAT(refused(nodes, even_only, &asked), ElementsAre(false, false, false));
  EXPECT_THAT(asked, ElementsAre(ElementsAre(2)));
}
TEST(Constrain, NeverAsksAboutNodesBehindAuxiliaryOnes) {
  std::vector<DraftNode> nodes = {node(2, -1), node(3, 0), node(4, 1)};
  nodes[1].auxiliary = true;  // the node after it is malformed, and must not cause earlier nodes to be refused
  Paths asked;
  EXPECT_THAT(refused(nodes, even_only, &asked), ElementsAre(false, false, false));
  EXPECT_THAT(asked, ElementsAre(ElementsAre(2)));
}
TEST(Constrain, NeverAsksAboutNodesThatDoNotHangOnTheAnchor) {
  Paths asked;
  refused({node(1, 0), node(2, 5), node(3, -7), node(4, 1), node(5, 2)}, even_only, &asked);
  EXPECT_THAT(asked, IsEmpty());
}
TEST(Constrain, TakesAnswersThatAreTooLargeForAll) {
  EXPECT_THAT(refused({node(3, -1), node(5, 0)}, [](TokenSpan) { return std::size_t{99}; }), ElementsAre(false, false));
}
TEST(Constrain, OfNothingAsksNothing) {
  Paths asked;
  EXPECT_THAT(refused({}, even_only, &asked), IsEmpty());
  EXPECT_THAT(asked, IsEmpty());
}

/// For random drafts: a node reached from the anchor, or one of its ancestors, is refused exactly if the rule does not
/// allow the path to it.
TEST(Constrain, AgreesWithEachPathAskedOnItsOwn) {
  std::size_t refusals = 0;
  for (std::uint64_t seed = 0; seed < 2'000; ++seed) {
    testing::HostileStrategy strategy(seed, 6);
    std::vector<DraftNode> storage(12);
    Draft draft(storage, {});
    strategy.propose({}, draft);
    const std::vector<DraftNode> nodes(draft.view().begin(), draft.view().end());
    const std::vector<bool> answers = refused(nodes, even_only);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::vector<Token> path;
      bool sound = true;
      bool marked = false;
      bool answer = false;
      auto at = static_cast<NodeIndex>(i);
      while (sound && at != anchor_parent) {
        const DraftNode& here = nodes[static_cast<std::size_t>(at)];
        path.insert(path.begin(), here.token);
        marked = marked || here.auxiliary;
        answer = answer || answers[static_cast<std::size_t>(at)];
        sound = here.parent >= anchor_parent && here.parent < at;
        at = here.parent;
      }
      if (!sound || marked) continue;
      ASSERT_EQ(answer, even_only(path) < path.size()) << "seed " << seed << ", node " << i;
      refusals += answer ? 1 : 0;
    }
  }
  EXPECT_GT(refusals, 500U);
}

struct Found {
  SelectedNodes selected;
  std::vector<NodeIndex> nodes, parents;
  std::vector<std::uint32_t> depths;
};
Found select(const std::vector<DraftNode>& nodes, std::size_t max_depth = unlimited, std::size_t rows = 32,
             const std::vector<Constraint>& constraints = {}) {
  Found found{{}, std::vector<NodeIndex>(rows), std::vector<NodeIndex>(rows), std::vector<std::uint32_t>(rows)};
  found.selected = select_nodes(DraftView(nodes, DraftKind::ordered), max_depth,
                                {found.nodes, found.parents, found.depths}, constraints);
  found.nodes.resize(found.selected.nodes);
  found.parents.resize(found.selected.nodes);
  found.depths.resize(found.selected.nodes);
  return found;
}
DraftNode auxiliary(Token token, NodeIndex parent) { return {.token = token, .parent = parent, .auxiliary = true}; }

TEST(SelectNodes, OfNothingIsNothing) { EXPECT_TRUE(select({}).nodes.empty()); }
TEST(SelectNodes, EndWhereTheStorageDoes) {
  std::vector<DraftNode> nodes;
  for (NodeIndex i = 0; i < 20; ++i) nodes.push_back(node(i, i - 1));
  EXPECT_EQ(select(nodes, unlimited, 8).nodes.size(), 8U);
}
TEST(SelectNodes, CountRowsAndNotNodesWhereSomeAreLeftOut) {
  const Found found =
      select({node(1, -1), node(2, -1), node(3, 0), node(4, 1), node(5, 1)}, unlimited, 32,
             {Constraint::refused, Constraint::inner, Constraint::leaf, Constraint::leaf, Constraint::leaf});
  EXPECT_THAT(found.nodes, ElementsAre(1, 3, 4));
  EXPECT_THAT(found.parents, ElementsAre(-1, 0, 0));
}
TEST(SelectNodes, LeaveOutWhatIsTooDeepAndTakeWhatIsNot) {
  const Found found = select({node(1, -1), node(2, 0), node(3, 1), node(4, -1), node(5, 3)}, 2);
  EXPECT_THAT(found.nodes, ElementsAre(0, 1, 3, 4));
  EXPECT_TRUE(found.selected.too_deep);
}
TEST(SelectNodes, CarryAuxiliaryNodesAndSaySo) {
  const Found found = select({auxiliary(1, -1), node(1, -1), auxiliary(1, -1), auxiliary(2, 0), node(2, 1)});
  EXPECT_THAT(found.nodes, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(found.parents, ElementsAre(-1, -1, -1, 0, 1));
  EXPECT_TRUE(found.selected.auxiliary);
  const Found shallow = select({auxiliary(1, -1), auxiliary(2, 0)}, 1);
  EXPECT_THAT(shallow.nodes, ElementsAre(0));
  EXPECT_TRUE(shallow.selected.too_deep);
  EXPECT_FALSE(select({node(1, -1)}).selected.auxiliary);
}
TEST(SelectNodes, LeaveOutWhatWasRefusedAndWhatFollowsIt) {
  const Found found = select({node(1, -1), node(2, 0), node(3, 1), node(4, 0)}, unlimited, 8,
                             {Constraint::inner, Constraint::refused, Constraint::leaf, Constraint::leaf});
  EXPECT_THAT(found.nodes, ElementsAre(0, 3));
  EXPECT_TRUE(found.selected.refused);
}
TEST(SelectNodes, HavePrefixesThatAreDraftsOfTheirOwn) {
  testing::HostileStrategy hostile(5, 4);
  std::size_t rows = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<DraftNode> storage(24);
    Draft draft(storage, {.max_leaves = 3});
    hostile.propose({}, draft);
    const std::vector<DraftNode> nodes(draft.view().begin(), draft.view().end());
    const Found found = select(nodes, 4);
    rows += found.nodes.size();
    for (std::size_t most = 0; most <= found.nodes.size(); ++most) {
      std::size_t leaves = 0;
      for (std::size_t row = 0; row < most; ++row) {
        const NodeIndex parent = found.parents[row];
        ASSERT_LT(parent, static_cast<NodeIndex>(row));
        ASSERT_EQ(nodes[static_cast<std::size_t>(found.nodes[row])].parent,
                  parent < 0 ? anchor_parent : found.nodes[static_cast<std::size_t>(parent)]);
        ASSERT_EQ(found.depths[row], parent < 0 ? 1 : found.depths[static_cast<std::size_t>(parent)] + 1);
        ASSERT_LE(found.depths[row], 4U);
        const auto end = found.parents.begin() + static_cast<std::ptrdiff_t>(most);
        leaves += std::find(found.parents.begin(), end, static_cast<NodeIndex>(row)) == end ? 1 : 0;
      }
      ASSERT_LE(leaves, 3U);
    }
  }
  EXPECT_GT(rows, 500U);
}

}  // namespace
}  // namespace reprise::select_nodes_test
