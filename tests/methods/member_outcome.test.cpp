// SPDX-License-Identifier: Apache-2.0
// The outcomes that the members of a combination receive, compared with brute force. Each member must learn, for each
// of its nodes, the target's answer as if its whole draft had been in the pass.
#include "reprise/draft/detail/members.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "reprise/draft/union_drafter.hpp"
#include "reprise_methods/best_of.hpp"
#include "support/combined_world.hpp"

namespace reprise::testing::member_outcome_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A target's answer to a draft: the sent part, the accepted path, the pick after it, and top-k rows.
struct Pass {
  std::vector<NodeIndex> sent;
  std::vector<NodeIndex> accepted;
  std::optional<Token> pick;
  std::vector<Outcome::RankedToken> revealed;
  Tokens committed;
};
Pass verify(const Nodes& nodes, Random& random) {
  Pass pass;
  const auto is_sent = [&](NodeIndex i) {
    return i == anchor_parent || std::find(pass.sent.begin(), pass.sent.end(), i) != pass.sent.end();
  };
  const std::size_t percent = 20 + random.below(81);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (is_sent(nodes[i].parent) && random.chance(percent)) pass.sent.push_back(static_cast<NodeIndex>(i));
  // Most picks equal a child's token, sent or not.
  for (NodeIndex at = anchor_parent;;) {
    std::vector<NodeIndex> children;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].parent == at && !nodes[i].auxiliary) children.push_back(static_cast<NodeIndex>(i));
    auto pick = static_cast<Token>(random.below(3));
    if (!children.empty() && random.chance(80))
      pick = nodes[static_cast<std::size_t>(children[random.below(children.size())])].token;
    const auto next = std::find_if(children.begin(), children.end(), [&](NodeIndex child) {
      return nodes[static_cast<std::size_t>(child)].token == pick && is_sent(child);
    });
    if (next == children.end()) {
      if (random.chance(85)) {
        pass.pick = pick;
        pass.committed.push_back(pick);
      }
      break;
    }
    pass.accepted.push_back(at = *next);
    pass.committed.push_back(pick);
    if (random.chance(10)) break;  // a stop rule: the next pick was never read
  }
  for (const NodeIndex row : pass.sent)
    if (random.chance(70)) pass.revealed.push_back({row, 0, static_cast<Token>(random.below(50))});
  if (random.chance(70)) pass.revealed.push_back({anchor_parent, 1, 77});
  return pass;
}
Outcome outcome_of(const Nodes& nodes, const Pass& pass) {
  return {.draft = {nodes, DraftKind::ordered},
          .sent = pass.sent,
          .accepted = pass.accepted,
          .pick = pass.pick,
          .cut = pass.sent.size() == nodes.size() ? Cut::none : Cut::rows,
          .top_k = pass.revealed};
}

/// The tests that the committed tokens imply for a draft: node index, and whether it was hit.
std::map<std::size_t, bool> tested(const Nodes& own, const Tokens& committed) {
  std::map<std::size_t, bool> tests;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].auxiliary) continue;
    const Tokens path = path_to({own, DraftKind::ordered}, static_cast<NodeIndex>(i));
    if (path.size() > committed.size() || !std::equal(path.begin(), path.end() - 1, committed.begin())) continue;
    tests[i] = path.back() == committed[path.size() - 1];
  }
  return tests;
}

void expect_truth(const KeptOutcome& told, const Nodes& own, const Nodes& combined, const Pass& pass, bool curious,
                  bool asked = true) {
  const DraftView all(combined, DraftKind::ordered);
  const Nodes mine = asked ? own : Nodes();
  // The draft is the member's proposal. If the member learns from top-k rows, the rows of other members follow as
  // padding.
  ASSERT_GE(told.draft.size(), mine.size());
  for (std::size_t i = 0; i < told.draft.size(); ++i) {
    if (i >= mine.size()) {
      ASSERT_TRUE(curious);
      ASSERT_EQ(told.draft[i].source, DraftSource::padding);
      continue;
    }
    ASSERT_EQ(told.draft[i].token, mine[i].token);
    ASSERT_EQ(told.draft[i].parent, mine[i].parent);
    ASSERT_EQ(told.draft[i].path_probability, mine[i].path_probability);
  }
  // Its nodes whose path was in the pass count as sent.
  std::vector<NodeIndex> sent;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const Tokens path = path_to({mine, DraftKind::ordered}, static_cast<NodeIndex>(i));
    if (std::any_of(pass.sent.begin(), pass.sent.end(), [&](NodeIndex row) { return path_to(all, row) == path; }))
      sent.push_back(static_cast<NodeIndex>(i));
  }
  ASSERT_EQ(told.sent, sent);
  for (const NodeIndex node : told.accepted)
    ASSERT_NE(std::find(sent.begin(), sent.end(), node), sent.end()) << "accepted means sent";
  // The member learns every test that the committed tokens imply, and no other.
  std::map<std::size_t, bool> learned;
  const Outcome outcome{.draft = told.view(),
                        .sent = told.sent,
                        .accepted = told.accepted,
                        .pick = told.pick,
                        .cut = told.cut,
                        .top_k = told.top_k};
  for_each_tested(outcome, [&](std::size_t i, bool hit) { learned[i] = hit; });
  // Learning ends at a node that the target picked but that was not sent.
  std::map<std::size_t, bool> wanted = tested(mine, pass.committed);
  ASSERT_EQ(learned, wanted);
  ASSERT_EQ(told.cut == Cut::none, told.sent.size() == mine.size() && !mine.empty());
  // Each top-k token follows the same path as in the pass.
  if (!curious) {
    ASSERT_THAT(told.top_k, IsEmpty());
    return;
  }
  ASSERT_EQ(told.top_k.size(), pass.revealed.size());
  for (std::size_t i = 0; i < told.top_k.size(); ++i) {
    ASSERT_EQ(told.top_k[i].token, pass.revealed[i].token);
    ASSERT_EQ(told.top_k[i].rank, pass.revealed[i].rank);
    ASSERT_EQ(path_to(told.view(), told.top_k[i].after), path_to(all, pass.revealed[i].after));
  }
}

