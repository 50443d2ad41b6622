// SPDX-License-Identifier: Apache-2.0
#include "reprise/batch/detail/batch_heads.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/headed_speculator.hpp"
#include "support/fails.hpp"

namespace reprise::testing::batch_heads_test {
namespace {

using Follower = BatchFollower<HeadedNgramDrafter>;

static_assert(detail::HeadedStrategy<HeadedNgramDrafter> && !detail::HeadedStrategy<NgramDrafter<>>);
static_assert(sizeof(BatchFollower<NgramDrafter<>>) < sizeof(Follower));

struct BatchHeads : ::testing::Test {
  static Follower made(bool told = true) {
    BatchOptions options;
    if (told) options.curve = CostCurve::linear(0.01), options.head = HeadCost{.draft = to_cost(0.25)};
    return Follower::make(2, HeadedNgramDrafter(), std::move(options)).value();
  }
  std::vector<FollowedSlot> slots(std::size_t most = unlimited) const {
    return {{.slot = 1, .ids = ids[1], .most = most}, {.slot = 0, .ids = ids[0], .most = most}};
  }
  static std::int64_t debt(const Follower& follower) { return follower.planner().loss_budget().debt(); }

  std::vector<Token> ids[2] = {{1, 2, 3}, {4, 5}};
};

TEST_F(BatchHeads, AnswerInTheOrderOfTheSlots) {
  Follower follower = made();
  const auto call = slots();
  const auto wanted = follower.propose_lookup(call).value();
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_GT(wanted[0], 1U);
  EXPECT_GT(wanted[1], 1U);
  EXPECT_TRUE(follower.add_head(1, std::vector<Token>{70, 71}));
  const auto drafts = follower.draft_proposed();
  ASSERT_EQ(drafts.size(), 2U);
  ASSERT_EQ(drafts[0].size(), 2U);
  EXPECT_EQ(drafts[0][1], 71);
  EXPECT_TRUE(drafts[1].empty());
}
TEST_F(BatchHeads, AreAskedForNoMoreThanASlotMayDraft) {
  Follower follower = made();
  for (const std::size_t most : {0U, 1U, 2U}) {
    const auto call = slots(most);
    const auto wanted = follower.propose_lookup(call).value();
    for (const std::size_t tokens : wanted) EXPECT_LE(tokens, most);
    EXPECT_TRUE(follower.add_head(0, std::vector<Token>(80, Token{9})));
    EXPECT_LE(follower.draft_proposed()[1].size(), most);
  }
}
TEST_F(BatchHeads, AreChargedOnceIfTheyRun) {
  Follower follower = made();
  const auto call = slots();
  ASSERT_TRUE(follower.propose_lookup(call));
  EXPECT_TRUE(follower.add_head(0, {}));
  EXPECT_TRUE(follower.add_head(1, {}));
  static_cast<void>(follower.draft_proposed());
  EXPECT_EQ(debt(follower), std::int64_t{to_cost(0.25)});
}
TEST_F(BatchHeads, AreNotChargedIfTheyDoNotRun) {
  Follower follower = made();
  const auto call = slots();
  ASSERT_TRUE(follower.propose_lookup(call));
  EXPECT_GT(follower.planner().loss_budget().reserved(), 0) << "before they run";
  static_cast<void>(follower.draft_proposed());
  EXPECT_EQ(debt(follower), 0);
  ASSERT_TRUE(follower.propose_lookup(call));
  ASSERT_TRUE(follower.draft(call));
  EXPECT_EQ(debt(follower), 0) << "a call of draft() begins anew";
  EXPECT_EQ(follower.planner().loss_budget().reserved(), 0);
}
TEST_F(BatchHeads, AreChargedIfTheStepIsGivenUp) {
  Follower follower = made();
  const auto call = slots();
  for (int step = 1; step < 5; ++step) {
    ASSERT_TRUE(follower.propose_lookup(call));
    EXPECT_TRUE(follower.add_head(0, std::vector<Token>{70, 71}));
    ASSERT_TRUE(follower.draft(call));
    EXPECT_EQ(debt(follower), std::int64_t{to_cost(0.25)} * step);
  }
}
TEST_F(BatchHeads, DoNotChargeAPlannedPassAgainIfLaterStepsAreGivenUp) {
  Follower follower = made();
  ASSERT_TRUE(follower.propose_lookup(slots()));
  EXPECT_TRUE(follower.add_head(0, std::vector<Token>{70, 71}));
  static_cast<void>(follower.draft_proposed());
  std::int64_t before = 0;
  for (int step = 0; step < 5; ++step) {
    for (auto& text : ids) text.push_back(1000 + step);
    ASSERT_TRUE(follower.propose_lookup(slots()));
    EXPECT_LE(debt(follower), step == 0 ? INT64_MAX : before) << step;
    before = debt(follower);
  }
}
TEST_F(BatchHeads, HaveNoEffectOutsideOfTheirStep) {
  Follower follower = made();
  const std::vector<Token> drafted = {70, 71};
  ASSERT_TRUE(follower.propose_lookup(slots()));
  EXPECT_TRUE(follower.add_head(0, drafted));
  ASSERT_EQ(follower.draft_proposed()[1].size(), 2U);
  EXPECT_TRUE(follower.add_head(1, drafted)) << "the pass is planned";
  for (auto& text : ids) text.push_back(70);
  const std::vector<FollowedSlot> one = {{.slot = 0, .ids = ids[0]}};
  ASSERT_TRUE(follower.draft(one));
  const std::int64_t before = debt(follower);
  EXPECT_TRUE(follower.add_head(1, drafted)) << "the slot is not in the step";
  static_cast<void>(follower.draft_proposed());
  EXPECT_LE(debt(follower), before);
}
TEST_F(BatchHeads, AreLeftOutOfASlotWhoseRequestEnds) {
  for (int way = 0; way < 3; ++way) {
    Follower follower = made();
    ASSERT_TRUE(follower.propose_lookup(slots()));
    if (way == 0) follower.forget(0);
    if (way == 1) static_cast<void>(follower.predict(0, ids[1]));
    if (way == 2) static_cast<void>(follower.assign(0, NgramDrafter<>()));
    EXPECT_TRUE(follower.add_head(0, std::vector<Token>{70, 71}));
    EXPECT_TRUE(follower.add_head(1, std::vector<Token>{80, 81}));
    const auto drafts = follower.draft_proposed();
    EXPECT_EQ(drafts[0].size(), 2U);
    EXPECT_TRUE(drafts[1].empty()) << way;
    EXPECT_TRUE(follower.draft(slots())) << "the slot goes on";
  }
}
TEST_F(BatchHeads, KeepTheBoundOfASlotWhoseStopsChange) {
  Follower follower = made();
  const auto call = slots(2);
  ASSERT_TRUE(follower.propose_lookup(call));
  EXPECT_TRUE(follower.stop_at(0, {}));
  EXPECT_TRUE(follower.add_head(0, std::vector<Token>{70, 71}));
  EXPECT_LE(follower.draft_proposed()[1].size(), 2U);
}
TEST_F(BatchHeads, TakeAnyTimes) {
  for (const std::int64_t time : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 62, INT64_MAX, INT64_MIN}) {
    Follower follower = made(false);
    for (Token step = 0; step < 4; ++step) {
      ASSERT_TRUE(follower.propose_lookup(slots(), Duration((std::int64_t{1} << 62) + step)));
      EXPECT_TRUE(follower.add_head(0, std::vector<Token>{70}));
      static_cast<void>(follower.draft_proposed(Duration(time)));
      for (auto& text : ids) text.push_back(step);
    }
    EXPECT_LE(debt(follower), 5 * LossBudget::burst);
  }
}
// The first run for many slots can take long: engines compile, or capture graphs.
TEST_F(BatchHeads, RunForAllSlotsAgainAfterASlowFirstRun) {
  for (const bool before : {true, false}) {  // passes of one slot, or of all without drafts
    constexpr std::size_t many = 16;
    auto follower = Follower::make(many, HeadedNgramDrafter()).value();
    std::vector<std::vector<Token>> texts(many, std::vector<Token>{1});
    std::int64_t now = 1;
    std::size_t runs = 0;
    std::size_t soon = 0;
    bool slow = true;
    for (Token step = 0; step < 3000; ++step) {
      const std::size_t size = before && step < 300 ? 1 : many;
      const std::size_t most = before || step >= 300 ? unlimited : 0;
      std::vector<FollowedSlot> call;
      for (std::size_t i = 0; i < size; ++i) call.push_back({.slot = i, .ids = texts[i], .most = most});
      const auto wanted = follower.propose_lookup(call, Duration(now)).value();
      std::size_t asked = 0;
      for (std::size_t i = 0; i < size; ++i) {
        if (wanted[i] == 0) continue;
        ++asked;
        std::vector<Token> right;
        for (std::size_t k = 0; k < wanted[i]; ++k) right.push_back((step * 131 + static_cast<Token>(k * 17)) % 50'000);
        EXPECT_TRUE(follower.add_head(i, right));
      }
      std::int64_t head = asked > 0 ? 500'000 : 0;
      if (asked > 8 && std::exchange(slow, false)) head = 1'000'000'000;
      const auto drafts = follower.draft_proposed(asked > 0 ? std::optional<Duration>(Duration(head)) : std::nullopt);
      std::size_t rows = 0;
      for (std::size_t i = 0; i < size; ++i) {
        rows += drafts[i].size();
        texts[i].insert(texts[i].end(), drafts[i].begin(), drafts[i].end());
        texts[i].push_back((step * 977 + static_cast<Token>(i)) % 50'000);
      }
      now += head + 10'000'000 + static_cast<std::int64_t>(rows) * 20'000;
      if (step >= 2500) runs += asked == many ? 1 : 0;
      if (step >= 600 && step < 1000) soon += asked >= many - 1 ? 1 : 0;
    }
    EXPECT_FALSE(slow);
    EXPECT_GT(soon, 300U) << "of 400 passes";
    EXPECT_GT(runs, 400U) << "of 500 passes";
  }
}
TEST_F(BatchHeads, AreAskedForNoMoreThanThePassCanCarry) {
  for (const std::size_t rows : {0U, 1U, 3U}) {
    BatchOptions options;
    options.curve = CostCurve::linear(0.01), options.head = HeadCost{.draft = to_cost(0.1)};
    options.max_rows = 2 + rows;
    Follower follower = Follower::make(2, HeadedNgramDrafter(), std::move(options)).value();
    const auto wanted = follower.propose_lookup(slots()).value();
    EXPECT_EQ(wanted[0] + wanted[1], rows);
  }
}
TEST_F(BatchHeads, RunOnlyIfTheirRowsAreAffordableToo) {
  for (const double allowance : {6.0, 0.9, 0.3}) {
    LossBudget budget(to_cost(allowance));
    BatchOptions options;
    options.curve = CostCurve::linear(0.1), options.head = HeadCost{.draft = to_cost(0.25)};
    options.loss_budget = &budget;
    Follower follower = Follower::make(2, HeadedNgramDrafter(), std::move(options)).value();
    const auto wanted = follower.propose_lookup(slots()).value();
    EXPECT_EQ((wanted[0] > 0) + (wanted[1] > 0), allowance > 1 ? 2 : allowance > 0.5 ? 1 : 0) << allowance;
  }
}
TEST_F(BatchHeads, RefuseWhatDraftRefuses) {
  Follower follower = made();
  const std::vector<FollowedSlot> twice = {{.slot = 0, .ids = ids[0]}, {.slot = 0, .ids = ids[0]}};
  EXPECT_THAT(follower.propose_lookup(twice), fails(ErrorCode::invalid_argument));
  EXPECT_THAT(follower.add_head(2, ids[0]), fails(ErrorCode::invalid_argument));
  EXPECT_TRUE(follower.add_head(1, ids[0])) << "it was not asked for, so it has no effect";
}
// The interval between two calls holds the head's run and the pass.
TEST_F(BatchHeads, TakeTheirTimeOutOfThatOfThePass) {
  constexpr std::int64_t pass = 10'000'000;
  constexpr std::int64_t head = 4'000'000;
  Follower follower = made(false);
  std::int64_t now = 1;
  std::size_t runs = 0;
  for (Token step = 0; step < 300; ++step) {
    const auto call = slots();
    const auto wanted = follower.propose_lookup(call, Duration(now)).value();
    std::optional<Duration> time;
    for (std::size_t i = 0; i < 2; ++i) {
      if (wanted[i] == 0) continue;
      time = Duration(head);
      EXPECT_TRUE(follower.add_head(call[i].slot, std::vector<Token>(wanted[i], Token{99})));
    }
    runs += time ? 1 : 0;
    const auto drafts = follower.draft_proposed(time);
    const std::size_t rows = drafts[0].size() + drafts[1].size();
    now += (time ? head : 0) + pass + static_cast<std::int64_t>(rows) * pass / 100;
    for (auto& text : ids) text.push_back(1000 + step * 2);  // no lookup finds it, and the head is always wrong
  }
  EXPECT_GT(runs, 3U);
  EXPECT_NEAR(static_cast<double>(follower.planner().plain_time(2)), pass, pass / 50);
}

}  // namespace
}  // namespace reprise::testing::batch_heads_test
