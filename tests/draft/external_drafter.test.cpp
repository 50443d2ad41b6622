// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/external_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/fails.hpp"

namespace reprise::testing::external_drafter_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Tokens four = {10, 11, 12, 13};
const std::vector<NodeIndex> parents = {-1, -1, 0, 1};
const std::vector<float> likely = {0.25F, 0.5F, 0.5F, 0.75F};

ExternalDrafter with(const ExternalDrafter::Nodes& nodes) {
  ExternalDrafter strategy;
  EXPECT_TRUE(strategy.set(nodes));
  return strategy;
}
Drafted proposed(ExternalDrafter& strategy, const DraftBudget& budget = {}) {
  return propose(strategy, {}, budget, 16);
}

TEST(ExternalDrafter, SaysWhatItCannotReserve) {
  ExternalDrafter drafter;
  EXPECT_THAT(drafter.reserve_nodes(unlimited), testing::fails(ErrorCode::out_of_memory));
  EXPECT_TRUE(drafter.reserve_nodes(8));
}

TEST(ExternalDrafter, DraftsAChainAsItWasHandedIn) {
  ExternalDrafter strategy = with({.tokens = four});
  const Nodes nodes = drafted_by(strategy);
  EXPECT_EQ(tokens_of(nodes), four);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].parent, static_cast<NodeIndex>(i) - 1);
    EXPECT_EQ(nodes[i].path_probability, Probability::one());
    EXPECT_EQ(nodes[i].source, DraftSource::external);
  }
}
TEST(ExternalDrafter, PutsATreeInOrder) {
  ExternalDrafter strategy = with({.tokens = four, .parents = parents, .probabilities = likely});
  const Nodes nodes = drafted_by(strategy);
  EXPECT_THAT(tokens_of(nodes), ElementsAre(11, 13, 10, 12));
  EXPECT_THAT((std::vector<NodeIndex>{nodes[0].parent, nodes[1].parent, nodes[2].parent, nodes[3].parent}),
              ElementsAre(-1, 0, -1, 2));
  EXPECT_DOUBLE_EQ(nodes[1].path_probability.to_double(), 0.375) << "of the path: 0.5 times 0.75";
  EXPECT_DOUBLE_EQ(nodes[3].path_probability.to_double(), 0.125);
}
TEST(ExternalDrafter, IsForTheContextAsItIs) {
  const ExternalDrafter set = with({.tokens = four});
  ExternalDrafter strategy = set;
  drafted_by(strategy);
  EXPECT_EQ(drafted_by(strategy).size(), 4U) << "a round that was cancelled";
  strategy.observe(Tokens{1}, 1, Origin::output);
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  strategy = set;
  strategy.truncate(Tokens{1, 2}, 1);
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  strategy = set;
  strategy.begin(Tokens{1});
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  strategy = set;
  strategy.clear();
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  strategy = set;
  ASSERT_TRUE(strategy.set({.tokens = TokenSpan(four).first(1)}));
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(10)) << "the last one counts";
}
TEST(ExternalDrafter, StaysInItsBudget) {
  ExternalDrafter strategy = with({.tokens = four, .parents = parents, .probabilities = likely});
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_nodes = 3})), ElementsAre(11, 13, 10));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_depth = 1})), ElementsAre(11, 10));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.max_leaves = 1})), ElementsAre(11, 13));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.shape = DraftShape::chain})), ElementsAre(11, 13));
  EXPECT_THAT(tokens_of(drafted_by(strategy, {.min_path_probability = Probability::ratio(3, 10)})),
              ElementsAre(11, 13));
}
TEST(ExternalDrafter, KeepsTheOrderOfASampledDraftAndItsDistributions) {
  const std::vector<float> distributions = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5F, 0.5F, 0};
  ExternalDrafter strategy = with({.tokens = four,
                                   .probabilities = likely,
                                   .kind = DraftKind::sampled,
                                   .distributions = distributions,
                                   .vocabulary = 3});
  const Drafted whole = proposed(strategy);
  EXPECT_EQ(whole.kind, DraftKind::sampled);
  EXPECT_EQ(whole.tokens(), four);
  EXPECT_THAT(strategy.distribution(1), ElementsAre(0, 1, 0));
  EXPECT_THAT(strategy.distribution(3), ElementsAre(0.5F, 0.5F, 0));
  EXPECT_THAT(strategy.distribution(4), IsEmpty());
  EXPECT_THAT(strategy.distribution(anchor_parent), IsEmpty());
  // Nodes that are left out have no distribution.
  proposed(strategy, {.max_nodes = 2});
  EXPECT_THAT(strategy.distribution(1), ElementsAre(0, 1, 0));
  EXPECT_THAT(strategy.distribution(2), IsEmpty());
  // The draft ends at the first node that is too unlikely, because later tokens were drawn after that one.
  const Drafted cut = proposed(strategy, {.min_path_probability = Probability::ratio(3, 10)});
  EXPECT_EQ(cut.nodes.size(), 0U);
  EXPECT_TRUE(cut.left_out);
}
TEST(ExternalDrafter, EndsASampledDraftWhereItBranches) {
  ExternalDrafter strategy = with({.tokens = four, .parents = parents, .kind = DraftKind::sampled});
  EXPECT_THAT(proposed(strategy).tokens(), ElementsAre(10)) << "11 is another child of the anchor";
}
TEST(ExternalDrafter, LeavesARepeatedChildOut) {
  const Tokens twice = {10, 10, 11};
  const std::vector<NodeIndex> from = {-1, -1, 1};
  for (const DraftKind kind : {DraftKind::ordered, DraftKind::sampled}) {
    ExternalDrafter strategy = with({.tokens = twice, .parents = from, .kind = kind});
    const Drafted draft = proposed(strategy);
    EXPECT_THAT(draft.tokens(), ElementsAre(10));
    EXPECT_FALSE(draft.malformed);
  }
}
TEST(ExternalDrafter, RefusesWhatMakesNoSenseAndThenDraftsNothing) {
  const auto refused = [](const ExternalDrafter::Nodes& nodes, std::string_view why) {
    ExternalDrafter strategy = with({.tokens = four});
    EXPECT_THAT(strategy.set(nodes), testing::fails(ErrorCode::invalid_argument, {}, {}, std::string(why))) << why;
    EXPECT_THAT(drafted_by(strategy), IsEmpty());
  };
  for (const NodeIndex bad : {-2, 2, 3, std::numeric_limits<NodeIndex>::min(), std::numeric_limits<NodeIndex>::max()}) {
    const std::vector<NodeIndex> wrong = {-1, 0, bad, 1};
    refused({.tokens = four, .parents = wrong}, "a parent is neither an earlier node nor anchor_parent");
  }
  refused({.tokens = four, .parents = std::span(parents).first(3)}, "parents has the wrong length");
  refused({.tokens = four, .probabilities = std::span(likely).first(3)}, "probabilities has the wrong length");
  for (const float bad : {-0.1F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> wrong = {0.5F, bad, 0.5F, 0.5F};
    refused({.tokens = four, .probabilities = wrong}, "negative, or not a number");
  }
  const std::vector<float> distributions(8, 0.5F);
  refused({.tokens = four, .kind = DraftKind::sampled, .distributions = distributions, .vocabulary = 3}, "one weight");
  refused({.tokens = four, .kind = DraftKind::sampled, .distributions = distributions}, "one weight");
  refused({.tokens = four, .distributions = distributions, .vocabulary = 2}, "only a sampled draft");
}
TEST(ExternalDrafter, ReadsMoreThanOneAsOne) {
  const std::vector<float> rounded = {1.001F, std::numeric_limits<float>::infinity(), 1, 0};
  ExternalDrafter strategy = with({.tokens = four, .probabilities = rounded});
  const Nodes nodes = drafted_by(strategy);
  EXPECT_EQ(nodes[2].path_probability, Probability::one());
  EXPECT_EQ(nodes[3].path_probability, Probability::zero());
}
TEST(ExternalDrafter, TakesNothingForNoDraft) {
  ExternalDrafter strategy = with({});
  EXPECT_THAT(drafted_by(strategy), IsEmpty());
  EXPECT_EQ(strategy.size(), 0U);
}

/// The draft head of an engine, as a strategy: it knows the context and provides a tree of guesses.
class Head {
 public:
  explicit Head(DraftKind kind = DraftKind::ordered) : kind_(kind) {}
  void begin(TokenSpan context) {
    external_.begin(context);
    guess(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    external_.observe(context, fresh, origin);
    guess(context);
  }
  void truncate(TokenSpan context, std::size_t size) {
    external_.truncate(context, size);
    guess(context.first(std::min(size, context.size())));
  }
  void feedback(TokenSpan context, const Outcome& outcome) { external_.feedback(context, outcome); }
  void propose(TokenSpan context, Draft& draft) { external_.propose(context, draft); }

 private:
  void guess(TokenSpan context) {
    if (context.empty()) return;
    Random random(static_cast<std::uint64_t>(context.back()) + context.size() % 3);
    Tokens tokens;
    std::vector<NodeIndex> from;
    std::vector<float> probabilities;
    for (std::size_t i = 0; i < 9; ++i) {
      tokens.push_back(static_cast<Token>(random.below(4)));
      from.push_back(static_cast<NodeIndex>(random.below(i + 1)) - 1);
      probabilities.push_back(static_cast<float>(random.below(100)) / 100);
    }
    ASSERT_TRUE(external_.set({.tokens = tokens, .parents = from, .probabilities = probabilities, .kind = kind_}));
  }
  DraftKind kind_;
  ExternalDrafter external_;
};

TEST(ExternalDrafter, KeepsTheContractOfStrategies) {
  for (const DraftKind kind : {DraftKind::ordered, DraftKind::sampled}) {
    StrategyCheck check;
    check.budget = {.max_nodes = 7, .max_depth = 3, .max_leaves = 3};
    const Report report = check_strategy([&] { return Head(kind); }, check);
    EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  }
}
TEST(ExternalDrafter, IsLossless) {
  EXPECT_GT(passes_saved_losslessly([](TokenSpan) { return Head(); }), 20U);
  passes_saved_losslessly([](TokenSpan) { return Head(DraftKind::sampled); });
  EXPECT_GT(passes_saved_losslessly([](TokenSpan) { return UnionDrafter(NgramDrafter<>(), Head()); }), 100U);
}

}  // namespace
}  // namespace reprise::testing::external_drafter_test
