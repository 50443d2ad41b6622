// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/loss_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/simulated_decoding.hpp"

namespace reprise::control_loss_budget_test {
namespace {

struct Pass {
  Cost more;  // cost above that of a plain pass
  std::size_t accepted;
};

/// Runs 4,000 passes of an adversary that sees the budget. Passes that the budget refuses run plain.
std::int64_t worst_loss(const std::function<Pass(std::size_t, const LossBudget&)>& adversary) {
  LossBudget budget;
  std::vector<std::int64_t> losses;
  for (std::size_t i = 0; i < 4000; ++i) {
    Pass pass = adversary(i, budget);
    if (pass.more > budget.allowance()) pass = {0, 0};
    budget.add(cost_one + pass.more, cost_one, pass.accepted + 1);
    losses.push_back(std::int64_t{pass.more} - static_cast<std::int64_t>(pass.accepted) * cost_one);
    EXPECT_LE(budget.debt(), LossBudget::burst);
    EXPECT_GE(budget.allowance(), 0);
  }
  return testing::worst_window(losses);
}

TEST(LossBudget, StartsWithTheAllowanceItIsGivenAndNeverAboveTheBurst) {
  EXPECT_EQ(LossBudget().allowance(), LossBudget::burst);
  EXPECT_EQ(LossBudget(0).allowance(), 0);
  EXPECT_EQ(LossBudget(cost_one / 2).allowance(), cost_one / 2);
  EXPECT_EQ(LossBudget(static_cast<Cost>(LossBudget::burst)).allowance(), LossBudget::burst);
  EXPECT_EQ(LossBudget(std::numeric_limits<Cost>::max()).allowance(), LossBudget::burst) << "an upper bound";
}

TEST(LossBudget, HoldsWhateverASinglePassCosts) {
  for (const double more : {0.0001, 0.003, 0.00398, 0.004, 0.005, 0.05, 0.3, 1.0, 2.06, 5.9, 6.0, 6.1, 100.0}) {
    const std::int64_t worst = worst_loss([&](std::size_t, const LossBudget&) { return Pass{to_cost(more), 0}; });
    EXPECT_LE(worst, LossBudget::most_lost) << more;
    if (more > 6) {
      EXPECT_EQ(worst, 0) << more;
    }
  }
}

TEST(LossBudget, HoldsAgainstTheAdversaryThatSpendsAllItMay) {
  const std::int64_t worst = worst_loss([&](std::size_t, const LossBudget& budget) {
    return Pass{static_cast<Cost>(budget.allowance()), 0};
  });
  EXPECT_LE(worst, LossBudget::most_lost);
  EXPECT_GT(worst, LossBudget::most_lost * 99 / 100) << "and the bound is nearly reached: it is not wasted";
}

TEST(LossBudget, HoldsAgainstRandomAdversaries) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    testing::Random random(testing::mix(seed));
    const std::size_t luck = random.below(60);
    const std::size_t dear = 1 + random.below(3 * cost_one);
    const std::int64_t worst = worst_loss([&](std::size_t, const LossBudget& budget) {
      const auto all = static_cast<Cost>(budget.allowance());
      const auto some = static_cast<Cost>(random.below(dear));
      return Pass{random.chance(30) ? all : some, random.chance(luck) ? random.below(4) : 0};
    });
    EXPECT_LE(worst, LossBudget::most_lost) << seed;
  }
}

TEST(LossBudget, LetsDraftingComeBack) {
  LossBudget budget;
  budget.add(7 * cost_one, cost_one, 1);
  EXPECT_LT(budget.allowance(), to_cost(0.01));
  for (int i = 0; i < 100; ++i) budget.add(cost_one, cost_one, 1);
  EXPECT_GT(budget.allowance(), to_cost(0.39));
  budget.add(to_cost(1.3), cost_one, 6);
  EXPECT_GT(budget.allowance(), to_cost(4)) << "a draft that was right pays debts back";
}

TEST(LossBudget, IsNotRefilledBeyondTheBurst) {
  LossBudget budget;
  for (int i = 0; i < 100; ++i) budget.add(cost_one, cost_one, 100);
  EXPECT_EQ(budget.allowance(), LossBudget::burst);
}

TEST(LossBudget, CountsPlainPassesOfSeveralRowsAsTheyAre) {
  LossBudget budget;
  budget.add(3 * cost_one, 3 * cost_one, 1);  // pending tokens, no draft
  EXPECT_EQ(budget.debt(), 0);
  budget.add(4 * cost_one, 3 * cost_one, 1);
  EXPECT_EQ(budget.debt(), cost_one - LossBudget::leak);
  budget.add(4 * cost_one, 3 * cost_one, 0);
  EXPECT_EQ(budget.debt(), 2 * (cost_one - LossBudget::leak));
}

