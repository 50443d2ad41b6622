// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/detail/head_control.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::testing::head_control_test {
namespace {

using reprise::detail::HeadControl;
using reprise::detail::HeadForecast;

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
  HeadControl control = told(0, {.draft = to_cost(0.3)});
  // At first, a plain pass is worth 1.3 tokens.
  EXPECT_EQ(control.ask_head(forecast(0.38, 0.9), plain), 0U);
  EXPECT_GT(control.ask_head(forecast(0.40, 0.9), plain), 0U);
}
TEST(HeadControl, EndsADraftBeforeATokenThatIsNotWorthItsRow) {
  EXPECT_EQ(told(0.1, {}).ask_head(forecast(1, 0.5), plain), 2U) << "0.25 is worth 0.13, 0.125 is not";
  EXPECT_EQ(told(0.01, {}).ask_head(forecast(1, 0.5), plain), 6U);
  EXPECT_EQ(told(0, {.token = to_cost(0.1)}).ask_head(forecast(1, 0.5), plain), 2U) << "its own cost counts, too";
  EXPECT_EQ(told(0, {}).ask_head(forecast(1, 0.99), plain, 5), 5U);
  EXPECT_EQ(told(0, {}).ask_head(forecast(1, 1), plain, 1000), HeadForecast::most_tokens);
  EXPECT_EQ(told(1, {}).ask_head(forecast(1, 0.5), plain), 0U);
}
TEST(HeadControl, ChargesWhatTheHeadProcessesLate) {
  HeadControl control = told(0, {.draft = to_cost(0.1), .late = to_cost(0.1)});
  EXPECT_GT(control.ask_head(forecast(0.5, 0.9), plain), 0U);
  for (int i = 0; i < 5; ++i) pass(control, 1);  // without it
  EXPECT_EQ(control.ask_head(forecast(0.5, 0.9), plain), 0U);
  ASSERT_GT(control.ask_head(forecast(1.5, 0.9), plain), 0U);
  EXPECT_EQ(control.loss_budget().reserved(), std::int64_t{to_cost(0.1)} * 6);
  control.head_ran(3);
  pass(control, 1);
  EXPECT_GT(control.ask_head(forecast(0.5, 0.9), plain), 0U) << "it has caught up";
  for (int i = 0; i < 5; ++i) pass(control, 1);
  control.begin();
  EXPECT_GT(control.ask_head(forecast(0.5, 0.9), plain), 0U) << "another text";
}
TEST(HeadControl, MakesTimeDearerWhereTokensAreCheap) {
  HeadControl control = told(0, {.draft = to_cost(0.3)});
  for (int i = 0; i < 200; ++i) pass(control, 4);
  EXPECT_EQ(control.ask_head(forecast(1, 0.9), plain), 0U);
  EXPECT_GT(control.ask_head(forecast(1.5, 0.9), plain), 0U);
}
TEST(HeadControl, PaysForTheHeadBeforeItRuns) {
  HeadControl control = told(0, {.draft = to_cost(0.5)});
  const std::int64_t before = control.throughput();
  ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
  EXPECT_EQ(control.loss_budget().reserved(), std::int64_t{to_cost(0.5)});
  ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
  EXPECT_EQ(control.loss_budget().reserved(), std::int64_t{to_cost(0.5)}) << "asked twice in one round";
  control.head_ran(3);
  EXPECT_EQ(control.loss_budget().reserved(), 0);
  EXPECT_EQ(control.loss_budget().debt(), std::int64_t{to_cost(0.5)});
  EXPECT_LT(control.throughput(), before);
  pass(control, 2);
  EXPECT_EQ(control.loss_budget().debt(), 0) << "two tokens have offset it";
}
TEST(HeadControl, TakesBackTheCostOfAHeadThatHasNotRun) {
  HeadControl control = told(0, {.draft = to_cost(0.5)});
  const auto reserved = [&] { return control.loss_budget().reserved() + control.loss_budget().debt(); };
  ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
  const HeadControl copy = control;
  EXPECT_EQ(copy.loss_budget().reserved(), 0) << "a fork has no head that was asked for";
  pass(control, 1);
  EXPECT_EQ(reserved(), 0);
  ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
  control.begin();
  EXPECT_EQ(reserved(), 0);
}
// What another sequence gains meanwhile must not be taken back.
TEST(HeadControl, TakesBackNoMoreThanItHasReservedInASharedLossBudget) {
  LossBudget budget;
  const CostOptions options{.curve = CostCurve::linear(0), .calibrated = true, .loss_budget = &budget};
  {
    HeadControl control(options, HeadCost{.draft = to_cost(0.5)});
    ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
    budget.add(-LossBudget::burst);
    budget.add(std::int64_t{to_cost(0.5)} + LossBudget::leak);
    pass(control, 1);
    EXPECT_EQ(budget.debt(), std::int64_t{to_cost(0.5)} - LossBudget::leak);
    ASSERT_GT(control.ask_head(forecast(2, 0.9), plain), 0U);
  }
  EXPECT_EQ(budget.reserved(), 0) << "a control is destroyed";
}
TEST(HeadControl, KeepsWithinTheLossBudget) {
  HeadControl control = told(0, {.draft = to_cost(1)});
  std::size_t runs = 0;
  for (int i = 0; i < 100; ++i) {
    if (control.ask_head(forecast(9, 0.9), plain) > 0) control.head_ran(3), ++runs;
    pass(control, 1);
  }
  EXPECT_EQ(runs, 6U);
  EXPECT_LE(control.loss_budget().debt(), LossBudget::burst);
}
TEST(HeadControl, KeepsWithinASharedLossBudgetWhenManySequencesAsk) {
  LossBudget budget;
  std::vector<HeadControl> controls;
  for (int i = 0; i < 50; ++i)
    controls.emplace_back(CostOptions{.curve = CostCurve::linear(0), .calibrated = true, .loss_budget = &budget},
                          HeadCost{.draft = to_cost(0.5)});
  for (HeadControl& control : controls) static_cast<void>(control.ask_head(forecast(9, 0.9), plain));
  EXPECT_LE(budget.debt() + budget.reserved(), LossBudget::burst);
}
TEST(HeadControl, AsksForNoHeadWhoseRowsAreNotAffordable) {
  HeadControl control = told(0.5, {.draft = to_cost(0.1)});
  EXPECT_GT(control.ask_head(forecast(9, 0.99), plain, 8), 0U);
  EXPECT_EQ(control.ask_head(forecast(9, 0.99), plain, 16), 0U) << "16 rows could lose 8 plain passes";
}
/// A control that has timed plain passes of 1 ms.
HeadControl timed() {
  HeadControl control({.calibrated = true});
  for (int i = 0; i < 4; ++i) pass(control, 1, microseconds(1000));
  return control;
}
double cost(const HeadControl& control, std::size_t tokens) {
  return static_cast<double>(control.head_cost(tokens)) / cost_one;
}

