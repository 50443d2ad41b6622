// SPDX-License-Identifier: Apache-2.0
#include "reprise/batch/planner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

#include "batch/drafts.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise_testing/random.hpp"
#include "support/fails.hpp"

namespace reprise::planner_test {
namespace {

using testing::Drafts;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::Random;

std::vector<std::size_t> numbers(const BatchPlan& plan) { return {plan.nodes.begin(), plan.nodes.end()}; }

/// A dense model: its passes cost nearly the same up to 64 rows, and in proportion to the rows beyond.
CostCurve knee() {
  const CostPoint points[] = {{1, 0, 1, 1000}, {1, 0, 64, 1126}, {1, 0, 128, 2252}};
  return *CostCurve::from_points(points);
}
BatchPlanner rows_alone(std::size_t max_rows) {
  return BatchPlanner({.curve = CostCurve::linear(0), .max_rows = max_rows});
}

TEST(BatchPlanner, SaysWhatItCannotReserve) {
  BatchPlanner planner;
  EXPECT_THAT(planner.reserve(unlimited), testing::fails(ErrorCode::out_of_memory, unlimited));
  EXPECT_TRUE(planner.reserve(2));
}

TEST(BatchPlanner, APassOfOtherRowsAloneIsPaddedToo) {
  BatchPlanner planner({.curve = CostCurve::linear(0), .widths = {8, 16}});
  const BatchPlan plan = planner.plan({}, 5);
  EXPECT_EQ(plan.rows, 5U);
  EXPECT_EQ(plan.width, 8U);
}

TEST(BatchPlanner, SaysWhyItIsNotTheWholeDraft) {
  Drafts drafts;
  drafts.chain({90, 80});
  EXPECT_EQ(rows_alone(2).plan(drafts.entries()).cut, Cut::budget);
  EXPECT_EQ(rows_alone(3).plan(drafts.entries()).cut, Cut::none);
  BatchPlanner dear({.curve = CostCurve::linear(0.85)});
  EXPECT_EQ(dear.plan(drafts.entries()).cut, Cut::unlikely);
  Drafts sampled;
  sampled.chain({90, 80, 70}, DraftKind::sampled);
  EXPECT_EQ(rows_alone(3).plan(sampled.entries()).cut, Cut::budget) << "and not the guard";
  EXPECT_EQ(rows_alone(4).plan(sampled.entries()).cut, Cut::none);
}

/// Plans a pass of two sequences, which draft two tokens each.
BatchPlanner planned(const Drafts& drafts) {
  BatchPlanner planner({.curve = CostCurve::linear(0.1)});
  EXPECT_THAT(numbers(planner.plan(drafts.entries())), ElementsAre(2, 2));
  return planner;
}

TEST(BatchPlanner, LateResultsCountAsIfTheyHadBeenKnownAtOnce) {
  Drafts drafts;
  for (int i = 0; i < 2; ++i) drafts.chain({99, 98});
  for (const std::size_t tokens : {1U, 2U, 3U}) {
    BatchPlanner at_once = planned(drafts);
    at_once.learn(std::array<std::size_t, 2>{1, tokens});
    for (const std::size_t known : {std::size_t{1}, BatchPlanner::not_known}) {
      BatchPlanner later = planned(drafts);
      later.learn(std::array<std::size_t, 2>{known, BatchPlanner::not_known});
      const std::int64_t leaked = known == 1 ? LossBudget::leak : 0;
      EXPECT_EQ(later.loss_budget().debt(), cost_one * 4 / 10 - leaked) << "lost as long as nothing is known";
      const auto first = later.late(0, true);
      const auto second = later.late(1, true);
      if (known != 1) later.learn_late(first, 1);
      later.learn_late(second, tokens);
      EXPECT_NEAR(static_cast<double>(later.loss_budget().debt()), static_cast<double>(at_once.loss_budget().debt()),
                  2);
      EXPECT_NEAR(static_cast<double>(later.throughput()), static_cast<double>(at_once.throughput()), 400) << tokens;
    }
  }
}

TEST(BatchPlanner, NothingIsLearnedFromRowsThatDidNotRun) {
  Drafts drafts;
  for (int i = 0; i < 2; ++i) drafts.chain({99, 98});
  BatchPlanner planner = planned(drafts);
  const std::int64_t rate = planner.throughput();
  planner.learn(std::array<std::size_t, 2>{BatchPlanner::did_not_run, BatchPlanner::did_not_run});
  EXPECT_EQ(planner.throughput(), rate);
  EXPECT_EQ(planner.loss_budget().debt(), cost_one * 4 / 10) << "without a leak";
  BatchPlanner::Late doubted = planner.late(0, false);
  planner.doubt(doubted, planner.late(1, false));
  planner.correct(doubted);
  EXPECT_EQ(planner.loss_budget().debt(), 0);

  BatchPlanner half = planned(drafts);
  half.learn(std::array<std::size_t, 2>{1, BatchPlanner::did_not_run});
  EXPECT_NEAR(static_cast<double>(half.loss_budget().debt()), cost_one * 0.4 - LossBudget::leak, 1);
  half.correct(half.late(1, false));
  EXPECT_NEAR(static_cast<double>(half.loss_budget().debt()), cost_one * 0.2 - LossBudget::leak, 1);
}

TEST(BatchPlanner, PlansAnEmptyBatch) {
  BatchPlanner planner;
  const BatchPlan plan = planner.plan({});
  EXPECT_EQ(plan.nodes.size(), 0U);
  EXPECT_EQ(plan.rows, 0U);
  planner.learn({});
  EXPECT_EQ(planner.plan({}, 12).rows, 12U) << "rows of others";
}

// ---- against brute force -----------------------------------------------------------------------------------------

/// The planner's objective as batch/planner.hpp defines it, in floating point, for `nodes` of each sequence.
class Objective {
 public:
  Objective(const Drafts& drafts, const CostCurve& curve) : drafts_(drafts), curve_(curve) {
    const auto n = static_cast<double>(size());
    const double top = highest();
    // Before the first pass the rate is 1.3 tokens in the time of a plain pass.
    const double x = std::min(1.3 / top, 1.0);
    price_ = n - 1 + (333.0 / 256) / (1 - x + 333.0 / 256 * x);
  }
  [[nodiscard]] std::size_t size() const { return drafts_.entries().size(); }
  [[nodiscard]] double cost(std::size_t drafted) const {
    return curve_.cost({size(), size() + drafted, 100}) / static_cast<double>(curve_.cost({size(), size(), 100}));
  }
  [[nodiscard]] double worth(const std::vector<std::size_t>& nodes) const {
    double worth = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      double tokens = 1;
      for (std::size_t j = 0; j < nodes[i]; ++j) {
        const double p = drafts_.probability(i, j);
        worth += p / (tokens + p / 2);
        tokens += p;
      }
    }
    return worth;
  }
  [[nodiscard]] double operator()(const std::vector<std::size_t>& nodes) const {
    std::size_t drafted = 0;
    for (const std::size_t n : nodes) drafted += n;
    return worth(nodes) - price_ * std::log(cost(drafted));
  }
  /// Visits every choice of a prefix of each draft.
  template <class Visit>
  void for_each(Visit&& visit) const {
    std::vector<std::size_t> nodes(size());
    for (std::size_t i = 0; i < nodes.size();) {
      visit(nodes);
      for (i = 0; i < nodes.size(); ++i) {
        if (nodes[i]++ < drafts_.entries()[i].offer.sendable.size()) break;
        nodes[i] = 0;
      }
    }
  }