TEST(LossBudget, ReservesNoMoreThanItAllows) {
  LossBudget budget;
  EXPECT_TRUE(budget.reserve(4 * cost_one));
  EXPECT_FALSE(budget.reserve(3 * cost_one));
  EXPECT_EQ(budget.reserved(), 4 * cost_one);
  EXPECT_EQ(budget.allowance(), 2 * cost_one);
  EXPECT_TRUE(budget.reserve(-std::int64_t{cost_one})) << "a pass that cannot lose";
  budget.add(cost_one, 4 * cost_one);
  EXPECT_EQ(budget.reserved(), 0);
  EXPECT_EQ(budget.debt(), cost_one - LossBudget::leak);
}

TEST(LossBudget, ReservesNothingInACopy) {
  LossBudget budget(cost_one);
  ASSERT_TRUE(budget.reserve(cost_one));
  const LossBudget copy = budget;
  EXPECT_EQ(copy.debt(), budget.debt());
  EXPECT_EQ(copy.reserved(), 0);
  LossBudget assigned;
  assigned = budget;
  EXPECT_EQ(assigned.allowance(), cost_one);
}

TEST(LossBudget, HoldsLargeDebts) {
  LossBudget budget;
  for (int i = 0; i < 1000; ++i) budget.add(std::numeric_limits<Cost>::max(), 0, 1);
  EXPECT_GT(budget.debt(), std::int64_t{cost_one} << 23);
  EXPECT_EQ(budget.allowance(), 0);
  EXPECT_EQ(budget.reserved(), 0) << "the debt saturates before it reaches the reservations";
}

TEST(LossBudget, IsNotSpentTwiceByThreads) {
  LossBudget budget;
  std::atomic<std::int64_t> reserved{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i)
        if (budget.reserve(17)) reserved += 17;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.reserved(), reserved.load());
  EXPECT_EQ(budget.reserved(), LossBudget::burst / 17 * 17);
  threads.clear();
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < LossBudget::burst / 17 / 4; ++i) budget.add(LossBudget::leak + 1, 17);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(budget.reserved(), 4 * 17);
  EXPECT_EQ(budget.debt(), LossBudget::burst / 17 / 4 * 4);
}

// --- LossAccount ---

TEST(LossAccount, GivesBackWhatItHasReserved) {
  LossBudget budget;
  {
    detail::LossAccount account(LossBudget(), &budget);
    ASSERT_TRUE(account.change(2 * cost_one));
    ASSERT_TRUE(account.change(3 * cost_one)) << "instead of the first plan";
    EXPECT_EQ(budget.reserved(), 3 * cost_one);
    ASSERT_FALSE(account.change(7 * cost_one));
    EXPECT_EQ(budget.reserved(), 3 * cost_one);
    account.cancel();
    EXPECT_EQ(budget.reserved(), 0);
    EXPECT_EQ(budget.debt(), 0);
    ASSERT_TRUE(account.change(cost_one));
  }
  EXPECT_EQ(budget.reserved(), 0) << "destroyed";
}

TEST(LossAccount, CountsAPlannedPassThatIsNotReportedAsLost) {
  const auto debt_after = [](auto&& end) {
    LossBudget budget;
    detail::LossAccount account(LossBudget(), &budget);
    EXPECT_TRUE(account.change(2 * cost_one));
    end(account);
    EXPECT_EQ(budget.reserved(), 0);
    account.abandon();
    return budget.debt();
  };
  EXPECT_EQ(debt_after([](detail::LossAccount& account) { account.abandon(); }), 2 * cost_one)
      << "once, and without a leak";
  EXPECT_EQ(debt_after([](detail::LossAccount& account) { account.close(); }), 2 * cost_one);
  EXPECT_EQ(debt_after([](detail::LossAccount& account) { account.share(nullptr); }), 2 * cost_one);
  EXPECT_EQ(debt_after([](detail::LossAccount& account) { account = detail::LossAccount(); }), 2 * cost_one);
  EXPECT_EQ(debt_after([](detail::LossAccount& account) { account.cancel(); }), 0);
}

