// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/union_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "common/any_strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::testing::union_drafter_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

static_assert(DraftStrategy<UnionDrafter<PromptLookupDrafter<>, NgramDrafter<>>>);
static_assert(DraftStrategy<UnionDrafter<AnyStrategy, UnionDrafter<AnyStrategy>>>);
static_assert(CalibratedStrategy<UnionDrafter<PromptLookupDrafter<>>> && CalibratedStrategy<NgramDrafter<>>);
static_assert(!CalibratedStrategy<PromptLookupDrafter<>>);
static_assert(TopKLearner<UnionDrafter<Scripted, Curious>> && !TopKLearner<UnionDrafter<Scripted>>);
static_assert(RebasableStrategy<UnionDrafter<Scripted, Keeping>> && !RebasableStrategy<UnionDrafter<Scripted>>);
static_assert(RebasableStrategy<UnionDrafter<AnyStrategy, UnionDrafter<AnyStrategy>>>);

TEST(UnionDrafter, LearnsWhatEachMemberIsWorth) {
  UnionDrafter strategy(Scripted{{{node(1, -1, 60)}}}, Scripted{{{node(2, -1, 60)}}});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1, 2)) << "equal ones in the order of members";
  for (int i = 0; i < 10; ++i) {
    const Nodes nodes = drafted_by(strategy);
    strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 2, .top_k = {}});
    strategy.observe(Tokens{2}, 1, Origin::output);
  }
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(2, 1));
  strategy.begin({});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1, 2)) << "begin() forgets it";
}
TEST(UnionDrafter, PutsForcedTokensFirstAndOthersBehindThem) {
  UnionDrafter strategy(
      Calibrated{{{node(9, -1, 99), node(7, -1, 80), node(8, 1, 70), node(5, 2, 60)}}},
      Scripted{{{node(7, -1, 100, DraftSource::jump_forward), node(8, 0, 100, DraftSource::jump_forward)}}});
  const Nodes nodes = drafted_by(strategy);
  EXPECT_THAT(tokens_of(nodes), ElementsAre(7, 8, 5)) << "9 is impossible";
  EXPECT_EQ(nodes[0].source, DraftSource::jump_forward);
  EXPECT_EQ(nodes[1].path_probability, Probability::one());
  EXPECT_EQ(nodes[2].parent, 1);
}
TEST(UnionDrafter, TakesTheLikeliestChildOfEachPlaceForAChain) {
  const Nodes tree = {node(1, -1, 90), node(2, -1, 80), node(3, 1, 70), node(4, 0, 60), node(5, 0, 50)};
  UnionDrafter strategy(Calibrated{{tree}});
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.shape = DraftShape::chain})), ElementsAre(1, 4));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_leaves = 1})), ElementsAre(1, 4));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_leaves = 2})), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_nodes = 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_depth = 1})), ElementsAre(1, 2));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.min_path_probability = Probability::ratio(3, 4)})), ElementsAre(1, 2));
}
TEST(UnionDrafter, MakesAnOrderedDraftOfASampledOne) {
  UnionDrafter strategy(Scripted{{node(1, -1, 20), node(2, 0, 80)}, DraftKind::sampled});
  std::vector<DraftNode> storage(8);
  Draft draft(storage, {});
  strategy.propose({}, draft);
  EXPECT_EQ(draft.view().kind(), DraftKind::ordered);
  ASSERT_EQ(draft.size(), 2U);
  EXPECT_EQ(draft[1].token, 2);
  EXPECT_LE(draft[1].path_probability, draft[0].path_probability) << "where the sampled one states more";
}
TEST(UnionDrafter, PassesOnWhatIsOptional) {
  UnionDrafter strategy(PromptLookupDrafter<>(), Scripted{}, Curious{{}, 3}, Curious{{}, 2});
  EXPECT_EQ(strategy.top_k_wanted(), 3U);
  strategy.reserve(1000);
  EXPECT_GE(strategy.memory_bytes(), 4000U);
  EXPECT_EQ(strategy.memory_bytes(), strategy.member<0>().memory_bytes());
}

TEST(UnionDrafter, RebasesMembersAndKeepsWhatItLearnedOfThem) {
  UnionDrafter strategy(Keeping{{{node(1, -1, 60)}}}, Scripted{{{node(2, -1, 60)}}});
  for (int i = 0; i < 10; ++i) {
    const Nodes nodes = drafted_by(strategy);
    strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 2, .top_k = {}});
  }
  strategy.member<0>().told->calls.clear();
  strategy.member<1>().told->calls.clear();
  strategy.rebase({}, Tokens{1, 2, 3});
  EXPECT_THAT(strategy.member<0>().told->calls, ElementsAre("rebase 3"));
  EXPECT_THAT(strategy.member<1>().told->calls, ElementsAre("begin 3")) << "it cannot rebase";
  const Nodes nodes = drafted_by(strategy);
  EXPECT_THAT(tokens_of(nodes), ElementsAre(2, 1)) << "the first is still believed less";
  strategy.rebase({}, Tokens{1, 2});
  strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 2, .top_k = {}});
  EXPECT_THAT(strategy.member<0>().told->outcomes.back().draft, IsEmpty()) << "what was proposed is gone";
}
TEST(UnionDrafter, DraftsWhatTheContextSaidBeforeItWasRebased) {
  Lent strategy{UnionDrafter(NgramDrafter<>(), PromptLookupDrafter<>())};
  strategy.begin(Tokens{1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21, 22});
  strategy.rebase(Tokens{1, 20, 21, 22, 2, 3, 4, 5});
  EXPECT_EQ(strategy.propose().tokens().at(0), 6);
  strategy.begin(Tokens{1, 20, 21, 22, 2, 3, 4, 5});
  EXPECT_THAT(strategy.propose().tokens(), Not(Contains(6)));
}