TEST(HeadControl, LearnsTheTimeOfTheHead) {
  HeadControl control = timed();
  EXPECT_NEAR(cost(control, 4), 0.2, 0.001) << "nothing is known, so each token is 5%";
  for (int i = 0; i < 20; ++i) {
    const std::size_t tokens = i % 2 == 0 ? 2 : 6;
    control.head_ran(tokens, microseconds(100 + 50 * tokens));
    pass(control, 1, microseconds(1000));
  }
  EXPECT_NEAR(cost(control, 2), 0.2, 0.01);
  EXPECT_NEAR(cost(control, 6), 0.4, 0.02);
  EXPECT_NEAR(cost(control, 1), 0.2, 0.02) << "no more than two tokens take";
  EXPECT_NEAR(cost(control, 32), 1.6, 0.1) << "in proportion";
}
TEST(HeadControl, LearnsNoSlopeFromDraftsOfOneLength) {
  HeadControl control = timed();
  for (int i = 0; i < 200; ++i) control.head_ran(4, microseconds(300)), pass(control, 1, microseconds(1000));
  for (const std::size_t tokens : {1U, 2U, 3U, 4U}) EXPECT_NEAR(cost(control, tokens), 0.3, 0.01);
}
TEST(HeadControl, BelievesNoSingleSlowDraft) {
  HeadControl control = timed();
  for (int i = 0; i < 20; ++i) control.head_ran(4, microseconds(100)), pass(control, 1, microseconds(1000));
  control.head_ran(4, std::chrono::seconds(5));
  EXPECT_LT(cost(control, 4), 0.2);
  EXPECT_LE(control.loss_budget().debt(), 2 * LossBudget::burst);
}
TEST(HeadControl, BelievesAHeadThatHasBecomeSlow) {
  HeadControl control = timed();
  for (int i = 0; i < 20; ++i) control.head_ran(4, microseconds(100)), pass(control, 1, microseconds(1000));
  for (int i = 0; i < 8; ++i) control.head_ran(4, microseconds(3000)), pass(control, 1, microseconds(1000));
  EXPECT_NEAR(cost(control, 4), 3, 0.3);
}
// A head that takes longer than it gains is tried rarely, and its time counts in full.
TEST(HeadControl, LosesLittleToASlowHead) {
  for (const std::size_t slow : {3U, 20U, 100U}) {
    HeadControl control = timed();
    std::size_t runs = 0;
    for (int i = 0; i < 40'000; ++i) {
      const std::size_t tokens = control.ask_head(forecast(1, 0.9), plain, 8);
      if (tokens > 0) control.head_ran(tokens, microseconds(1000 * slow));
      pass(control, tokens > 0 ? 2 : 1, microseconds(1000));
      if (i >= 10'000) runs += tokens > 0 ? 1 : 0;
    }
    EXPECT_LE(static_cast<double>(runs * (slow - 1)) / 30, 16) << slow << ": plain passes lost in 1,000";
  }
}
// A time that was wrong, however long it was, must not keep the head away for ever.
TEST(HeadControl, TimesAHeadAgainThatSeemedSlow) {
  HeadControl control = timed();
  control.head_ran(4, std::chrono::seconds(3600));
  EXPECT_EQ(control.ask_head(forecast(1, 0.9), plain), 0U);
  std::size_t passes = 0;
  for (; passes < 100'000 && control.ask_head(forecast(1, 0.9), plain) == 0; ++passes)
    pass(control, 1, microseconds(1000));
  EXPECT_LT(passes, 50'000U);
}
TEST(HeadControl, TakesAnyTimesAndCosts) {
  HeadControl control;
  for (const std::int64_t time : {std::int64_t{1}, std::int64_t{-5}, INT64_MAX, std::int64_t{0}, std::int64_t{7}}) {
    pass(control, 1, Duration(time));
    control.head_ran(unlimited, Duration(time));
    control.head_ran(0, Duration(time));
    EXPECT_GE(control.head_cost(unlimited), 0);
    EXPECT_LE(control.ask_head(forecast(1, 0.9), plain), HeadForecast::most_tokens);
  }
  HeadControl dear = told(0, {.draft = 0xffffffff, .token = 0xffffffff});
  EXPECT_EQ(dear.ask_head(forecast(1000, 0.9), plain), 0U);
  HeadControl fast = told(0, {.draft = 0xffffffff});
  for (int i = 0; i < 100; ++i) pass(fast, unlimited);
  EXPECT_EQ(fast.ask_head(forecast(1e9, 1), plain), 0U);
}

}  // namespace
}  // namespace reprise::testing::head_control_test
