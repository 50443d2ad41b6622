// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/best_of.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <utility>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::testing::best_of_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

static_assert(DraftStrategy<BestOf<PromptLookupDrafter<>, NgramDrafter<>>>);
static_assert(RebasableStrategy<BestOf<Scripted, Keeping>> && !RebasableStrategy<BestOf<Scripted>>);

/// One round in which the target picks `pick` first, whatever was drafted.
template <class Strategy>
void live_through(Strategy& strategy, Token pick) {
  const Nodes nodes = drafted_by(strategy);
  strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = pick, .top_k = {}});
  strategy.observe(Tokens{pick}, 1, Origin::output);
}

TEST(BestOf, TakesTheDraftThatCanBeExpectedToSaveMost) {
  // Expected accepted tokens: 0.8 + 0.2 against 0.6 + 0.6.
  BestOf strategy(Calibrated{{{node(1, -1, 80), node(2, 0, 20)}}}, Calibrated{{{node(3, -1, 60), node(4, 0, 60)}}});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(3, 4));
  BestOf turned(Calibrated{{{node(3, -1, 60)}}}, Calibrated{{{node(1, -1, 80), node(2, 0, 20)}}});
  EXPECT_THAT(tokens_of(drafted_by(turned)), ElementsAre(1, 2));
  BestOf equal(Calibrated{{{node(3, -1, 60)}}}, Calibrated{{{node(1, -1, 60)}}});
  EXPECT_THAT(tokens_of(drafted_by(equal)), ElementsAre(3)) << "of equal ones the first";
  BestOf one(Scripted{}, Calibrated{{{node(1, -1, 1)}}});
  EXPECT_THAT(tokens_of(drafted_by(one)), ElementsAre(1));
  BestOf none(Scripted{}, Scripted{});
  EXPECT_THAT(drafted_by(none), IsEmpty());
}
TEST(BestOf, LearnsFromWhatWasNotChosenToo) {
  BestOf strategy(Scripted{{node(1, -1, 100)}}, Scripted{{node(2, -1, 60)}});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1));
  for (int i = 0; i < 6; ++i) live_through(strategy, 2);
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(2)) << "the first claims more, and is believed less";
  for (int i = 0; i < 60; ++i) live_through(strategy, 1);
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1)) << "never chosen, and comes back";
  BestOf fork = strategy;
  for (int i = 0; i < 300; ++i) live_through(fork, 2);
  EXPECT_THAT(tokens_of(drafted_by(fork)), ElementsAre(2));
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1)) << "a copy learns by itself";
}
TEST(BestOf, StatesWhatTheClaimsProvedToBeWorth) {
  BestOf strategy(Scripted{{node(1, -1, 100), node(2, 0, 100)}});
  for (int i = 0; i < 200; ++i) live_through(strategy, i % 4 == 0 ? 9 : 1);
  const Nodes nodes = drafted_by(strategy);
  EXPECT_NEAR(nodes.at(0).path_probability.to_double(), 0.75, 0.08);
}
TEST(BestOf, PassesOnWhatIsOptional) {
  BestOf strategy(Keeping{{}, 3}, Scripted{}, Keeping{{}, 4}, Curious{{}, 2});
  EXPECT_EQ(strategy.memory_bytes(), 7U);
  EXPECT_EQ(strategy.top_k_wanted(), 2U);
  strategy.reserve(9);
  strategy.rebase({}, Tokens{1, 2});
  EXPECT_THAT(strategy.member<0>().told->calls, ElementsAre("reserve 9", "rebase 2"));
  EXPECT_THAT(strategy.member<1>().told->calls, ElementsAre("begin 2"));
  EXPECT_THAT(strategy.member<2>().told->calls, ElementsAre("reserve 9", "rebase 2"));
}
TEST(BestOf, KeepsTheContractOfStrategies) {
  const Report report = check_strategy([] { return BestOf(NgramDrafter<>(), PromptLookupDrafter<>()); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST(BestOf, IsLossless) {
  EXPECT_GT(passes_saved_losslessly([](TokenSpan) { return BestOf(NgramDrafter<>(), PromptLookupDrafter<>()); }), 100U);
  passes_saved_losslessly([](TokenSpan) { return BestOf(HostileStrategy(1, 4), NgramDrafter<>()); });
}

}  // namespace
}  // namespace reprise::testing::best_of_test
