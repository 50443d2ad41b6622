// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/union_drafter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/combined_world.hpp"
#include "support/hostile_strategy.hpp"

namespace reprise::testing::first_match_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

static_assert(DraftStrategy<FirstMatch<PromptLookupDrafter<>, NgramDrafter<>>>);
static_assert(DistributionStrategy<FirstMatch<PromptLookupDrafter<>, ExternalDrafter>>);
static_assert(!DistributionStrategy<FirstMatch<PromptLookupDrafter<>, NgramDrafter<>>>);
static_assert(TopKLearner<FirstMatch<Scripted, Curious>> && !TopKLearner<FirstMatch<Scripted>>);
static_assert(RebasableStrategy<FirstMatch<Scripted, Keeping>> && !RebasableStrategy<FirstMatch<Scripted>>);
static_assert(CalibratedStrategy<FirstMatch<Calibrated, Calibrated>>);
static_assert(!CalibratedStrategy<FirstMatch<Calibrated, Scripted>>, "one of them may not be what it says");

TEST(FirstMatch, TakesTheFirstDraftAndAsksNoFurther) {
  FirstMatch strategy(Scripted{}, Scripted{{node(1, -1, 10)}}, Scripted{{node(2, -1, 90)}});
  EXPECT_THAT(tokens_of(drafted_by(strategy)), ElementsAre(1));
  EXPECT_THAT(strategy.member<0>().told->calls, ElementsAre("propose"));
  EXPECT_THAT(strategy.member<1>().told->calls, ElementsAre("propose"));
  EXPECT_THAT(strategy.member<2>().told->calls, IsEmpty());
}
TEST(FirstMatch, KeepsASampledDraftAsItIs) {
  const std::array<Token, 2> drawn = {7, 8};
  const std::array<float, 2> stated = {0.25F, 0.5F};
  const std::array<float, 6> distributions = {0.25F, 0.5F, 0.25F, 0.125F, 0.75F, 0.125F};
  FirstMatch strategy(Scripted{}, ExternalDrafter());
  ASSERT_TRUE(strategy.member<1>().set({.tokens = drawn,
                                        .probabilities = stated,
                                        .kind = DraftKind::sampled,
                                        .distributions = distributions,
                                        .vocabulary = 3}));
  EXPECT_EQ(propose(strategy, {}).kind, DraftKind::sampled);
  EXPECT_THAT(strategy.distribution(0), ElementsAre(0.25F, 0.5F, 0.25F));
  EXPECT_THAT(strategy.distribution(1), ElementsAre(0.125F, 0.75F, 0.125F));
  strategy.observe(Tokens{1}, 1, Origin::output);
  EXPECT_THAT(strategy.distribution(0), IsEmpty());
}
TEST(FirstMatch, HasNoDistributionForADraftThatComesFromElsewhere) {
  FirstMatch strategy(Scripted{{node(1, -1, 50)}}, ExternalDrafter());
  drafted_by(strategy);
  EXPECT_THAT(strategy.distribution(0), IsEmpty());
}
TEST(FirstMatch, LeavesNothingOfAMemberThatOnlySaidItsDraftWasSampled) {
  FirstMatch strategy(Scripted{{}, DraftKind::sampled}, Scripted{{node(1, -1, 50)}});
  EXPECT_EQ(propose(strategy, {}).kind, DraftKind::ordered);
}
TEST(FirstMatch, SaysThatSomethingWasLeftOut) {
  for (const bool left_out : {false, true}) {
    FirstMatch strategy(Scripted{{}, DraftKind::ordered, left_out}, Scripted{});
    EXPECT_EQ(propose(strategy, {}).left_out, left_out);
  }
}
TEST(FirstMatch, PassesOnWhatMembersAreTold) {
  FirstMatch strategy(Scripted{}, Scripted{});
  strategy.begin(Tokens{1, 2});
  strategy.observe(Tokens{3}, 1, Origin::output);
  strategy.truncate(Tokens{1, 2, 3}, 1);
  EXPECT_THAT(strategy.member<0>().told->calls, ElementsAre("begin 2", "observe 1", "truncate 1"));
  EXPECT_THAT(strategy.member<1>().told->calls, ElementsAre("begin 2", "observe 1", "truncate 1"));
}
TEST(FirstMatch, PassesOnWhatIsOptional) {
  FirstMatch strategy(Keeping{{{node(1, -1, 10)}}, 3}, Scripted{}, Curious{{}, 2});
  EXPECT_EQ(strategy.memory_bytes(), 3U);
  EXPECT_EQ(strategy.top_k_wanted(), 2U);
  const Nodes nodes = drafted_by(strategy);
  strategy.reserve(9);
  strategy.rebase({}, Tokens{1, 2});
  EXPECT_THAT(strategy.member<0>().told->calls, ElementsAre("propose", "reserve 9", "rebase 2"));
  EXPECT_THAT(strategy.member<1>().told->calls, ElementsAre("begin 2")) << "it cannot rebase";
  strategy.feedback({}, {.draft = {nodes, DraftKind::ordered}, .sent = {}, .accepted = {}, .pick = 5, .top_k = {}});
  EXPECT_THAT(strategy.member<0>().told->outcomes.at(0).draft, IsEmpty()) << "what was proposed is gone";
}
TEST(FirstMatch, SaysThatAMemberPushedAMalformedNode) {
  FirstMatch strategy(Scripted{{node(1, 7, 10)}}, Scripted{});
  EXPECT_TRUE(propose(strategy, Tokens{1}, {}).malformed);
  FirstMatch well_formed(Scripted{}, Scripted{{node(1, -1, 10)}});
  EXPECT_FALSE(propose(well_formed, Tokens{1}, {}).malformed);
}
TEST(FirstMatch, KeepsTheContractOfStrategies) {
  PromptLookupOptions long_matches;
  long_matches.min_ngram = 3;
  const Report report =
      check_strategy([&] { return FirstMatch(PromptLookupDrafter<>::make(long_matches).value(), NgramDrafter<>()); });
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
}
TEST(FirstMatch, IsLossless) {
  PromptLookupOptions long_matches;
  long_matches.min_ngram = 3;
  EXPECT_GT(passes_saved_losslessly([&](TokenSpan) {
              return FirstMatch(PromptLookupDrafter<>::make(long_matches).value(), NgramDrafter<>());
            }),
            100U);
  passes_saved_losslessly([](TokenSpan) { return FirstMatch(HostileStrategy(1, 4), NgramDrafter<>()); });
}

}  // namespace
}  // namespace reprise::testing::first_match_test
