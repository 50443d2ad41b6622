// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/head_control.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace reprise::testing::head_control_test {
namespace {

using std::chrono::microseconds;

constexpr PassShape plain{1, 1, 100};

/// A forecast of a gain in tokens, with one acceptance rate.
HeadForecast forecast(double gain, double rate) {
  HeadForecast made{.gain = static_cast<std::int64_t>(gain * 65536)};
  made.rates.fill(Probability::from_raw(static_cast<std::uint32_t>(rate * Probability::scale)));
  return made;
}
HeadControl told(double row, HeadCost head) {
  return HeadControl({.curve = CostCurve::linear(row), .calibrated = true}, head);
}
/// Commits a pass of `tokens` tokens that carried no draft.
void pass(HeadControl& control, std::size_t tokens, std::optional<Duration> time = {}) {
  control.learn({.draft = {}, .sent = {}, .accepted = {}, .pick = 1, .top_k = {}},
                {.plain = plain, .sent = plain, .committed = tokens, .time = time});
}

TEST(HeadControl, RunsTheHeadWhereItsTokensAreWorthItsTime) {
  const HeadControl control = told(0, {.draft = to_cost(0.3)});
  // At first, a plain pass is worth 1.3 tokens.
  EXPECT_EQ(control.head_tokens(forecast(0.38, 0.9), plain), 0U);
  EXPECT_GT(control.head_tokens(forecast(0.40, 0.9), plain), 0U);
}
TEST(HeadControl, CountsTokensThatTheHeadHasNotProcessed) {
  const HeadControl control = told(0, {.draft = to_cost(0.1), .late = to_cost(0.05)});
  EXPECT_GT(control.head_tokens(forecast(0.3, 0.9), plain, 2), 0U);
  EXPECT_EQ(control.head_tokens(forecast(0.3, 0.9), plain, 4), 0U);
  EXPECT_EQ(control.head_cost(5, 2), std::int64_t{to_cost(0.1) + 2 * to_cost(0.05)});
}
TEST(HeadControl, EndsADraftBeforeATokenThatIsNotWorthItsRow) {
  EXPECT_EQ(told(0.1, {}).head_tokens(forecast(1, 0.5), plain), 2U) << "0.25 is worth 0.13, 0.125 is not";
  EXPECT_EQ(told(0.01, {}).head_tokens(forecast(1, 0.5), plain), 6U);
  EXPECT_EQ(told(0, {.token = to_cost(0.1)}).head_tokens(forecast(1, 0.5), plain), 2U) << "its own cost counts, too";
  EXPECT_EQ(told(0, {}).head_tokens(forecast(1, 0.99), plain, 0, 5), 5U);
  EXPECT_EQ(told(0, {}).head_tokens(forecast(1, 1), plain, 0, 1000), HeadForecast::most_tokens);
  EXPECT_EQ(told(1, {}).head_tokens(forecast(1, 0.5), plain), 0U);
}
TEST(HeadControl, MakesTimeDearerWhereTokensAreCheap) {
  HeadControl control = told(0, {.draft = to_cost(0.3)});
  for (int i = 0; i < 200; ++i) pass(control, 4);
  EXPECT_EQ(control.head_tokens(forecast(1, 0.9), plain), 0U);
  EXPECT_GT(control.head_tokens(forecast(1.5, 0.9), plain), 0U);
}
TEST(HeadControl, PaysForTheHead) {
  HeadControl control = told(0, {.draft = to_cost(0.5)});
  const std::int64_t before = control.throughput();
  control.head_ran(3, 0);
  EXPECT_EQ(control.loss_budget().debt(), std::int64_t{to_cost(0.5)});
  EXPECT_LT(control.throughput(), before);
  pass(control, 2);
  EXPECT_EQ(control.loss_budget().debt(), 0) << "two tokens have offset it";
}
TEST(HeadControl, KeepsWithinTheLossBudget) {
  HeadControl control = told(0, {.draft = to_cost(1)});
  std::size_t runs = 0;
  for (int i = 0; i < 100; ++i) {
    if (control.head_tokens(forecast(9, 0.9), plain) > 0) control.head_ran(3, 0), ++runs;
    pass(control, 1);
  }
  EXPECT_EQ(runs, 6U);
  EXPECT_LE(control.loss_budget().debt(), LossBudget::burst);
}
TEST(HeadControl, LearnsTheTimeOfTheHead) {
  HeadControl control;
  EXPECT_EQ(control.head_cost(4), std::int64_t{to_cost(0.05)}) << "nothing is known";
  for (int i = 0; i < 20; ++i) {
    pass(control, 1, microseconds(1000));
    const std::size_t tokens = i % 2 == 0 ? 2 : 6;
    control.head_ran(tokens, 0, microseconds(100 + 50 * tokens));
  }
  EXPECT_NEAR(static_cast<double>(control.head_cost(4)) / cost_one, 0.3, 0.02);
  EXPECT_NEAR(static_cast<double>(control.head_cost(8)) / cost_one, 0.5, 0.04);
}
TEST(HeadControl, ForgetsOneSlowDraft) {
  HeadControl control;
  for (int i = 0; i < 20; ++i) {
    pass(control, 1, microseconds(1000));
    control.head_ran(4, 0, microseconds(100));
  }
  control.head_ran(4, 0, std::chrono::seconds(5));
  EXPECT_LT(control.head_cost(4), std::int64_t{to_cost(0.2)});
}
// A time that was wrong, however long it was, must not keep the head away for ever.
TEST(HeadControl, MeasuresAHeadAgainThatSeemedSlow) {
  HeadControl control;
  pass(control, 1, microseconds(1000));
  pass(control, 1, microseconds(1000));
  control.head_ran(4, 0, std::chrono::seconds(3600));
  EXPECT_EQ(control.head_tokens(forecast(1, 0.9), plain), 0U);
  std::size_t passes = 0;
  for (; passes < 20'000 && control.head_tokens(forecast(1, 0.9), plain) == 0; ++passes)
    pass(control, 1, microseconds(1000));
  EXPECT_LT(passes, 15'000U);
}
TEST(HeadControl, TakesAnyTimesAndCosts) {
  HeadControl control;
  for (const std::int64_t time : {std::int64_t{1}, std::int64_t{-5}, INT64_MAX, std::int64_t{0}, std::int64_t{7}}) {
    pass(control, 1, Duration(time));
    control.head_ran(unlimited, unlimited, Duration(time));
    EXPECT_GE(control.head_cost(unlimited, unlimited), 0);
    EXPECT_LE(control.head_tokens(forecast(1, 0.9), plain), HeadForecast::most_tokens);
  }
  const HeadControl dear = told(0, {.draft = 0xffffffff, .token = 0xffffffff, .late = 0xffffffff});
  EXPECT_EQ(dear.head_tokens(forecast(1000, 0.9), plain, unlimited), 0U);
}

}  // namespace
}  // namespace reprise::testing::head_control_test
