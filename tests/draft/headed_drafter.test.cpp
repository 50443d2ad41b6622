// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/headed_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/fails.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::testing::headed_drafter_test {
namespace {

using reprise::detail::HeadedDrafter;
using reprise::detail::HeadForecast;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Headed = HeadedDrafter<Calibrated>;

static_assert(DraftStrategy<HeadedDrafter<>> && CalibratedStrategy<HeadedDrafter<>>);
static_assert(RebasableStrategy<HeadedDrafter<>>);
static_assert(reprise::detail::RememberingStrategy<HeadedDrafter<>>);
static_assert(!reprise::detail::RememberingStrategy<Headed>);

constexpr double token = 65536;

Headed with_lookup(const Nodes& nodes) { return Headed(Calibrated{{nodes}}); }

/// Runs a round in which the target picks `text`. `head`: the head's draft, or none. Returns the forecast before it.
HeadForecast round(Headed& strategy, const Tokens& text, const Tokens& head = {}, const DraftBudget& budget = {}) {
  strategy.clear();
  static_cast<void>(drafted_by(strategy));
  const HeadForecast forecast = strategy.forecast();
  if (!head.empty()) {
    EXPECT_TRUE(strategy.set(head));
  }
  const Nodes nodes = drafted_by(strategy, budget);
  std::vector<NodeIndex> sent;
  std::vector<NodeIndex> accepted;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    sent.push_back(static_cast<NodeIndex>(i));
    const NodeIndex last = accepted.empty() ? anchor_parent : accepted.back();
    if (accepted.size() + 1 < text.size() && nodes[i].parent == last && nodes[i].token == text[accepted.size()])
      accepted.push_back(static_cast<NodeIndex>(i));
  }
  strategy.feedback({}, {.draft = {nodes, DraftKind::ordered},
                         .sent = sent,
                         .accepted = accepted,
                         .pick = text[accepted.size()],
                         .top_k = {}});
  strategy.observe(text, accepted.size() + 1, Origin::output);
  return forecast;
}