/// The naive reference: the union by its definition, with maps and copies.
struct Naive {
  struct Entry {
    Token token = 0;
    DraftNode claim;
    Probability conditional;
    std::size_t order = 0;
    Probability path;
  };
  std::map<Tokens, Entry> tree;  // regular nodes by their path

  void add(const Nodes& nodes, const reprise::detail::ClaimCalibrator& trust) {
    const DraftView view(nodes, DraftKind::ordered);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Tokens path = path_to(view, static_cast<NodeIndex>(i));
      Probability conditional = conditional_probability(view, i);
      if (nodes[i].source != DraftSource::jump_forward)
        conditional = Probability::from_raw(trust.trusted(reprise::detail::ClaimCalibrator::claim(view, i)) << 14);
      const auto [at, is_new] = tree.try_emplace(path, Entry{nodes[i].token, nodes[i], conditional, tree.size(), {}});
      if (!is_new && conditional > at->second.conditional) {
        at->second.claim = nodes[i];
        at->second.conditional = conditional;
      }
    }
  }
  /// The whole tree in order: path and probability.
  std::vector<std::pair<Tokens, Entry>> ordered() {
    for (auto& [path, entry] : tree) {  // a path comes after its prefixes
      const Tokens before(path.begin(), path.end() - 1);
      entry.path = entry.conditional * (before.empty() ? Probability::one() : tree.at(before).path);
    }
    std::vector<std::pair<Tokens, Entry>> all(tree.begin(), tree.end());
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.path != b.second.path ? a.second.path > b.second.path : a.second.order < b.second.order;
    });
    return all;
  }
};

TEST(UnionDrafter, IsWhatTheNaiveUnionIs) {
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    const TreeOptions options{.nodes = 12, .duplicates = false};
    UnionDrafter strategy(Scripted{{random_tree(random, options)}}, Calibrated{{random_tree(random, options)}},
                          Scripted{{random_tree(random, options)}});
    // A few rounds first, so that the members are trusted differently.
    for (std::size_t i = random.below(5); i > 0; --i) {
      const Nodes nodes = drafted_by(strategy);
      strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 1, .top_k = {}});
    }
    const DraftBudget budget{.max_nodes = random.chance(50) ? 64 : random.below(12)};
    const Nodes nodes = drafted_by(strategy, budget);
    Naive naive;
    naive.add(strategy.member<0>().told->proposed, strategy.trust(0));
    naive.add(strategy.member<1>().told->proposed, strategy.trust(1));
    naive.add(strategy.member<2>().told->proposed, strategy.trust(2));
    const auto wanted = naive.ordered();
    ASSERT_EQ(nodes.size(), std::min(wanted.size(), budget.max_nodes));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      ASSERT_EQ(path_to({nodes, DraftKind::ordered}, static_cast<NodeIndex>(i)), wanted[i].first) << "round " << round;
      ASSERT_EQ(nodes[i].path_probability, wanted[i].second.path);
      ASSERT_EQ(nodes[i].source, wanted[i].second.claim.source);
      ASSERT_EQ(nodes[i].match_length, wanted[i].second.claim.match_length);
    }
  }
}

TEST(UnionDrafter, KeepsTheContractOfStrategies) {
  for (const DraftShape shape : {DraftShape::chain, DraftShape::tree}) {
    for (const std::size_t leaves : {std::size_t{2}, unlimited}) {
      StrategyCheck check;
      check.budget = {.max_nodes = 12, .max_depth = 5, .max_leaves = leaves, .shape = shape};
      const Report report =
          check_strategy([] { return UnionDrafter(NgramDrafter<>(), PromptLookupDrafter<>()); }, check);
      EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
    }
  }
}
TEST(UnionDrafter, IsLossless) {
  EXPECT_GT(passes_saved_losslessly([](TokenSpan) { return UnionDrafter(NgramDrafter<>(), PromptLookupDrafter<>()); }),
            100U);
  passes_saved_losslessly([](TokenSpan) { return UnionDrafter(HostileStrategy(1, 4), HostileStrategy(2, 4)); });
  passes_saved_losslessly([](TokenSpan) { return UnionDrafter(NgramDrafter<>(), HostileStrategy(2, 4)); });
}
TEST(UnionDrafter, SaysWhatItsMembersSay) {
  for (const bool left_out : {false, true}) {
    UnionDrafter strategy(Scripted{{}, DraftKind::ordered, left_out}, Scripted{});
    EXPECT_EQ(propose(strategy, {}).left_out, left_out);
  }
  UnionDrafter strategy(Scripted{{node(1, 7, 10)}}, Scripted{{node(2, -1, 10)}});
  EXPECT_TRUE(propose(strategy, Tokens{1}, {}).malformed);
  UnionDrafter well_formed(Scripted{{node(1, -1, 10)}}, Scripted{{node(2, -1, 10)}});
  EXPECT_FALSE(propose(well_formed, Tokens{1}, {}).malformed);
}

}  // namespace
}  // namespace reprise::testing::union_drafter_test
