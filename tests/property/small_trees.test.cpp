// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/loop/session.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

// Drafts over two tokens, one pass each, compared with the contract:
// * every tree of up to six nodes;
// * every array of up to four nodes with any parents, including cycles and later nodes;
// * every array of up to three nodes in which each may be auxiliary.
namespace reprise::testing::small_trees_test {
namespace {

/// Returns the tokens to commit: the picks as far as the draft agrees with them, and one more.
std::vector<Token> wanted(const std::vector<DraftNode>& draft, const std::vector<Token>& truth) {
  std::size_t agreed = 0;
  NodeIndex last = anchor_parent;
  for (std::size_t i = 0; i < draft.size(); ++i)  // children come after their parents
    if (draft[i].parent == last && draft[i].token == truth[agreed] && !draft[i].auxiliary) {
      last = static_cast<NodeIndex>(i);
      ++agreed;
    }
  return {truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(agreed + 1)};
}

class OnePass {
 public:
  OnePass(unsigned table, Rollback rollback) : session_(Dictated(), 8), engine_(options(table, rollback)) {
    EXPECT_TRUE(session_.begin(prompt_, engine_.capabilities()));
    engine_.prefill(TokenSpan(prompt_).first(prompt_.size() - 1));
    std::vector<Token> text = prompt_;
    for (std::size_t i = 0; i < 8; ++i) {
      truth_.push_back(engine_.greedy(text));
      text.push_back(truth_.back());
    }
  }
  /// Returns false if the contract is violated.
  bool run(const std::vector<DraftNode>& draft) {
    session_.strategy().nodes = draft;
    session_.propose(limits_);
    const auto pass = session_.plan();
    if (!pass) return false;
    if (engine_.capabilities().rollback == Rollback::snapshot && pass->drafted > 0) engine_.snapshot();
    auto picks = engine_.verify_tree(pass->batch, pass->drafted, pass->parents);
    if (!picks) return false;
    const auto decision = session_.resolve(pass->ticket, *picks);
    if (!decision) return false;
    const std::vector<Token> right = wanted(draft, truth_);
    const auto same = [](const CommittedToken& token, Token other) { return token.token == other; };
    if (!std::equal(decision->tokens.begin(), decision->tokens.end(), right.begin(), right.end(), same)) return false;
    const auto done =
        decision->restore ? engine_.restore(decision->tokens.size()) : engine_.commit_rows(decision->rows);
    if (!done || !session_.commit(pass->ticket)) return false;
    const TokenSpan context = session_.context();
    const TokenSpan cache = engine_.cache();
    if (cache.size() != session_.cached() || !std::equal(cache.begin(), cache.end(), context.begin())) return false;
    if (!session_.truncate(prompt_.size())) return false;
    engine_.truncate(session_.cached());
    return engine_.violations().empty();
  }

 private:
  static ScriptedOptions options(unsigned table, Rollback rollback) {
    ScriptedOptions options;
    options.table = [table](TokenSpan end) {
      return static_cast<Token>((table >> (2 * end[end.size() - 2] + end[end.size() - 1])) & 1U);
    };
    options.capabilities.max_leaves = 8;
    options.capabilities.rollback = rollback;
    return options;
  }

  std::vector<Token> prompt_ = {1, 0, 1};
  std::vector<Token> truth_;
  Limits limits_;
  Session<Dictated> session_;
  ScriptedVerifier engine_;
};

/// Calls `visit` with every draft of `nodes` nodes. Parents begin at `least`. If `sound`, each comes before its node;
/// else it is at most `nodes`.
template <class Visit>
void for_each_draft(std::size_t nodes, NodeIndex least, bool sound, bool auxiliary, const Visit& visit) {
  std::vector<DraftNode> draft(nodes, DraftNode{.token = 0, .parent = least});
  for (;;) {
    visit(draft);
    std::size_t i = 0;
    for (; i < nodes; ++i) {  // counts up, node by node: token, mark, parent
      const auto most = sound ? static_cast<NodeIndex>(i) - 1 : static_cast<NodeIndex>(nodes);
      DraftNode& node = draft[i];
      node.token = 1 - node.token;
      if (node.token == 1) break;
      if (auxiliary) {
        node.auxiliary = !node.auxiliary;
        if (node.auxiliary) break;
      }
      if (node.parent < most) {
        ++node.parent;
        break;
      }
      node.parent = least;
    }
    if (i == nodes) return;
  }
}

TEST(SmallTrees, EveryTreeOfUpToSixNodesCommitsThePathThatAgreesAndOneTokenMore) {
  std::size_t passes = 0;
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot})
    for (const unsigned table : {0x6U, 0x9U, 0xAU}) {
      OnePass world(table, rollback);
      for (std::size_t nodes = 0; nodes <= 6; ++nodes)
        for_each_draft(nodes, anchor_parent, true, false, [&](const std::vector<DraftNode>& draft) {
          EXPECT_TRUE(world.run(draft)) << "table " << table << ", " << nodes << " nodes";
          ++passes;
        });
    }
  EXPECT_EQ(passes, 6U * (1 + 2 + 8 + 48 + 384 + 3840 + 46080));
}
TEST(SmallTrees, WhateverParentsANodeHasOnlyPicksAreCommitted) {
  OnePass world(0x6U, Rollback::trim);
  std::size_t passes = 0;
  for (std::size_t nodes = 1; nodes <= 4; ++nodes)
    for_each_draft(nodes, -2, false, false, [&](const std::vector<DraftNode>& draft) {
      EXPECT_TRUE(world.run(draft)) << nodes << " nodes";
      ++passes;
    });
  EXPECT_EQ(passes, 8U + 100 + 1728 + 38416);
}
TEST(SmallTrees, NoAuxiliaryNodeIsEverAccepted) {
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot}) {
    OnePass world(0x6U, rollback);
    for (std::size_t nodes = 1; nodes <= 3; ++nodes)
      for_each_draft(nodes, -2, false, true,
                     [&](const std::vector<DraftNode>& draft) { EXPECT_TRUE(world.run(draft)) << nodes << " nodes"; });
    for_each_draft(4, anchor_parent, true, true,
                   [&](const std::vector<DraftNode>& draft) { EXPECT_TRUE(world.run(draft)); });
  }
}

}  // namespace
}  // namespace reprise::testing::small_trees_test
