// SPDX-License-Identifier: Apache-2.0
#include "reprise/control/detail/draft_length.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "reprise/control/loss_budget.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::detail::draft_length_test {
namespace {

/// A LengthInput with its arrays.
struct Case {
  std::vector<std::uint32_t> sums = {0};
  std::vector<Cost> costs;
  std::vector<std::size_t> widths;
  std::size_t plain_rows = 1;
  bool padded = false;
  Rate throughput = rate_one;
  std::int64_t allowance = LossBudget::burst;
  Cost rollback = 0;
  bool replayed = false;

  [[nodiscard]] LengthInput question() const {
    return {sums,      costs,    plain_rows, widths, padded, throughput, highest_throughput(costs, widths, plain_rows),
            allowance, rollback, replayed};
  }
};

/// A draft with decreasing path probabilities, and a curve that is linear, in steps, or arbitrary.
Case random_case(testing::Random& random) {
  Case c;
  std::uint32_t path = cost_one;
  for (std::size_t n = random.below(33); n > 0; --n) {
    if (random.below(3) != 0) path = static_cast<std::uint32_t>(std::uint64_t{path} * (1 + random.below(1000)) / 1000);
    c.sums.push_back(c.sums.back() + path);
  }
  const std::size_t most = random.below(10) == 0 ? random.below(40) : 32;
  const std::size_t shape = random.below(4);
  const std::uint64_t slope = random.below(2) == 0 ? random.below(1000) : random.below(30'000);
  const std::size_t step = 1 + random.below(16);
  for (std::size_t k = 0; k <= most; ++k) {
    std::uint64_t cost = cost_one + slope * k;
    if (shape == 1) cost = cost_one + slope * 8 * (k / step);
    if (shape == 2) cost = cost_one + random.below(k == 0 ? 1 : 40'000);
    if (shape == 3) cost = k == 0 ? cost_one : 1 + random.below(400'000);
    c.costs.push_back(static_cast<Cost>(cost));
  }
  c.throughput = rate_one + static_cast<Rate>(random.below(6 * cost_one));
  c.allowance = random.below(4) == 0 ? static_cast<std::int64_t>(random.below(LossBudget::burst)) : LossBudget::burst;
  return c;
}

/// The naive reference: evaluates every pass that the widths allow.
DraftChoice brute_force(const Case& c) {
  const std::size_t nodes = c.sums.size() - 1;
  const Rate top = highest_throughput(c.costs, c.widths, c.plain_rows);
  const Rate long_run = std::min(c.throughput, top);
  Rate price = value_of_time(long_run, top);
  DraftChoice answer;
  for (int step = 0; step < 2; ++step) {
    answer = {};
    std::int64_t best = 0;
    std::int64_t best_cost = c.costs[0];
    for (std::size_t rows = 1; rows < c.costs.size(); ++rows) {
      if (!c.widths.empty() && std::find(c.widths.begin(), c.widths.end(), c.plain_rows + rows) == c.widths.end())
        continue;
      const std::size_t sent = std::min(rows, nodes);
      if (rows > nodes && (c.widths.empty() || !c.padded)) continue;
      const std::int64_t all = rows > nodes ? 0 : std::int64_t{c.sums[sent]} - c.sums[sent - 1];
      const std::int64_t cost = c.costs[rows] + (c.rollback * (65536 - all) >> 16);
      if (std::int64_t{c.costs[rows]} + c.rollback - c.costs[0] > c.allowance) continue;
      const std::int64_t value = c.sums[sent] - (price * (cost - c.costs[0]) >> 16);
      if (value <= best) continue;
      best = value;
      best_cost = cost;
      answer = {sent, rows - sent, Cut::none};
    }
    const Rate now = ((rate_one + c.sums[answer.nodes]) << 16) / best_cost;
    price = value_of_time(std::min(std::max(now, long_run * 6 / 10), top), top);
  }
  return answer;
}

TEST(DraftLength, EqualsBruteForceWithWidthsPaddingAndRollback) {
  testing::Random random(2);
  for (int trial = 0; trial < 100'000; ++trial) {
    Case c = random_case(random);
    c.plain_rows = 1 + random.below(4);
    for (std::size_t width = 1 + random.below(4); width < 50 && random.below(8) != 0; width += 1 + random.below(10))
      c.widths.push_back(width);
    c.padded = random.chance(50);
    if (random.chance(30)) c.rollback = static_cast<Cost>(random.below(cost_one));
    const DraftChoice answer = draft_length(c.question());
    const DraftChoice expected = brute_force(c);
    ASSERT_EQ(answer.nodes, expected.nodes) << "trial " << trial;
    ASSERT_EQ(answer.padding, expected.padding) << "trial " << trial;
    const std::size_t rows = answer.nodes + answer.padding;
    if (rows != 0 && !c.widths.empty()) {
      ASSERT_TRUE(std::count(c.widths.begin(), c.widths.end(), c.plain_rows + rows));
    }
    if (rows != 0) {
      ASSERT_LE(std::int64_t{c.costs[rows]} - c.costs[0] + c.rollback, c.allowance);
    }
  }
}

/// A chain of equal path probabilities, with a linear curve.
Case chain(std::size_t nodes, double probability, double slope) {
  Case c;
  for (std::size_t i = 0; i < nodes; ++i) c.sums.push_back(c.sums.back() + to_cost(probability));
  for (std::size_t k = 0; k <= 32; ++k) c.costs.push_back(to_cost(1 + slope * static_cast<double>(k)));
  return c;
}

TEST(DraftLength, SendsNothingThatIsNotWorthIt) {
  const DraftChoice answer = draft_length(chain(20, 0.1, 0.3).question());
  EXPECT_EQ(answer.nodes, 0U);
  EXPECT_EQ(answer.cut, Cut::unlikely);
}

TEST(DraftLength, SaysWhatKeptItFromSendingMore) {
  Case c = chain(20, 0.9, 0.05);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::none);
  c.allowance = to_cost(0.5);
  EXPECT_EQ(draft_length(c.question()).nodes, 10U);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::throttled);
  c.allowance = 0;
  EXPECT_EQ(draft_length(c.question()).nodes, 0U);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::throttled);
  c.allowance = LossBudget::burst;
  c.widths = {4, 16, 32};
  EXPECT_EQ(draft_length(c.question()).nodes, 15U);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::width);
  c.padded = true;
  c.sums.resize(16 + 15);  // 30 nodes
  for (std::size_t i = 21; i < c.sums.size(); ++i) c.sums[i] = c.sums[i - 1] + to_cost(0.9);
  EXPECT_EQ(draft_length(c.question()).nodes, 30U);
  EXPECT_EQ(draft_length(c.question()).padding, 1U);
  c.widths.clear();
  c.costs.resize(11);
  EXPECT_EQ(draft_length(c.question()).nodes, 10U);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::budget);
}

