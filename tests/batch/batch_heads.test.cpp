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
  EXPECT_GT(debt(follower), 0) << "before they run";
  static_cast<void>(follower.draft_proposed());
  EXPECT_EQ(debt(follower), 0);
  ASSERT_TRUE(follower.propose_lookup(call));
  ASSERT_TRUE(follower.draft(call));
  EXPECT_EQ(debt(follower), 0) << "a call of draft() begins anew";
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
