// SPDX-License-Identifier: Apache-2.0
#include "reprise_methods/repetition_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise_methods/token_recycling_drafter.hpp"
#include "reprise_testing/check_strategy.hpp"
#include "reprise_testing/random.hpp"
#include "support/combined_world.hpp"
#include "support/fails.hpp"
#include "support/lent_context.hpp"
#include "support/streams.hpp"

namespace reprise::repetition_gate_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Random;
using testing::Scripted;
using Tokens = std::vector<Token>;
using Options = RepetitionGateOptions;

static_assert(ReservableStrategy<RepetitionGate<PromptLookupDrafter<>>> &&
              MeasurableStrategy<RepetitionGate<PromptLookupDrafter<>>>);
static_assert(!RebasableStrategy<RepetitionGate<PromptLookupDrafter<>>> &&
              RebasableStrategy<RepetitionGate<NgramDrafter<>>>);
static_assert(!CalibratedStrategy<RepetitionGate<PromptLookupDrafter<>>> &&
              CalibratedStrategy<RepetitionGate<NgramDrafter<>>>);
static_assert(!RowLearner<RepetitionGate<PromptLookupDrafter<>>> && RowLearner<RepetitionGate<NgramDrafter<>>>);
static_assert(!TopKLearner<RepetitionGate<PromptLookupDrafter<>>> &&
              TopKLearner<RepetitionGate<TokenRecyclingDrafter>>);
static_assert(!DistributionStrategy<RepetitionGate<PromptLookupDrafter<>>> &&
              DistributionStrategy<RepetitionGate<ExternalDrafter>>);

/// mlx-lm's score by its definition: the share of windows of n tokens that occurred before.
Probability score_of(const Tokens& tokens, std::size_t n = 3) {
  if (tokens.size() < n + 1) return Probability::zero();
  std::set<Tokens> seen;
  std::uint32_t repeats = 0;
  std::uint32_t total = 0;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    ++total;
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(i);
    if (!seen.insert({begin, begin + static_cast<std::ptrdiff_t>(n)}).second) ++repeats;
  }
  return Probability::ratio(repeats, total);
}
Tokens distinct(std::size_t size) { return testing::make_stream(testing::Stream::all_distinct, size, 0); }

using Lent = testing::Lent<RepetitionGate<Scripted>>;
Lent gate(const Options& options = {}) {
  return Lent(RepetitionGate<Scripted>::make(Scripted{{{.token = 1}}}, options).value());
}

TEST(RepetitionGate, ScoresAsItsRuleWhateverBecomesOfTheContext) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    Options options{.ngram = static_cast<std::uint32_t>(1 + random.below(4)), .prompt_only = false};
    auto strategy = gate(options);
    Tokens context = testing::make_stream(testing::Stream::trace_like, random.below(120), random.next(), 12);
    strategy.begin(context);
    for (int step = 0; step < 10; ++step) {
      const auto copy = strategy;
      ASSERT_EQ(strategy->score(), score_of(context, options.ngram));
      if (random.chance(40)) {
        context.resize(random.below(context.size() + 1));
        strategy.truncate(context.size());
      } else {
        const Tokens more = testing::make_stream(testing::Stream::zipf, random.below(30), random.next(), 9);
        context.insert(context.end(), more.begin(), more.end());
        strategy.observe(more, random.chance(50) ? Origin::prompt : Origin::output);
      }
      ASSERT_EQ(strategy->score(), score_of(context, options.ngram));
    }
  }
}

TEST(RepetitionGate, DraftsFromItsThresholdOn) {
  // 50 n-grams, one of which occurred before: exactly 2%.
  Tokens tokens = distinct(49);
  tokens.insert(tokens.end(), {0, 1, 2});
  ASSERT_EQ(score_of(tokens), Probability::ratio(1, 50));
  auto strategy = gate();
  strategy.begin(tokens);
  EXPECT_TRUE(strategy->open());
  EXPECT_THAT(strategy.propose().tokens(), ElementsAre(1));
  tokens = distinct(50);
  tokens.insert(tokens.end(), {0, 1, 2});
  strategy.begin(tokens);
  EXPECT_FALSE(strategy->open()) << "one of 51";
  EXPECT_THAT(strategy.propose().tokens(), IsEmpty());
}

