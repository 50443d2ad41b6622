// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/lossless.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "support/archetypes.hpp"
#include "support/hostile_strategy.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::testing::testing_lossless_test {
namespace {

using ::testing::HasSubstr;

const std::vector<Token> prompt = {1, 2, 3, 1, 2};

/// Never rolls back, so every wrong draft stays in its cache.
struct Forgetless {
  ScriptedVerifier inner;
  std::size_t rows = 0;
  auto verify(TokenSpan batch, std::size_t drafted) {
    rows = batch.size();
    return inner.verify(batch, drafted);
  }
  auto commit(std::size_t) { return inner.commit(rows); }
};

Limits forty() {
  Limits limits;
  limits.max_tokens = 40;
  return limits;
}
ScriptedOptions model() {
  ScriptedOptions options;
  options.vocabulary = 4;
  return options;
}

TEST(CompareLossless, FindsNoDifferenceInASoundEngine) {
  const auto make = [](TokenSpan tokens) { return ScriptedVerifier(model(), tokens); };
  const LosslessReport report = compare_lossless(make, prompt, forty(), PromptLookupDrafter<>());
  EXPECT_TRUE(report.identical()) << report.message;
  EXPECT_EQ(report.drafted.output.size(), 40U);
  EXPECT_LT(report.drafted.statistics.passes, report.plain.statistics.passes);
  EXPECT_TRUE(compare_lossless(make, prompt, forty(), HostileStrategy(5, 4)).identical());
}
TEST(CompareLossless, TakesAControl) {
  const auto make = [](TokenSpan tokens) { return ScriptedVerifier(model(), tokens); };
  const auto passes = [&](auto control) {
    const LosslessReport report =
        compare_lossless(make, prompt, forty(), PromptLookupDrafter<>(), NeverStop(), std::move(control));
    EXPECT_TRUE(report.identical()) << report.message;
    return report.drafted.statistics.passes;
  };
  EXPECT_LT(passes(SendAll()), passes(archetype::Control()));
  EXPECT_LT(passes(CostControl()), passes(archetype::Control()));
}
TEST(CompareLossless, FindsNoDifferenceWithAnyRefinement) {
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot, Rollback::per_row})
    for (const std::size_t leaves : {1U, 4U})
      for (const bool sampled : {false, true}) {
        ScriptedOptions options = model();
        options.capabilities.rollback = rollback;
        options.capabilities.max_leaves = leaves;
        options.sampled = sampled;
        options.rule = [](TokenSpan end, Token next) { return end.empty() || end.back() != 1 || next != 2; };
        const auto scripted = [&](TokenSpan tokens) { return ScriptedVerifier(options, tokens); };
        const auto walking = [&](TokenSpan tokens) { return SelfWalkingScriptedVerifier(options, tokens); };
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
          const HostileStrategy strategy(seed, 4);
          const auto first = compare_lossless(scripted, prompt, forty(), strategy);
          EXPECT_TRUE(first.identical()) << first.message;
          const auto second = compare_lossless(walking, prompt, forty(), strategy, NeverStop(), CostControl());
          EXPECT_TRUE(second.identical()) << second.message;
        }
      }
}
TEST(CompareLossless, ShowsTheFirstDifferenceWithItsContext) {
  const auto make = [](TokenSpan tokens) { return Forgetless{ScriptedVerifier(model(), tokens)}; };
  const LosslessReport report = compare_lossless(make, prompt, forty(), HostileStrategy(5, 4));
  ASSERT_FALSE(report.identical());
  EXPECT_THAT(report.message, HasSubstr("the output differs at token " + std::to_string(report.position)));
  EXPECT_THAT(report.message, HasSubstr('<' + std::to_string(report.plain.output[report.position]) + '>'));
  EXPECT_NE(report.plain.output[report.position], report.drafted.output[report.position]);
}
TEST(CompareLossless, ReportsWhatGenerateRefuses) {
  const auto make = [](TokenSpan tokens) { return ScriptedVerifier(model(), tokens); };
  const LosslessReport report = compare_lossless(make, {}, forty(), HostileStrategy());
  EXPECT_TRUE(report.identical());  // both runs refuse it
  EXPECT_THAT(report.drafted.error, HasSubstr("empty"));
}
TEST(CompareLossless, MarksThePlaceInAnExcerpt) {
  const std::vector<Token> tokens = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(detail::excerpt(tokens, 5, 2), "[... 3 4 <5> 6 7 ...]");
  EXPECT_EQ(detail::excerpt(tokens, 0, 2), "[<0> 1 2 ...]");
  EXPECT_EQ(detail::excerpt(tokens, 10, 2), "[... 8 9 <end>]");
  EXPECT_EQ(detail::excerpt({}, 0), "[<end>]");
}

}  // namespace
}  // namespace reprise::testing::testing_lossless_test