TEST(DraftLength, WorksWithNothingToWeigh) {
  Case c = chain(0, 0, 0.05);
  EXPECT_EQ(draft_length(c.question()).nodes, 0U);
  EXPECT_EQ(draft_length(c.question()).cut, Cut::none);
  c.costs = {cost_one};
  EXPECT_EQ(draft_length(c.question()).nodes, 0U);
  c.costs = {1, 1, 1};  // the cheapest possible passes
  c.sums = {0, 1, 2};
  EXPECT_LE(draft_length(c.question()).nodes, 2U);
  c.costs = {cost_one, ~Cost{0}, ~Cost{0}};
  EXPECT_EQ(draft_length(c.question()).nodes, 0U);
}

TEST(DraftLength, CountsWhatItCostsToRunAcceptedTokensAgain) {
  Case c = chain(4, 0.6, 0.3);
  const std::size_t usual = draft_length(c.question()).nodes;
  EXPECT_GT(usual, 0U);
  c.replayed = true;
  EXPECT_LT(draft_length(c.question()).nodes, usual);
  // The two accepted tokens and the token after them run again in the next pass, which has three rows more.
  EXPECT_EQ(rejection_cost(c.question(), 2), c.costs[3] - cost_one);
  c.rollback = 7;
  EXPECT_EQ(rejection_cost(c.question(), 2), c.costs[3] - cost_one + 7);
  c.replayed = false;
  EXPECT_EQ(rejection_cost(c.question(), 2), 7);
}
/// The reference evaluates each length on its own. The tokens that run again are the whole part of the expected number
/// accepted.
TEST(DraftLength, WeighsReplaysAsEachLengthWeighedOnItsOwn) {
  testing::Random random(11);
  for (int trial = 0; trial < 5'000; ++trial) {
    Case c = random_case(random);
    c.replayed = true;
    c.rollback = static_cast<Cost>(random.below(cost_one));
    c.allowance = most_rate;
    const LengthInput question = c.question();
    const Rate price = rate_one + static_cast<Rate>(random.below(4 * cost_one));
    std::size_t best = 0;
    std::int64_t best_value = 0;
    for (std::size_t rows = 1; rows < std::min(c.sums.size(), c.costs.size()); ++rows) {
      const std::int64_t all = c.sums[rows] - c.sums[rows - 1];
      const std::size_t next = std::min<std::size_t>((c.sums[rows] >> 16) + 1, c.costs.size() - 1);
      const std::int64_t again = c.rollback + (c.costs[next] > cost_one ? c.costs[next] - cost_one : 0);
      const std::int64_t more = std::int64_t{c.costs[rows]} - c.costs[0] + (again * (cost_one - all) >> 16);
      const std::int64_t value = c.sums[rows] - (price * more >> 16);
      if (value > best_value) {
        best = rows;
        best_value = value;
      }
    }
    ASSERT_EQ(best_length(question, price).nodes, best) << trial;
  }
}
TEST(DraftLength, StaysWithinTheAllowanceWhateverIsAcceptedAndRunAgain) {
  testing::Random random(12);
  std::size_t sent = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    Case c = random_case(random);
    c.replayed = true;
    for (const DraftChoice& answer : {draft_length(c.question()), stopping_length(c.question())}) {
      const std::size_t rows = answer.nodes + answer.padding;
      sent += rows;
      for (std::size_t accepted = 0; accepted < rows; ++accepted)
        ASSERT_LE(std::int64_t{c.costs[rows]} - c.costs[0] + rejection_cost(c.question(), accepted), c.allowance)
            << trial;
    }
  }
  EXPECT_GT(sent, 10'000U);
}