TEST(RepetitionGate, DoesNotAskWhileItIsClosedButTellsEverything) {
  auto strategy = gate();
  strategy.begin(distinct(20));
  EXPECT_THAT(strategy.propose().tokens(), IsEmpty());
  strategy.observe(Tokens{5}, Origin::output);
  strategy.feedback({{}, {}, {}, Token{5}, Cut::throttled, {}});
  strategy.truncate(7);
  EXPECT_THAT(strategy->strategy().told->calls, ElementsAre("begin 20", "observe 1", "feedback", "truncate 7"));
}

TEST(RepetitionGate, SaysThatItHoldsBackWhereverItIs) {
  const auto holds_back = [](auto strategy) {
    testing::Lent lent(std::move(strategy));
    lent.begin(distinct(20));
    return lent.propose().held_back;
  };
  EXPECT_TRUE(holds_back(RepetitionGate(PromptLookupDrafter<>())));
  EXPECT_TRUE(holds_back(FirstMatch(RepetitionGate(PromptLookupDrafter<>()), NoDrafter())));
  EXPECT_TRUE(holds_back(UnionDrafter(RepetitionGate(PromptLookupDrafter<>()), NoDrafter())));
  EXPECT_FALSE(holds_back(RepetitionGate<NoDrafter>::make(NoDrafter(), {.threshold = Probability::zero()}).value()));
}

TEST(RepetitionGate, LooksAtThePromptOnlyUnlessItIsTold) {
  for (const bool prompt_only : {true, false}) {
    auto strategy = gate({.prompt_only = prompt_only});
    strategy.begin(distinct(20));
    strategy.observe(distinct(20), Origin::output);
    EXPECT_EQ(strategy->open(), !prompt_only);
    strategy.observe(Tokens{77}, Origin::prompt);
    EXPECT_TRUE(strategy->open()) << "the next prompt includes what was said";
    strategy.truncate(40);
    EXPECT_TRUE(strategy->open());
    strategy.truncate(22);
    EXPECT_FALSE(strategy->open());
  }
}

TEST(RepetitionGate, CanBeOverriddenForOneSequence) {
  auto strategy = gate();
  strategy.begin(distinct(20));
  strategy->override_with(true);
  EXPECT_THAT(strategy.propose().tokens(), ElementsAre(1));
  strategy.begin(Tokens(20, 1));
  EXPECT_TRUE(strategy->open());
  strategy->override_with(false);
  EXPECT_THAT(strategy.propose().tokens(), IsEmpty());
  strategy->override_with(std::nullopt);
  EXPECT_TRUE(strategy->open());
  strategy->override_with(false);
  strategy.begin(Tokens(20, 1));
  EXPECT_TRUE(strategy->open()) << "another sequence";
}

TEST(RepetitionGate, KeepsAnOverrideThroughRebase) {
  testing::Lent strategy{RepetitionGate(testing::Keeping{})};
  strategy.begin(Tokens(20, 1));
  strategy->override_with(false);
  strategy.rebase(Tokens(30, 1));
  EXPECT_FALSE(strategy->open());
  strategy->override_with(std::nullopt);
  EXPECT_EQ(strategy->score(), Probability::ratio(27, 28));
  strategy.rebase(distinct(30));
  EXPECT_FALSE(strategy->open());
}