TEST(LossAccount, TakesBackNoMoreThanALateGainWouldHaveOffset) {
  constexpr std::int64_t one = cost_one;
  constexpr std::int64_t leak = LossBudget::leak;
  detail::LossAccount account;
  account.settle(3 * one + leak);
  const std::int64_t first = account.uncorrected();
  account.settle(-one + leak);  // 2 of the 3 are left
  const std::int64_t lowest = std::min(first, account.uncorrected());
  account.settle(2 * one + leak);
  EXPECT_EQ(account.budget().debt(), 4 * one);
  EXPECT_EQ(account.open(one, lowest), one);
  account.correct(5 * one, lowest);
  EXPECT_EQ(account.budget().debt(), 2 * one) << "the debt of 2 since then is not of that pass";
  account.correct(5 * one, lowest);
  EXPECT_EQ(account.budget().debt(), 2 * one) << "only once, even for another entry of the pass";
  account.correct(one, account.uncorrected());
  EXPECT_EQ(account.budget().debt(), one);
  detail::LossAccount moved(std::move(account));
  moved.correct(5 * one, lowest);
  EXPECT_EQ(moved.budget().debt(), one) << "what was taken back moves along";
}

TEST(LossAccount, DoesNotLetAGainOffsetTheReplayThatItCauses) {
  constexpr std::int64_t one = cost_one;
  LossBudget budget;
  detail::LossAccount account(LossBudget(), &budget);
  EXPECT_EQ(account.worst(-2 * one, 3 * one), 3 * one);
  EXPECT_EQ(account.worst(one, 3 * one), 4 * one);
  ASSERT_TRUE(account.change(account.worst(-2 * one, 3 * one)));
  account.settle(-2 * one, 3 * one);
  EXPECT_EQ(budget.reserved(), 3 * one);
  EXPECT_EQ(account.worst(-2 * one, 3 * one), one) << "the gain offsets the replay that the pass runs";
}

TEST(LossAccount, AForkReservesItsReplay) {
  LossBudget budget;
  detail::LossAccount account(LossBudget(), &budget);
  ASSERT_TRUE(account.change(3 * cost_one));
  account.settle(0, 2 * cost_one);
  EXPECT_TRUE(account.covers_replay());
  detail::LossAccount first = account;
  detail::LossAccount second = account;
  detail::LossAccount third = account;
  EXPECT_TRUE(second.covers_replay());
  EXPECT_FALSE(third.covers_replay()) << "four replays cost more than the burst";
  EXPECT_EQ(budget.reserved(), 6 * cost_one);
}

TEST(LossAccount, ChargesAReplayWhenItRuns) {
  LossBudget budget;
  detail::LossAccount account(LossBudget(), &budget);
  ASSERT_TRUE(account.change(3 * cost_one));
  account.settle(cost_one, cost_one / 2);
  EXPECT_EQ(budget.debt(), cost_one - LossBudget::leak);
  EXPECT_EQ(budget.reserved(), cost_one / 2);
  account.settle(0);
  EXPECT_EQ(budget.debt(), cost_one + cost_one / 2 - 2 * LossBudget::leak);
  EXPECT_EQ(budget.reserved(), 0);
}

TEST(LossAccount, ChargesAReplayAtOnceIfTheSequenceEnds) {
  for (const bool last : {true, false}) {
    LossBudget budget;
    detail::LossAccount account(LossBudget(), &budget);
    ASSERT_TRUE(account.change(3 * cost_one));
    account.settle(cost_one, cost_one / 2, last);
    if (!last) account.close();
    EXPECT_EQ(budget.debt(), cost_one + cost_one / 2 - LossBudget::leak) << last;
    EXPECT_EQ(budget.reserved(), 0) << "an idle sequence must not hold a part of the budget";
    account.close();
    EXPECT_EQ(budget.debt(), cost_one + cost_one / 2 - LossBudget::leak) << "once";
  }
}

TEST(LossAccount, ForksWithNothingPlanned) {
  LossBudget shared;
  for (LossBudget* const with : {&shared, static_cast<LossBudget*>(nullptr)}) {
    detail::LossAccount account(LossBudget(), with);
    ASSERT_TRUE(account.change(3 * cost_one));
    account.settle(cost_one, cost_one / 2);
    ASSERT_TRUE(account.change(2 * cost_one));
    detail::LossAccount fork = account;
    EXPECT_EQ(fork.planned(), 0);
    EXPECT_EQ(&fork.budget() == &account.budget(), with != nullptr);
    const std::int64_t before = fork.budget().debt();
    fork.settle(0);
    EXPECT_EQ(fork.budget().debt(), before + cost_one / 2 - LossBudget::leak) << "it runs the replay, too";
    EXPECT_EQ(account.budget().reserved(), 2 * cost_one + cost_one / 2);
    detail::LossAccount moved = std::move(account);
    EXPECT_EQ(moved.budget().reserved(), 2 * cost_one + cost_one / 2);
    moved = detail::LossAccount();
    EXPECT_EQ(shared.reserved(), 0);
  }
}

}  // namespace
}  // namespace reprise::control_loss_budget_test