template <class Strategy>
void run(Strategy strategy, Random& random, bool first_match = false) {
  const Nodes nodes = drafted_by(strategy, {.max_nodes = random.chance(70) ? 64 : random.below(10)});
  const Pass pass = verify(nodes, random);
  strategy.feedback({}, outcome_of(nodes, pass));
  const auto& first = strategy.template member<0>();
  const auto& second = strategy.template member<1>();
  ASSERT_EQ(first.told->outcomes.size(), 1U);
  ASSERT_EQ(second.told->outcomes.size(), 1U);
  if (first_match && !first.told->proposed.empty()) {
    ASSERT_EQ(first.told->outcomes[0].sent, pass.sent) << "the one that was chosen is told everything as it is";
    ASSERT_EQ(first.told->outcomes[0].accepted, pass.accepted);
  } else {
    expect_truth(first.told->outcomes[0], first.told->proposed, nodes, pass, false);
  }
  expect_truth(second.told->outcomes[0], second.told->proposed, nodes, pass, true, !first_match);
}

TEST(MemberOutcome, TellsEachMemberWhatBruteForceFinds) {
  Random random(3);
  for (int round = 0; round < 4000 && !HasFatalFailure(); ++round) {
    const TreeOptions one{.nodes = 10, .duplicates = false, .auxiliary = round % 2 == 0, .auxiliary_tokens = 1000};
    const TreeOptions two{.nodes = 10, .duplicates = false, .auxiliary = round % 2 == 0, .auxiliary_tokens = 2000};
    const Scripted first{random_tree(random, one)};
    const Curious second{{random_tree(random, two)}};
    run(UnionDrafter(Scripted{first.nodes}, Curious{{second.nodes}}), random);
    run(BestOf(Scripted{first.nodes}, Curious{{second.nodes}}), random);
    if (!first.nodes.empty()) run(FirstMatch(Scripted{first.nodes}, Curious{{second.nodes}}), random, true);
  }
}

TEST(MemberOutcome, SaysWhyNodesWereNotSent) {
  UnionDrafter strategy(Scripted{{node(1, -1, 90), node(2, 0, 80)}}, Scripted{{node(3, -1, 30)}}, Scripted{},
                        Scripted{{}, DraftKind::ordered, true});
  const Nodes nodes = drafted_by(strategy, {.max_nodes = 2});
  ASSERT_THAT(tokens_of(nodes), ElementsAre(1, 2));
  const std::vector<NodeIndex> sent = {0};
  strategy.feedback(
      {},
      {.draft = {nodes, DraftKind::ordered}, .sent = sent, .accepted = {}, .pick = 4, .cut = Cut::rows, .top_k = {}});
  EXPECT_EQ(strategy.member<0>().told->outcomes.at(0).cut, Cut::rows);
  EXPECT_EQ(strategy.member<1>().told->outcomes.at(0).cut, Cut::budget) << "others took the room";
  EXPECT_EQ(strategy.member<2>().told->outcomes.at(0).cut, Cut::no_match);
  EXPECT_EQ(strategy.member<3>().told->outcomes.at(0).cut, Cut::unlikely);
}
TEST(MemberOutcome, TakesWhatASessionDidNotSend) {
  // An outcome without a draft, or with that of another round.
  UnionDrafter strategy(Scripted{{node(1, -1, 90)}}, Curious{{{node(2, -1, 90)}}});
  strategy.feedback({}, {});
  drafted_by(strategy);
  strategy.feedback({}, {});
  EXPECT_EQ(strategy.member<0>().told->outcomes.size(), 2U);
  EXPECT_EQ(strategy.member<1>().told->outcomes.size(), 2U);
}
TEST(MemberOutcome, LeavesOutSecondChildrenWithTheSameToken) {
  Random random(5);
  for (int round = 0; round < 2000; ++round) {
    const TreeOptions options{.nodes = 10, .vocabulary = 2, .malformed = round % 2 == 0};
    UnionDrafter strategy(Scripted{random_tree(random, options)}, Curious{{random_tree(random, options)}});
    const Nodes nodes = drafted_by(strategy);
    const Pass pass = verify(nodes, random);
    strategy.feedback({}, outcome_of(nodes, pass));
    const KeptOutcome& told = strategy.member<1>().told->outcomes.at(0);
    for (const NodeIndex i : told.sent) {
      const DraftNode& sent = told.draft[static_cast<std::size_t>(i)];
      ASSERT_LT(sent.parent, i);
      ASSERT_TRUE(sent.parent == anchor_parent ||
                  std::find(told.sent.begin(), told.sent.end(), sent.parent) != told.sent.end());
    }
    ASSERT_LE(told.sent.size(), pass.sent.size());
  }
}

}  // namespace
}  // namespace reprise::testing::member_outcome_test