TEST(RepetitionGate, HasSettingsThatMatter) {
  const Tokens pairs = {1, 2, 5, 1, 2, 6, 1, 2, 7};
  auto strategy = gate();
  strategy.begin(pairs);
  EXPECT_FALSE(strategy->open());
  strategy = gate({.ngram = 2});
  strategy.begin(pairs);
  EXPECT_EQ(strategy->score(), Probability::ratio(2, 8));
  EXPECT_TRUE(strategy->open());
  strategy = gate({.ngram = 2, .threshold = Probability::ratio(2, 7)});
  strategy.begin(pairs);
  EXPECT_FALSE(strategy->open());
  strategy = gate({.threshold = Probability::zero()});
  strategy.begin(distinct(9));
  EXPECT_TRUE(strategy->open());
  for (const std::uint64_t key : {1U, 2U}) {
    strategy = gate({.key = key});
    strategy.begin(Tokens{1, 2, 3, 1, 2, 3});
    EXPECT_EQ(strategy->score(), Probability::ratio(1, 4));
  }
}

TEST(RepetitionGate, IsNotMadeWithAnNgramThatNoIndexHas) {
  for (const std::uint32_t ngram : {0U, 33U, 4'000'000'000U}) {
    EXPECT_THAT(RepetitionGate<NoDrafter>::make(NoDrafter(), {.ngram = ngram}),
                testing::refuses(ngram, ngram == 0 ? 1U : 32U, "ngram has to be between 1 and 32"))
        << ngram;
  }
}

TEST(RepetitionGate, HasDefaultsThatMakeGivesToo) {
  testing::Lent by_default{RepetitionGate(NoDrafter())};
  testing::Lent made{RepetitionGate<NoDrafter>::make(NoDrafter()).value()};
  for (auto* strategy : {&by_default, &made}) strategy->begin(Tokens{1, 2, 3, 1, 2, 3});
  EXPECT_EQ(by_default->score(), made->score());
  EXPECT_EQ(by_default->options().ngram, made->options().ngram);
  EXPECT_EQ(by_default->options().threshold, made->options().threshold);
  EXPECT_EQ(by_default->options().prompt_only, made->options().prompt_only);
}
static_assert(!std::constructible_from<RepetitionGate<NoDrafter>, NoDrafter, RepetitionGateOptions>);

TEST(RepetitionGate, IsOpenWithoutMemory) {
  auto strategy = gate({.max_bytes = 2000});
  const Tokens text = distinct(1000);
  strategy.begin(TokenSpan(text).first(20));
  EXPECT_FALSE(strategy->open());
  strategy.observe(TokenSpan(text).subspan(20), Origin::prompt);
  EXPECT_TRUE(strategy->open());
  strategy.truncate(999);
  EXPECT_TRUE(strategy->open());
  strategy.truncate(20);
  EXPECT_FALSE(strategy->open());
  EXPECT_LE(strategy->memory_bytes(), 2000U);
}

TEST(RepetitionGate, KeepsTheContractOfStrategies) {
  for (const bool prompt_only : {true, false}) {
    for (const std::uint32_t percent : {0U, 10U, 30U, 50U}) {
      const Options options{.threshold = Probability::ratio(percent, 100), .prompt_only = prompt_only};
      const testing::Report report = testing::check_strategy(
          [&] { return RepetitionGate<PromptLookupDrafter<>>::make(PromptLookupDrafter<>(), options).value(); });
      EXPECT_EQ(report.verdict(), testing::Verdict::exact) << report.to_string();
    }
  }
}

TEST(RepetitionGate, PassesOnWhatIsOptional) {
  testing::Lent strategy{RepetitionGate(testing::Keeping{})};
  strategy.reserve(100);
  const std::size_t own = strategy->memory_bytes() - strategy->strategy().memory_bytes();
  EXPECT_GT(own, 0U);
  const Tokens text = distinct(100);
  strategy.begin(TokenSpan(text).first(1));
  for (std::size_t i = 1; i < text.size(); ++i) strategy.observe(TokenSpan(text).subspan(i, 1), Origin::output);
  EXPECT_EQ(strategy->memory_bytes() - strategy->strategy().memory_bytes(), own);
  EXPECT_EQ(RepetitionGate(TokenRecyclingDrafter::make({.candidates = 5}).value()).top_k_wanted(), 5U);
}

}  // namespace
}  // namespace reprise::repetition_gate_test
