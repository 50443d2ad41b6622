// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/constraint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/testing/random.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::constraint_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Paths = std::vector<std::vector<Token>>;

DraftNode node(Token token, NodeIndex parent) { return {.token = token, .parent = parent}; }

/// Returns which nodes of a draft are refused. rule(path) is the number of allowed tokens of a path.
template <class Rule>
std::vector<bool> refused(const std::vector<DraftNode>& nodes, const Rule& rule, Paths* asked = nullptr) {
  std::vector<Constraint> constraints(nodes.size(), Constraint::refused);
  std::vector<Token> room(nodes.size());
  constrain(
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
TEST(Constrain, RefusesTheFirstTokenThatIsNotAllowedAndAllBehindIt) {
  EXPECT_THAT(refused({node(2, -1), node(3, 0), node(4, 1)}, even_only), ElementsAre(false, true, true));
  EXPECT_THAT(refused({node(3, -1), node(2, 0)}, even_only), ElementsAre(true, true));
  EXPECT_THAT(refused({node(2, -1), node(4, 0)}, even_only), ElementsAre(false, false));
}
TEST(Constrain, KeepsTheOtherPathsOfATree) {
  EXPECT_THAT(refused({node(2, -1), node(3, 0), node(4, 0), node(6, 2), node(7, 2)}, even_only),
              ElementsAre(false, true, false, false, true));
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

}  // namespace
}  // namespace reprise::constraint_test