/// Two drafted rows cost 1 ns, more rows 2^40 ns, and a rejection is replayed. 2^30 tokens per plain pass times 2^33
/// plain passes need 64 bits, without the sign.
TEST(DraftLength, SurvivesTheMostExpensiveAcceptedCurve) {
  const CostPoint points[] = {{1, 0, 1, 1048576.0}, {1, 0, 2, 1.0}, {1, 0, 3, 1099511627776.0}};
  const auto curve = CostCurve::from_points(points);
  ASSERT_TRUE(curve);
  Case c;
  c.costs.resize(4);
  curve->costs({}, c.costs);
  c.sums = {0, cost_one, cost_one + 1};
  c.rollback = to_cost(5);
  c.replayed = true;
  for (const std::int64_t allowance : {LossBudget::burst, std::int64_t{most_rate} << 4}) {
    c.allowance = allowance;
    const DraftChoice answer = draft_length(c.question());
    EXPECT_LE(answer.nodes, 1U) << "a second row costs 65,536 plain passes";
    EXPECT_LE(stopping_length(c.question()).nodes, 1U);
  }
}

/// The cheapest expected cost of a chain's tokens after the first `committed`, over every plan, times the probability
/// of these tokens. `first`: the number of nodes of the next pass; unlimited: any.
std::int64_t cheapest_plan(const Case& c, std::size_t committed, std::size_t first) {
  const std::size_t nodes = c.sums.size() - 1;
  if (committed > nodes) return 0;
  const std::int64_t reached = committed == 0 ? cost_one : c.sums[committed] - c.sums[committed - 1];
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::size_t k = 0; k < c.costs.size() && committed + k <= nodes; ++k) {
    if (first != unlimited && k != first) continue;
    if (k > 0 && std::int64_t{c.costs[k]} - c.costs[0] > c.allowance) continue;
    best = std::min(best, reached * c.costs[k] + cheapest_plan(c, committed + k + 1, unlimited));
  }
  return best;
}