TEST(HeadedDrafter, MakesOneTreeOfBothDrafts) {
  Headed strategy = with_lookup({node(1, -1, 90), node(2, 0, 80)});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1, 2)) << "without the head";
  EXPECT_TRUE(strategy.set(Tokens{7, 8}));
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1, 2, 7, 8));
  strategy.observe(Tokens{1}, 1, Origin::output);
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1, 2)) << "a draft of the head is for one context";
}
// Which one was sent does not matter: the target's token shows which one was right.
TEST(HeadedDrafter, ChoosesTheChainThatIsRightMoreOftenWhereBothDiffer) {
  const DraftBudget chain = {.shape = DraftShape::chain};
  Headed strategy = with_lookup({node(1, -1, 90), node(2, 0, 80)});
  const auto chosen = [&] {
    strategy.clear();
    static_cast<void>(drafted_by(strategy, chain));
    EXPECT_TRUE(strategy.set(Tokens{7, 8}));
    return tokens_of(drafted_by(strategy, chain));
  };
  EXPECT_THAT(chosen(), ElementsAre(1, 2)) << "nothing is known of the head";
  round(strategy, {7, 8, 9}, {7, 8}, chain);
  EXPECT_THAT(chosen(), ElementsAre(7, 8));
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < 300; ++i) round(strategy, {1, 2, 3}, {7, 8}, chain);
    EXPECT_THAT(chosen(), ElementsAre(1, 2));
    for (int i = 0; i < 300; ++i) round(strategy, {7, 8, 9}, {7, 8}, chain);
    EXPECT_THAT(chosen(), ElementsAre(7, 8));
    for (int i = 0; i < 300; ++i) round(strategy, {1, 2, 3}, {1, 8}, chain);
    for (int i = 0; i < 300; ++i) round(strategy, {5, 2, 3}, {7, 8}, chain);
    EXPECT_THAT(chosen(), ElementsAre(7, 8)) << "only passes count in which one of two was right";
  }
  EXPECT_THAT(tokens_of(drafted_by(strategy)).size(), 4U) << "a tree holds both";
  for (int i = 0; i < 300; ++i) round(strategy, {1, 2, 3}, {7, 8}, chain);
  EXPECT_THAT(chosen(), ElementsAre(1, 2));
  strategy = Calibrated{{{node(1, -1, 40)}}};
  EXPECT_THAT(chosen(), ElementsAre(7, 8)) << "a lookup that expects little does not go first";
}
// Otherwise, it would not run again, and could not show that it has become better.
TEST(HeadedDrafter, CountsATokenForAHeadThatWasRightInsteadOfTheChainThatWasSent) {
  const DraftBudget chain = {.shape = DraftShape::chain};
  Headed strategy = with_lookup({node(1, -1, 90), node(2, 0, 80)});
  for (int i = 0; i < 300; ++i) round(strategy, {1, 2, 3}, {7, 8}, chain);
  EXPECT_LT(round(strategy, {1, 2, 3}).gain, 65536 / 20);
  for (int i = 0; i < 20; ++i) round(strategy, {7, 8, 9}, {7, 8}, chain);
  EXPECT_GT(round(strategy, {1, 2, 3}).gain, 65536 / 5);
}
TEST(HeadedDrafter, CountsATokenAgainstAHeadThatTookThePlaceOfARightOne) {
  const DraftBudget chain = {.shape = DraftShape::chain};
  Headed strategy = with_lookup({node(1, -1, 90), node(2, 0, 80)});
  for (int i = 0; i < 500; ++i) {
    if (i % 5 < 3)
      round(strategy, {7, 8}, {7}, chain);
    else
      round(strategy, {1, 2, 3}, {7}, chain);
  }
  EXPECT_NEAR(static_cast<double>(round(strategy, {1, 2, 3}).gain) / token, 0.2, 0.15) << "0.6 - 0.4";
}
TEST(HeadedDrafter, MakesOneChainOfBothIfTheyAgree) {
  const DraftBudget chain = {.shape = DraftShape::chain};
  Headed strategy = with_lookup({node(1, -1, 90), node(2, 0, 80), node(3, 1, 70)});
  static_cast<void>(drafted_by(strategy, chain));
  EXPECT_TRUE(strategy.set(Tokens{1}));
  EXPECT_THAT(tokens_of(drafted_by(strategy, chain)), ElementsAre(1, 2, 3));
}
TEST(HeadedDrafter, TakesDraftsWithProbabilitiesOfTheirOwn) {
  Headed strategy = with_lookup({});
  const std::vector<NodeIndex> parents = {-1, -1};
  const std::vector<float> likely = {0.25F, 0.5F};
  EXPECT_TRUE(
      strategy.set(ExternalDrafter::Nodes{.tokens = Tokens{7, 8}, .parents = parents, .probabilities = likely}));
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(8, 7));
  const std::vector<float> wrong = {0.25F};
  EXPECT_THAT(strategy.set(ExternalDrafter::Nodes{.tokens = Tokens{7, 8}, .probabilities = wrong}),
              fails(ErrorCode::invalid_argument));
  EXPECT_THAT(tokens_of(drafted_by(strategy)), IsEmpty());
}
TEST(HeadedDrafter, KeepsAtMostTheTokensOfAForecast) {
  Headed strategy = with_lookup({});
  EXPECT_TRUE(strategy.set(Tokens(100, 7)));
  EXPECT_EQ(drafted_by(strategy, {.max_nodes = 64}).size(), HeadForecast::most_tokens);
}
TEST(HeadedDrafter, LearnsWhatTheHeadAddsToTheLookup) {
  Headed adds = with_lookup({node(1, -1, 90)});
  Headed repeats = with_lookup({node(1, -1, 90)});
  for (int i = 0; i < 40; ++i) {
    round(adds, {1, 2, 3, 4}, {1, 2, 3});
    round(repeats, {1, 2, 3, 4}, {1, 9, 9});
  }
  EXPECT_NEAR(static_cast<double>(round(adds, {1, 2}).gain) / token, 2, 0.3);
  EXPECT_NEAR(static_cast<double>(round(repeats, {1, 2}).gain) / token, 0, 0.05);
}
TEST(HeadedDrafter, ExpectsOneTokenAtFirst) {
  Headed strategy = with_lookup({});
  EXPECT_EQ(round(strategy, {1}).gain, std::int64_t{65536});
}
TEST(HeadedDrafter, LearnsAcceptanceByDepth) {
  Headed strategy = with_lookup({});
  for (int i = 0; i < 200; ++i) round(strategy, {1, 2, 3}, {1, 2, 9});
  const HeadForecast forecast = round(strategy, {1});
  EXPECT_GT(forecast.rates[0].to_double(), 0.8);
  EXPECT_GT(forecast.rates[1].to_double(), 0.9);
  EXPECT_LT(forecast.rates[2].to_double(), 0.1);
  EXPECT_DOUBLE_EQ(forecast.rates[3].to_double(), 0.75) << "never tested";
}
TEST(HeadedDrafter, KeepsTextsThatTheLookupFindsApart) {
  Headed strategy = with_lookup({node(1, -1, 99), node(2, 0, 98), node(3, 1, 97)});
  for (int i = 0; i < 40; ++i) round(strategy, {1, 2, 3, 4}, {1, 2, 3});
  EXPECT_LT(round(strategy, {1, 2, 3, 4}).gain, 65536 / 10);
  strategy = Calibrated{};
  EXPECT_GT(round(strategy, {1}).gain, 65536 / 2) << "another range";
}
// What keeps a head from running must not do so for ever.
TEST(HeadedDrafter, ExpectsMoreOfAHeadThatHasNotRunForLong) {
  Headed strategy = with_lookup({});
  for (int i = 0; i < 1000; ++i) round(strategy, {1}, {9});
  EXPECT_LT(round(strategy, {1}).gain, 65536 / 20);
  for (int i = 0; i < 8000; ++i) round(strategy, {1});
  EXPECT_GT(round(strategy, {1}).gain, 65536 * 3 / 4);
}
TEST(HeadedDrafter, NoticesAHeadThatTurnsBadWithinTenPasses) {
  Headed strategy = with_lookup({});
  for (int i = 0; i < 1000; ++i) round(strategy, {1, 2, 3}, {1, 2});
  const std::int64_t good = round(strategy, {1}).gain;
  EXPECT_GT(good, 65536 * 3 / 2);
  for (int i = 0; i < 10; ++i) round(strategy, {1, 2, 3}, {9, 9});
  EXPECT_LT(round(strategy, {1}).gain, good / 2);
  strategy.begin({});
  EXPECT_GT(round(strategy, {1}).gain, good / 2) << "another text";
}
TEST(HeadedDrafter, LearnsNothingFromARoundWithoutADraft) {
  Headed strategy = with_lookup({node(1, -1, 90)});
  const std::int64_t before = round(strategy, {1}).gain;
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(strategy.set(Tokens{9}));
    static_cast<void>(drafted_by(strategy));  // cancelled
    strategy.observe(Tokens{1}, 1, Origin::output);
    round(strategy, {1});
    EXPECT_TRUE(strategy.set(Tokens{9}));
    static_cast<void>(drafted_by(strategy));
    strategy.begin({});
    strategy.feedback({}, {.draft = {}, .sent = {}, .accepted = {}, .pick = 1, .top_k = {}});
  }
  EXPECT_NEAR(static_cast<double>(round(strategy, {1}).gain), static_cast<double>(before), 65536 / 10);
}
TEST(HeadedDrafter, LearnsRatesOfATreeUpToItsFirstBranch) {
  Headed strategy = with_lookup({});
  const std::vector<NodeIndex> parents = {-1, -1, 1};
  const std::vector<float> likely = {0.5F, 0.5F, 0.5F};
  static_cast<void>(drafted_by(strategy));
  const Probability before = strategy.forecast().rates[2];
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(
        strategy.set(ExternalDrafter::Nodes{.tokens = Tokens{7, 8, 9}, .parents = parents, .probabilities = likely}));
    const Nodes nodes = drafted_by(strategy);
    strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 1, .top_k = {}});
  }
  EXPECT_EQ(strategy.forecast().rates[2], before);
}
TEST(HeadedDrafter, LearnsNothingFromARoundWithoutFeedback) {
  Headed strategy = with_lookup({node(1, -1, 90)});
  const HeadForecast before = round(strategy, {1});
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(strategy.set(Tokens{9}));
    static_cast<void>(drafted_by(strategy));  // cancelled
    strategy.clear();
  }
  EXPECT_NEAR(static_cast<double>(round(strategy, {1}).gain), static_cast<double>(before.gain), 65536 / 100);
}
TEST(HeadedDrafter, FollowsTheContractOfStrategies) {
  const Report report = check_strategy([] { return HeadedDrafter<>(); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}

}  // namespace
}  // namespace reprise::testing::headed_drafter_test