 private:
  [[nodiscard]] double highest() const {
    double top = 1;
    for (std::size_t k = 0; k <= 512; ++k)
      top = std::max(top, static_cast<double>(size() + k) / static_cast<double>(size()) / cost(k));
    return top;
  }
  const Drafts& drafts_;
  const CostCurve& curve_;
  double price_ = 1;
};

/// A random curve: steps up and down, and flat stretches.
CostCurve random_curve(Random& random) {
  std::vector<CostPoint> points;
  double time = 1000;
  for (std::size_t rows = 1; rows < 40; rows += 1 + random.below(4)) {
    points.push_back({1, 0, rows, time});
    if (random.chance(60)) time += static_cast<double>(random.below(300));
    if (random.chance(15)) time -= static_cast<double>(random.below(200));
    time = std::max(time, 1000.0);
  }
  points.push_back({1, 0, 60, time + 3000});
  return *CostCurve::from_points(points);
}

TEST(BatchPlanner, IsAsGoodAsTheBestOfAllPrefixesOfAllDrafts) {
  Random random(7);
  std::size_t drafting = 0;
  for (int round = 0; round < 3000; ++round) {
    Drafts drafts;
    const std::size_t sequences = 2 + random.below(2);
    for (std::size_t i = 0; i < sequences; ++i) drafts.random(random, 5);
    const CostCurve curve = random_curve(random);
    const Objective objective(drafts, curve);
    BatchPlanner planner({.curve = curve});
    const BatchPlan plan = planner.plan(drafts.entries());
    const auto chosen = numbers(plan);
    double best = 0;
    double best_worth = 0;  // among the choices with the same number of rows
    double largest = 0;
    objective.for_each([&](const std::vector<std::size_t>& nodes) {
      best = std::max(best, objective(nodes));
      largest = std::max(largest, objective.worth(nodes));
      std::size_t rows = 0;
      for (const std::size_t n : nodes) rows += n;
      if (rows == plan.drafted) best_worth = std::max(best_worth, objective.worth(nodes));
    });
    drafting += plan.drafted > 0 ? 1 : 0;
    // The planner rounds worth to classes of 1/32 of a factor of two, and is off by less than two of them. It also
    // leaves out rows that gain at most 1/32.
    ASSERT_GE(objective.worth(chosen), best_worth * 0.957) << "round " << round;
    ASSERT_GE(objective(chosen), best - 0.05 * largest) << "round " << round;
  }
  EXPECT_GT(drafting, 1000U);
  EXPECT_LT(drafting, 2990U);
}

TEST(BatchPlanner, PlansASequenceAloneAsCostControlDoes) {
  Random random(9);
  std::size_t drafting = 0;
  for (int round = 0; round < 300; ++round) {
    const CostCurve curve = random_curve(random);
    BatchPlanner planner({.curve = curve, .max_nodes = 32});
    CostControl control({.curve = curve, .calibrated = true});
    const std::size_t least = 1 + random.below(100);
    for (int pass = 0; pass < 20; ++pass) {
      Drafts drafts;
      const BatchEntry& entry = drafts.random(random, 40, least);
      const BatchPlan plan = planner.plan(drafts.entries());
      const PassLimits room{.plain = {1, 1, 100}, .nodes = 64};
      const DraftChoice choice = control.choose(entry.offer.draft, entry.offer.sendable, room);
      ASSERT_EQ(plan.nodes_of(0), choice.nodes) << round << " " << pass;
      const std::size_t committed = 1 + random.below(choice.nodes + 1);
      planner.learn({&committed, 1});
      control.learn({}, {.plain = room.plain, .sent = {1, 1 + choice.nodes, 100}, .committed = committed});
      drafting += choice.nodes > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(drafting, 1000U);
}

/// Runs passes of one sequence whose drafted tokens are all rejected; a drafted row takes 30% of a pass. `learn` tells
/// the planner of a pass and its time. Returns the number of passes with a draft.
template <class Learn>
std::size_t hopeless_drafts(BatchPlanner& planner, std::size_t passes, const Learn& learn) {
  Drafts drafts;
  drafts.chain({20, 4});
  std::size_t drafted = 0;
  for (std::size_t i = 0; i < passes; ++i) {
    const BatchPlan plan = planner.plan(drafts.entries());
    drafted += plan.drafted > 0 ? 1 : 0;
    learn(std::chrono::milliseconds(10 + 3 * static_cast<int>(plan.drafted)));
  }
  return drafted;
}
constexpr std::size_t one_token[] = {1};

TEST(BatchPlanner, OfASequenceAloneAPassThatWasNotAsPlannedTeachesNothingOfCosts) {
  BatchPlanner planner;
  hopeless_drafts(planner, 700, [&](Duration time) { planner.learn(one_token, time); });
  const LearnedCurve before = planner.learned(1);
  hopeless_drafts(planner, 20, [&](Duration) { planner.learn(one_token, {}, false); });
  const LearnedCurve& after = planner.learned(1);
  EXPECT_EQ(after.passes(), before.passes());
  EXPECT_EQ(after.explored_rows(), before.explored_rows()) << "a time is not missing";
  for (const bool closely : {false, true})
    for (const double gain : {0.0, 0.1, 1.0})
      EXPECT_EQ(after.should_probe_plain(to_cost(gain), closely), before.should_probe_plain(to_cost(gain), closely));
}

TEST(BatchPlanner, ATrialOfASequenceAloneIsNotChargedIfItsResultComesLater) {
  BatchPlanner planner;
  hopeless_drafts(planner, 500, [&](Duration time) { planner.learn(one_token, time); });  // until costs are known
  std::int64_t most = 0;
  const std::size_t trials = hopeless_drafts(planner, 3000, [&](Duration time) {
    planner.learn(std::array{BatchPlanner::not_known}, time);
    most = std::max(most, planner.loss_budget().debt());
    planner.learn_late(planner.late(0, true), 1);
  });
  EXPECT_GT(trials, 2U);
  EXPECT_LT(most, cost_one / 4) << "a draft costs 0.3 of a plain pass or more";
}

TEST(BatchPlanner, AsksForNoMoreOfASequenceAloneThanMaxRowsAllows) {
  EXPECT_EQ(rows_alone(8).budget({}, {}).max_nodes, 7U);
  EXPECT_EQ(rows_alone(8).budget({.max_nodes = 3}, {}).max_nodes, 3U);
  EXPECT_EQ(rows_alone(8).budget({}, {1, 9, 0}).max_nodes, 0U);
}

TEST(BatchPlanner, ShrinksByTheCostsOfItsOwnPassWhateverWasAskedSince) {
  Drafts drafts;
  for (int i = 0; i < 2; ++i) drafts.chain({80, 60, 40, 20, 10});
  const CostPoint points[] = {{1, 0, 1, 1000}, {1, 0, 64, 1010}, {1, 0, 128, 65'000}};
  BatchPlanner planner({.curve = *CostCurve::from_points(points)});
  const std::vector<std::size_t> expected = numbers(planner.plan(drafts.entries()));
  EXPECT_THAT(expected, Each(::testing::Gt(2U)));
  static_cast<void>(planner.budget({}, {2, 100, 0}));  // rows are dear in such a pass
  EXPECT_EQ(numbers(planner.shrink(200)), expected);
}

/// Plans a pass of one sequence, and learns nothing of costs from it. Returns its drafted rows.
std::size_t rows_of_one(BatchPlanner& planner) {
  Drafts drafts;
  drafts.chain({80, 60, 40, 20, 10});
  const std::size_t drafted = planner.plan(drafts.entries()).drafted;
  planner.learn(std::array{1 + drafted}, {}, false);
  return drafted;
}

TEST(BatchPlanner, OfASequenceAloneReadsCostsThatWereAssumedAnew) {
  BatchPlanner planner;
  for (const double per_row : {0.01, 0.6, 0.01}) {
    planner.assume(1, CostPrior::of(CostCurve::linear(per_row)));
    EXPECT_EQ(rows_of_one(planner) > 3, per_row < 0.1) << per_row;
  }
}

TEST(BatchPlanner, OfASequenceAloneReadsCostsThatItBorrowsAnew) {
  Drafts two;
  for (int i = 0; i < 2; ++i) two.chain({80, 60, 40, 20, 10});
  BatchPlanner planner;
  for (const int per_row : {100, 9'000}) {  // microseconds; a plain pass takes 10,000
    for (int pass = 0; pass < 300; ++pass) {
      const BatchPlan plan = planner.plan(two.entries());
      const std::array committed = {1 + plan.nodes_of(0), 1 + plan.nodes_of(1)};
      planner.learn(committed, std::chrono::microseconds(10'000 + per_row * static_cast<int>(plan.drafted)));
    }
    EXPECT_EQ(rows_of_one(planner) > 2, per_row == 100) << per_row;
  }
}

TEST(BatchPlanner, ATrialThatIsDueKeepsNoTokenFromDrafts) {
  BatchPlanner planner;  // learns that rows are free, so that every eighth pass is a trial
  Drafts drafts;
  drafts.chain({90, 80, 70});
  for (int pass = 0; pass < 200; ++pass) {
    const DraftBudget budget = planner.budget({}, {1, 1, 100});
    EXPECT_LT(budget.min_path_probability, Probability::ratio(1, pass < 50 ? 1 : 10)) << pass;
    const BatchPlan plan = planner.plan(drafts.entries());
    const std::size_t committed = plan.drafted + 1;
    planner.learn({&committed, 1}, std::chrono::milliseconds(10));
  }
}

TEST(BatchPlanner, GivesASequenceAloneAsManyRowsAsMaxNodesAllows) {
  Drafts drafts;
  drafts.chain(std::vector<unsigned>(200, 99));
  BatchPlanner planner({.curve = CostCurve::linear(0), .max_nodes = 256});
  EXPECT_EQ(planner.plan(drafts.entries()).drafted, 200U);
}

TEST(BatchPlanner, CountsTheRowsThatItGivesToASequenceAlone) {
  Drafts drafts;
  std::vector<unsigned> percent(50, 99);
  percent.insert(percent.end(), 10, 0);
  drafts.chain(percent);
  BatchPlanner planner({.curve = CostCurve::linear(0)});
  const BatchPlan plan = planner.plan(drafts.entries());
  EXPECT_EQ(plan.drafted, plan.nodes_of(0));
  EXPECT_GE(plan.drafted, 50U);
}

// ---- properties --------------------------------------------------------------------------------------------------

TEST(BatchPlanner, NeverExceedsTheBudgetAndGivesEveryoneMoreOrTheSameWithMoreRows) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    Drafts drafts;
    const std::size_t sequences = 1 + random.below(12);
    for (std::size_t i = 0; i < sequences; ++i) drafts.random(random, 12);
    std::vector<std::size_t> before(sequences, 0);
    for (std::size_t rows = 0; rows < sequences * 14; ++rows) {
      BatchPlanner planner = rows_alone(rows);
      const BatchPlan plan = planner.plan(drafts.entries());
      const auto now = numbers(plan);
      ASSERT_LE(plan.rows, std::max(rows, sequences));
      std::size_t drafted = 0;
      for (std::size_t i = 0; i < sequences; ++i) {
        ASSERT_LE(now[i], drafts.entries()[i].offer.sendable.size());
        ASSERT_GE(now[i], before[i]);
        drafted += now[i];
      }
      ASSERT_EQ(drafted, plan.drafted);
      ASSERT_EQ(plan.rows, drafted + sequences);
      before = now;
    }
  }
}

TEST(BatchPlanner, AllDraftsGoToZeroAtHighLoadAndComeBack) {
  BatchPlanner planner({.curve = knee()});
  const auto run = [&](std::size_t sequences) {
    Drafts drafts;
    for (std::size_t i = 0; i < sequences; ++i) drafts.chain({90, 80, 70, 60});
    const DraftBudget budget = planner.budget({}, {sequences, sequences, 100});
    const BatchPlan plan = planner.plan(drafts.entries());
    EXPECT_EQ(budget.max_nodes == 0, plan.drafted == 0) << sequences;
    std::vector<std::size_t> committed;
    for (const std::uint32_t nodes : plan.nodes) committed.push_back(1 + nodes * 3 / 4);
    planner.learn(committed);
    return plan.drafted;
  };
  for (int pass = 0; pass < 60; ++pass) EXPECT_EQ(run(4), 16U);
  EXPECT_EQ(run(32), 32U) << "up to the knee";
  for (int pass = 0; pass < 60; ++pass) EXPECT_EQ(run(64 + static_cast<std::size_t>(pass)), 0U);
  for (int pass = 0; pass < 5; ++pass) EXPECT_EQ(run(4), 16U);
}

TEST(BatchPlanner, IsAPureFunctionOfTheCalls) {
  Random random(5);
  BatchPlanner one({.curve = knee()});
  BatchPlanner other = one;
  for (int pass = 0; pass < 200; ++pass) {
    Drafts drafts;
    const std::size_t sequences = 1 + random.below(20);
    for (std::size_t i = 0; i < sequences; ++i) drafts.random(random, 8);
    const auto chosen = numbers(one.plan(drafts.entries()));
    static_cast<void>(other.budget({}, {3, 5, 7}));
    static_cast<void>(other.plan(drafts.entries(), 17));
    static_cast<void>(other.plan(drafts.entries()));
    static_cast<void>(other.shrink(4));
    ASSERT_EQ(chosen, numbers(other.plan(drafts.entries()))) << "planning again changes nothing";
    std::vector<std::size_t> committed;
    for (const std::size_t nodes : chosen) committed.push_back(1 + random.below(nodes + 1));
    one.learn(committed);
    other.learn(committed);
  }
}

TEST(BatchPlanner, OfEqualTokensAnotherSequenceComesFirstInEachPass) {
  Drafts drafts;
  for (int i = 0; i < 3; ++i) drafts.chain({50});
  BatchPlanner planner = rows_alone(4);
  std::vector<std::size_t> sent(3, 0);
  for (int pass = 0; pass < 9; ++pass) {
    const BatchPlan plan = planner.plan(drafts.entries());
    for (std::size_t i = 0; i < 3; ++i) sent[i] += plan.nodes[i];
    planner.learn(std::vector<std::size_t>(3, 1));
  }
  EXPECT_THAT(sent, Each(3U));
}

TEST(BatchPlanner, ADraftOutOfOrderGivesAPrefix) {
  Drafts drafts;
  drafts.chain({10, 90, 90});
  drafts.chain({50});
  EXPECT_THAT(numbers(rows_alone(3).plan(drafts.entries())), ElementsAre(0, 1)) << "what is behind a node needs it";
}

TEST(BatchPlanner, ShrinksToAPrefixOfEachDraft) {
  Drafts drafts;
  drafts.chain({90, 80, 30});
  drafts.chain({95, 25});
  BatchPlanner planner = rows_alone(unlimited);
  EXPECT_THAT(numbers(planner.plan(drafts.entries())), ElementsAre(3, 2));
  const BatchPlan smaller = planner.shrink(5);
  EXPECT_THAT(numbers(smaller), ElementsAre(2, 1));
  EXPECT_EQ(smaller.cut, Cut::budget);
  EXPECT_THAT(numbers(planner.shrink(2)), ElementsAre(0, 0));
  EXPECT_THAT(numbers(planner.shrink(0)), ElementsAre(0, 0)) << "fewer than are pending";
  EXPECT_THAT(numbers(planner.shrink(unlimited)), ElementsAre(3, 2));
}

TEST(BatchPlanner, PendingAndOtherRowsTakeFromTheBudget) {
  Drafts drafts;
  drafts.chain({90, 80, 70}).offer.pending = 3;
  BatchPlanner planner = rows_alone(6);
  EXPECT_THAT(numbers(planner.plan(drafts.entries())), ElementsAre(3));
  const BatchPlan plan = planner.plan(drafts.entries(), 2);
  EXPECT_THAT(numbers(plan), ElementsAre(1));
  EXPECT_EQ(plan.rows, 6U);
}

TEST(BatchPlanner, APrefillInThePassCanTakeItPastTheKnee) {
  Drafts drafts;
  for (int i = 0; i < 32; ++i) drafts.chain({50});
  BatchPlanner planner({.curve = knee()});
  EXPECT_EQ(planner.plan(drafts.entries()).drafted, 32U);
  EXPECT_EQ(planner.plan(drafts.entries(), 64).drafted, 0U);
}

// ---- settings ----------------------------------------------------------------------------------------------------

TEST(BatchPlanner, EachLimitHasAnEffect) {
  Drafts drafts;
  drafts.chain({90, 80, 70, 60});
  drafts.chain({90, 80, 70, 60});
  const CostCurve free = CostCurve::linear(0);
  EXPECT_EQ(BatchPlanner({.curve = free}).plan(drafts.entries()).drafted, 8U);
  EXPECT_EQ(BatchPlanner({.curve = free, .max_nodes = 3}).plan(drafts.entries()).drafted, 6U);
  Drafts many;
  for (std::size_t i = 0; i <= BatchPlanner::most_drafted / 4; ++i) many.chain({90, 80, 70, 60});
  EXPECT_EQ(BatchPlanner({.curve = free}).plan(many.entries()).drafted, BatchPlanner::most_drafted);
  EXPECT_EQ(BatchPlanner({.curve = free, .max_rows = 6}).plan(drafts.entries()).drafted, 4U);
  EXPECT_EQ(BatchPlanner({.curve = CostCurve::linear(0.25)}).plan(drafts.entries()).drafted, 4U);
}

TEST(BatchPlanner, AsksForWhatMayPay) {
  const PassShape plain{4, 4, 100};
  BatchPlanner cheap({.curve = CostCurve::linear(0.001), .max_nodes = 7});
  EXPECT_EQ(cheap.budget({}, plain).max_nodes, 7U);
  EXPECT_EQ(cheap.budget({.max_nodes = 3}, plain).max_nodes, 3U);
  BatchPlanner narrow({.curve = CostCurve::linear(0.001), .max_rows = 6});
  EXPECT_EQ(narrow.budget({}, plain).max_nodes, 2U) << "no more than there is room for";
  BatchPlanner dear({.curve = CostCurve::linear(0.1)});
  EXPECT_GT(dear.budget({}, plain).max_nodes, 0U);
  EXPECT_GT(dear.budget({}, plain).min_path_probability, cheap.budget({}, plain).min_path_probability);
  BatchPlanner dearest({.curve = CostCurve::linear(0.26)});
  EXPECT_EQ(dearest.budget({}, plain).max_nodes, 0U) << "a row costs more than the quarter that each is worth";
  EXPECT_EQ(dearest.budget({}, {3, 3, 100}).max_nodes, 32U);
}

TEST(BatchPlanner, TakesAbsurdShapesAsTheLargestThatItKnows) {
  constexpr std::size_t many = std::size_t{1} << 20;
  for (const bool told : {true, false}) {
    BatchOptions options;
    if (told) options.curve = CostCurve::linear(2.0);
    BatchPlanner planner(options);
    for (const std::size_t sequences : {many, many << 11, unlimited / 2 + 1, unlimited}) {
      const DraftBudget largest = planner.budget({}, {many, many, 5});
      const DraftBudget absurd = planner.budget({}, {sequences, many, 5});
      EXPECT_EQ(absurd.max_nodes, largest.max_nodes);
      EXPECT_EQ(absurd.min_path_probability, largest.min_path_probability);
      static_cast<void>(planner.budget({}, {sequences, unlimited, unlimited}));
    }
  }
}

TEST(BatchPlanner, WhatItDoesNotAskForWouldNotHaveBeenSent) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    const CostCurve curve = random_curve(random);
    Drafts drafts;
    const std::size_t sequences = 1 + random.below(6);
    for (std::size_t i = 0; i < sequences; ++i) drafts.random(random, 10);
    BatchPlanner planner({.curve = curve});
    const DraftBudget budget = planner.budget({}, {sequences, sequences, 100});
    const BatchPlan plan = planner.plan(drafts.entries());
    if (budget.max_nodes == 0) {
      ASSERT_EQ(plan.drafted, 0U);
    }
    for (std::size_t i = 0; i < sequences; ++i)
      if (plan.nodes[i] > 0) {
        ASSERT_GE(drafts.entries()[i].offer.draft[plan.nodes[i] - 1].path_probability, budget.min_path_probability);
      }
  }
}

TEST(BatchPlanner, FillsThePaddingUpToAnAllowedWidth) {
  const CostPoint points[] = {{1, 0, 1, 1000}, {1, 0, 32, 4000}};
  const CostCurve curve = *CostCurve::from_points(points);
  Drafts drafts;
  drafts.chain({90, 80, 20, 10, 5});
  drafts.chain({50, 10, 5});
  BatchPlanner any({.curve = curve});
  const BatchPlan exact = any.plan(drafts.entries());
  EXPECT_EQ(exact.rows, exact.width);
  EXPECT_EQ(exact.drafted, 3U);
  BatchPlanner graphs({.curve = curve, .widths = {2, 8, 16}});
  const BatchPlan plan = graphs.plan(drafts.entries());
  EXPECT_EQ(plan.width, 8U);
  EXPECT_EQ(plan.drafted, 6U) << "rows up to the width are paid for anyway";
  BatchPlanner two({.curve = curve, .widths = {2}});
  EXPECT_EQ(two.plan(drafts.entries()).drafted, 0U) << "no width for more";
}

// ---- not losing --------------------------------------------------------------------------------------------------

TEST(BatchPlanner, StrategiesThatAreAlwaysWrongLoseTenPlainPassesAtMost) {
  for (const double slope : {0.02, 0.1}) {
    const CostCurve curve = CostCurve::linear(slope);
    BatchPlanner planner({.curve = curve});
    Drafts drafts;
    for (int i = 0; i < 8; ++i) drafts.chain({100, 99, 98, 97, 96, 95});
    std::vector<double> losses;
    bool gated = false;
    for (int pass = 0; pass < 4000; ++pass) {
      const BatchPlan plan = planner.plan(drafts.entries());
      gated = gated || plan.cut == Cut::throttled;
      losses.push_back(static_cast<double>(curve.cost({8, plan.rows, 0})) / cost_one - 1);
      planner.learn(std::vector<std::size_t>(8, 1));
    }
    EXPECT_TRUE(gated);
    for (std::size_t i = 0; i + 1000 <= losses.size(); i += 50) {
      double lost = 0;
      for (std::size_t j = i; j < i + 1000; ++j) lost += losses[j];
      ASSERT_LE(lost, 10.0);
    }
  }
}

TEST(BatchPlanner, AFailedSequenceCountsAsPlain) {
  Drafts drafts;
  drafts.chain({90});
  drafts.chain({90});
  BatchPlanner planner({.curve = CostCurve::linear(0.02)});
  static_cast<void>(planner.plan(drafts.entries()));
  const std::vector<std::size_t> committed = {0, 2};
  planner.learn(committed);
  EXPECT_EQ(planner.loss_budget().debt(), 0);
  EXPECT_THAT(numbers(planner.plan(drafts.entries())), ElementsAre(1, 1));
}

// ---- learned costs -----------------------------------------------------------------------------------------------

TEST(BatchPlanner, DraftsAgainAfterPassesThatWereFarTooSlow) {
  // Passes with a draft take 30 times as long at first, as while kernels are compiled.
  BatchPlanner planner;
  Drafts drafts;
  drafts.chain({95, 90, 85, 80});
  const CostCurve curve = CostCurve::linear(0.1);
  std::size_t drafted = 0;
  for (int pass = 0; pass < 1000; ++pass) {
    const BatchPlan plan = planner.plan(drafts.entries());
    const std::array<std::size_t, 1> committed = {1 + plan.drafted};
    const double slow = pass < 200 && plan.drafted > 0 ? 30 : 1;
    const double time = 1e7 * slow * curve.cost({1, plan.rows, 100}) / cost_one;
    planner.learn(committed, std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
    if (pass >= 600) drafted += plan.drafted;
  }
  EXPECT_GE(drafted, 4 * 400 * 95 / 100) << "all four tokens in nearly every pass";
}

TEST(BatchPlanner, StartsFromAssumedCostsAndGivesThemBack) {
  BatchPlanner planner;
  planner.assume(4, CostPrior::gpu_batch_1());
  EXPECT_EQ(planner.learned(4).prior(), CostPrior::gpu_batch_1());
  EXPECT_EQ(planner.learned(7).prior(), CostPrior::gpu_batch_1()) << "the same power of two";
  EXPECT_TRUE(planner.learned(1).prior().empty());
}

/// Decodes 600 passes of sequences that nearly always follow the draft, timed by `curve`. Returns the mean number of
/// drafted rows of the last 300.
double drafted_when_timed(const CostCurve& curve, std::size_t sequences) {
  BatchPlanner planner;
  Drafts drafts;
  for (std::size_t i = 0; i < sequences; ++i) drafts.chain({95, 90, 85, 80});
  double drafted = 0;
  Random random(1);
  for (int pass = 0; pass < 600; ++pass) {
    const BatchPlan plan = planner.plan(drafts.entries());
    std::vector<std::size_t> committed;
    for (const std::uint32_t nodes : plan.nodes) {
      std::size_t accepted = 0;
      while (accepted < nodes && random.chance(95)) ++accepted;
      committed.push_back(1 + accepted);
    }
    if (pass >= 300) drafted += static_cast<double>(plan.drafted) / 300;
    const double time = 1e7 * curve.cost({sequences, plan.rows, 100}) / cost_one;
    planner.learn(committed, std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
  }
  return drafted;
}

TEST(BatchPlanner, LearnsFromTimesWhatPassesCost) {
  EXPECT_GT(drafted_when_timed(CostCurve::linear(0.005), 4), 15.0) << "nearly all of 16";
  EXPECT_LT(drafted_when_timed(CostCurve::linear(0.3), 4), 1.0);
  EXPECT_GT(drafted_when_timed(CostCurve::linear(0.001), 32), 120.0) << "nearly all of 128";
  EXPECT_LT(drafted_when_timed(CostCurve::linear(0.05), 32), 8.0);
}

TEST(BatchPlanner, WithoutTimesADraftedRowCostsATwentieth) {
  Drafts drafts;
  drafts.chain({90, 80, 20, 5});
  BatchPlanner unknown;
  BatchPlanner told({.curve = CostCurve()});
  static_cast<void>(unknown.plan(drafts.entries()));
  unknown.learn(std::vector<std::size_t>(1, 1));
  static_cast<void>(told.plan(drafts.entries()));
  told.learn(std::vector<std::size_t>(1, 1));
  EXPECT_EQ(unknown.plan(drafts.entries()).drafted, told.plan(drafts.entries()).drafted);
}

// ---- sampled drafts ----------------------------------------------------------------------------------------------

TEST(BatchPlanner, WhetherASampledTokenIsSentDoesNotDependOnLaterOnes) {
  Random random(17);
  for (int round = 0; round < 2000; ++round) {
    const CostCurve curve = random_curve(random);
    BatchOptions options{.curve = curve, .max_rows = 4 + random.below(10)};
    if (random.chance(50)) options.widths = {4, 8, 12};
    BatchPlanner planner(options);
    if (random.chance(50)) {  // with some history
      Drafts before;
      before.random(random, 4);
      static_cast<void>(planner.plan(before.entries()));
      planner.learn(std::vector<std::size_t>(1, 1 + random.below(3)));
    }
    std::vector<unsigned> stated(6);
    unsigned last = 100;
    for (unsigned& p : stated) p = last = static_cast<unsigned>(1 + random.below(last));
    const std::size_t same = random.below(6);  // the last node whose stated probability is the same in both drafts
    std::vector<unsigned> other(stated.begin(), stated.begin() + static_cast<std::ptrdiff_t>(same) + 1);
    while (other.size() < 6) other.push_back(static_cast<unsigned>(1 + random.below(other.back())));
    const std::uint64_t rest = random.next();
    const auto sent = [&](const std::vector<unsigned>& percent) {
      Drafts drafts;
      Random others(rest);
      drafts.random(others, 5);
      drafts.chain(percent, DraftKind::sampled);
      drafts.random(others, 5);
      return std::min<std::size_t>(planner.plan(drafts.entries()).nodes[1], same + 1);
    };
    // The first same + 1 stated probabilities are equal, so the same number of these nodes is sent.
    ASSERT_EQ(sent(stated), sent(other)) << "round " << round;
  }
}

TEST(BatchPlanner, SendsSampledDraftsAsLongAsTheyPay) {
  Drafts drafts;
  drafts.chain({90, 80, 1}, DraftKind::sampled);
  BatchPlanner cheap({.curve = CostCurve::linear(0.05)});
  EXPECT_THAT(numbers(cheap.plan(drafts.entries())), ElementsAre(2));
  BatchPlanner dear({.curve = CostCurve::linear(0.95)});
  EXPECT_THAT(numbers(dear.plan(drafts.entries())), ElementsAre(0));
}

}  // namespace
}  // namespace reprise::planner_test