TEST(ChainLength, IsTheFirstPassOfTheCheapestPlan) {
  testing::Random random(21);
  std::size_t plans_with_drafts = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    Case c = random_case(random);
    c.sums.resize(std::min<std::size_t>(c.sums.size(), 1 + random.below(9)));
    const DraftChoice answer = chain_length(c.question());
    ASSERT_EQ(answer.padding, 0U);
    const std::int64_t best = cheapest_plan(c, 0, unlimited);
    ASSERT_EQ(cheapest_plan(c, 0, answer.nodes), best) << "trial " << trial;
    for (std::size_t k = 0; k < answer.nodes; ++k)
      ASSERT_GT(cheapest_plan(c, 0, k), best) << "trial " << trial << ": " << k << " nodes cost no more";
    if (answer.nodes > 0) ++plans_with_drafts;
  }
  EXPECT_GT(plans_with_drafts, 5'000U);
}

TEST(ChainLength, SaysWhatKeptItFromSendingMore) {
  Case c = chain(21, 0.9, 0.05);
  EXPECT_EQ(chain_length(c.question()).nodes, 21U);
  EXPECT_EQ(chain_length(c.question()).cut, Cut::none);
  c.allowance = to_cost(0.5);
  EXPECT_EQ(chain_length(c.question()).nodes, 10U);
  EXPECT_EQ(chain_length(c.question()).cut, Cut::throttled);
  c.allowance = LossBudget::burst;
  c.costs.resize(11);
  EXPECT_EQ(chain_length(c.question()).nodes, 10U);
  EXPECT_EQ(chain_length(c.question()).cut, Cut::budget);
  EXPECT_EQ(chain_length(chain(20, 0.1, 0.3).question()).nodes, 0U);
  EXPECT_EQ(chain_length(chain(20, 0.1, 0.3).question()).cut, Cut::unlikely);
  EXPECT_EQ(chain_length(chain(0, 0, 0.05).question()).cut, Cut::none);
}

TEST(ChainLength, HandlesTheLongestChainAndTheHighestCosts) {
  Case c = chain(100, 1, 0);
  c.costs.assign(65, ~Cost{0});
  c.allowance = std::int64_t{1} << 40;
  EXPECT_EQ(chain_length(c.question()).nodes, 64U);
  EXPECT_EQ(chain_length(c.question()).cut, Cut::budget);
  c.costs[0] = 1;
  EXPECT_EQ(chain_length(c.question()).nodes, 0U);
}

