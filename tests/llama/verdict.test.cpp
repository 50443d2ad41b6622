// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace reprise::llama::verdict_test {
namespace {

RequestRun run_of(std::vector<std::vector<Token>> outputs) {
  RequestRun run;
  for (std::vector<Token>& output : outputs) run.turns.emplace_back().output = std::move(output);
  return run;
}
Difference between(Token plain, Token drafted) {
  Difference difference;
  difference.plain = plain;
  difference.drafted = drafted;
  return difference;
}
Probe logits(std::vector<float> values) {
  Probe probe;
  probe.logits = std::move(values);
  return probe;
}
Verdict judged(Difference difference, const Probe& probe, double epsilon) {
  judge(difference, probe, epsilon);
  return difference.verdict;
}

TEST(FirstDifference, IsFoundInTheTurnAndAtThePositionWhereItIs) {
  const RequestRun plain = run_of({{1, 2}, {3, 4, 5}});
  EXPECT_EQ(first_difference(plain, plain), std::nullopt);
  const auto found = first_difference(plain, run_of({{1, 2}, {3, 9, 9}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->turn, 1U);
  EXPECT_EQ(found->position, 1U);
  EXPECT_EQ(found->plain, 4);
  EXPECT_EQ(found->drafted, 9);
}

TEST(FirstDifference, IsWhereOneOutputEndsOrATurnIsMissing) {
  const auto shorter = first_difference(run_of({{1, 2}}), run_of({{1}}));
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->plain, 2);
  EXPECT_EQ(shorter->drafted, std::nullopt);
  const auto missing = first_difference(run_of({{1}}), run_of({{1}, {7}}));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->turn, 1U);
  EXPECT_EQ(missing->plain, std::nullopt);
  EXPECT_EQ(judged(*missing, logits({0, 0}), 10), Verdict::wrong);
}

TEST(Judge, CallsItANearTieUpToEpsilonAndWrongBeyond) {
  const Probe probe = logits({5.0F, 4.99F, 1.0F});
  EXPECT_EQ(judged(between(0, 1), probe, 0.02), Verdict::near_tie);
  EXPECT_EQ(judged(between(0, 1), probe, 0.001), Verdict::wrong);
}

TEST(Judge, DoesNotLetATieOfOthersExcuseAThirdToken) {
  EXPECT_EQ(judged(between(0, 2), logits({5.0F, 5.0F, 1.0F}), 0.02), Verdict::wrong);
}

TEST(Judge, CallsItWrongWherePlainDecodingDidNotTakeTheLikeliest) {
  EXPECT_EQ(judged(between(1, 0), logits({5.0F, 4.99F}), 0.02), Verdict::wrong);
}

TEST(Judge, CallsItWrongWherePlainDecodingDoesNotRepeatItself) {
  Difference difference = between(0, 1);
  difference.reproduced = false;
  EXPECT_EQ(judged(difference, logits({5.0F, 5.0F}), 0.02), Verdict::wrong);
}

/// Returns a draw from three tokens, two of them equally likely.
Probe drawn(std::uint32_t seed) {
  Probe probe = logits({1.0F, 1.0F, -20.0F});
  probe.sampler.reset(llama_sampler_init_dist(seed));
  return probe;
}

TEST(Judge, ExplainsADrawOnlyWhereShiftedLogitsWithTheSameRandomNumberGiveTheOtherToken) {
  std::size_t near_ties = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    EXPECT_EQ(judged(between(0, 2), drawn(seed), 0.05), Verdict::wrong) << seed;
    // One of the two was drawn. The other is a near tie only if the random number was close to the boundary between
    // them.
    const bool first = judged(between(1, 0), drawn(seed), 0) == Verdict::near_tie;
    const Difference other = first ? between(0, 1) : between(1, 0);
    near_ties += judged(other, drawn(seed), 0.05) == Verdict::near_tie ? 1 : 0;
    EXPECT_EQ(judged(other, drawn(seed), 5), Verdict::near_tie) << seed;
  }
  EXPECT_GT(near_ties, 0U);
  EXPECT_LT(near_ties, 30U);  // 5% of the numbers lie that close
}

}  // namespace
}  // namespace reprise::llama::verdict_test