TEST(DraftLength, PlansChainsUnlessWidthsOrRejectionsMatter) {
  testing::Random random(22);
  std::size_t different = 0;
  for (int trial = 0; trial < 10'000; ++trial) {
    const Case c = random_case(random);
    LengthInput question = c.question();
    question.chain = true;
    ASSERT_EQ(draft_length(question).nodes, chain_length(question).nodes);
    different += draft_length(question).nodes != priced_length(question).nodes ? 1 : 0;
    const std::array<std::size_t, 2> widths = {4, 8};
    LengthInput others[] = {question, question, question, question};
    others[0].chain = false;
    others[1].widths = widths;
    others[2].rollback = to_cost(0.5);
    others[3].replayed = true;
    for (const LengthInput& other : others) ASSERT_EQ(draft_length(other).nodes, priced_length(other).nodes);
  }
  EXPECT_GT(different, 1'000U);
}

TEST(HighestThroughput, IsThatOfPlainDecodingAtLeast) {
  EXPECT_EQ(highest_throughput(std::array<Cost, 2>{cost_one, 3 * cost_one}), rate_one);
  EXPECT_EQ(highest_throughput(std::array<Cost, 3>{cost_one, cost_one, 2 * cost_one}), 2 * rate_one);
  EXPECT_EQ(highest_throughput(std::array<Cost, 3>{cost_one, cost_one, cost_one}, std::array<std::size_t, 2>{1, 3}),
            3 * rate_one);
}

TEST(ValueOfTime, IsThirtyPercentAboveTheRateFarFromTheTopAndTheTopThere) {
  EXPECT_NEAR(static_cast<double>(value_of_time(rate_one, 1000 * rate_one)) / rate_one, 1.30, 0.03);
  EXPECT_EQ(value_of_time(5 * rate_one, 5 * rate_one), 5 * rate_one);
  EXPECT_EQ(value_of_time(9 * rate_one, 5 * rate_one), 5 * rate_one);
}

TEST(LeastWorthwhile, IsThroughputTimesTheStepButNeverNothing) {
  EXPECT_NEAR(least_worthwhile(2 * rate_one, to_cost(0.05)).to_double(), 0.1, 1e-4);
  EXPECT_NEAR(least_worthwhile(2 * rate_one, 0).to_double(), 0.002, 1e-6);
  EXPECT_EQ(least_worthwhile(2 * rate_one, cost_one), Probability::one());
}

/// The decision may use only values that were stated before a node's token was drawn.
TEST(StoppingLength, DoesNotDependOnWhatComesAfterTheLastNodeSent) {
  testing::Random random(3);
  for (int trial = 0; trial < 20'000; ++trial) {
    Case c = random_case(random);
    if (random.chance(50)) {
      for (std::size_t width = 2; width < 40; width += 1 + random.below(8)) c.widths.push_back(width);
      c.padded = true;
    }
    const DraftChoice answer = stopping_length(c.question());
    ASSERT_LE(answer.nodes, c.sums.size() - 1);
    // The nodes after the first unsent node change; the answer must not.
    Case other = c;
    for (std::size_t i = answer.nodes + 2; i < c.sums.size(); ++i)
      other.sums[i] = other.sums[i - 1] + static_cast<std::uint32_t>(random.below(cost_one));
    ASSERT_EQ(stopping_length(other.question()).nodes, answer.nodes) << trial;
  }
}

TEST(StoppingLength, GoesOnWhileTheNextNodePays) {
  Case c = chain(0, 0, 0.1);
  for (const double probability : {0.9, 0.8, 0.1, 0.9}) c.sums.push_back(c.sums.back() + to_cost(probability));
  EXPECT_EQ(stopping_length(c.question()).nodes, 2U);
  EXPECT_EQ(stopping_length(c.question()).cut, Cut::unlikely);
}

TEST(Throughput, BeginsALittleAbovePlainDecoding) {
  EXPECT_NEAR(static_cast<double>(Throughput().rate()) / rate_one, 1.3, 1e-4);
}

TEST(Throughput, BecomesThatOfThePasses) {
  Throughput throughput;
  for (int i = 0; i < 500; ++i) throughput.add(i % 2 == 0 ? 5 : 1, i % 2 == 0 ? 2 * cost_one : cost_one);
  EXPECT_NEAR(static_cast<double>(throughput.rate()) / rate_one, 2, 0.05) << "six tokens in three plain passes";
}

TEST(Throughput, IsNeverBelowPlainDecoding) {
  Throughput throughput;
  for (int i = 0; i < 100; ++i) throughput.add(0, 100 * std::int64_t{cost_one});
  EXPECT_EQ(throughput.rate(), rate_one);
}

TEST(Throughput, TakesAnyNumbers) {
  Throughput throughput;
  for (int i = 0; i < 1000; ++i) throughput.add(static_cast<std::size_t>(-1), 0);
  EXPECT_GT(throughput.rate(), rate_one);
  for (int i = 0; i < 3000; ++i) throughput.add(1, ~Cost{0});
  EXPECT_EQ(throughput.rate(), rate_one);
}

}  // namespace
}  // namespace reprise::detail::draft_length_test
