// SPDX-License-Identifier: Apache-2.0
#include "reprise/batch/detail/batch_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace reprise::batch_cost_test {
namespace {

using detail::BatchCost;

/// An engine whose passes take a time that depends on their rows alone: `per_row` of the time of one row for each more.
struct Engine {
  double per_row;

  [[nodiscard]] double time(std::size_t rows) const { return 1 + per_row * static_cast<double>(rows - 1); }
  /// Runs passes of `sequences` sequences with up to `most` drafted rows, and learns from their times.
  void run(BatchCost& cost, std::size_t sequences, std::size_t most, int passes) const {
    for (int pass = 0; pass < passes; ++pass) {
      const std::size_t drafted = static_cast<std::size_t>(pass) * 7 % (most + 1);
      const auto took = static_cast<std::int64_t>(1e7 * time(sequences + drafted));
      cost.prepare({sequences, sequences, 0});
      cost.learn(drafted, std::chrono::nanoseconds(took), {});
    }
  }
  /// Checks the costs of `sequences` sequences with up to `most` drafted rows.
  void expect(BatchCost& cost, std::size_t sequences, std::size_t most, double tolerance) const {
    cost.prepare({sequences, sequences, 0});
    for (std::size_t k = 1; k <= most; ++k) {
      const double expected = time(sequences + k) / time(sequences);
      EXPECT_NEAR(static_cast<double>(cost.cost(k)) / cost_one, expected, tolerance * expected)
          << sequences << " sequences, " << k << " drafted rows, " << per_row << " for each";
    }
  }
};

BatchCost unknown() {
  BatchCost cost({}, {}, 96);
  EXPECT_TRUE(cost.reserve());
  return cost;
}

TEST(BatchCost, ABatchSizeWithoutTimesHasTheCostsOfTheNearestOne) {
  for (const double per_row : {0.01, 0.1, 0.35}) {
    const Engine engine{per_row};
    // The number of sequences of a lender need not be a power of two.
    for (const std::size_t lender : {1U, 4U, 6U, 7U, 16U, 30U}) {
      BatchCost cost = unknown();
      engine.run(cost, lender, 40, 400);
      engine.expect(cost, lender, 40, 0.05);
      for (const std::size_t borrower : {1U, 2U, 3U, 5U, 8U, 15U, 24U, 32U}) {
        if (lender + 40 < borrower || std::bit_width(lender) == std::bit_width(borrower)) continue;
        engine.expect(cost, borrower, std::min(lender + 40 - borrower, std::size_t{40}), 0.15);
      }
    }
  }
}

/// The curve has fewer rows than a pass may have. A pass beyond them must not be believed to be cheap forever.
TEST(BatchCost, LearnsThatTheLargestDraftThatItAllowsIsDear) {
  for (std::size_t sequences = 1; sequences <= 64; sequences += sequences < 10 ? 1 : 9) {
    BatchCost cost({}, {}, 512);
    ASSERT_TRUE(cost.reserve());
    const Engine cheap{0.001};
    for (int round = 0; round < 3; ++round) {  // every allowed number has a cheap pass, so more and more are allowed
      cost.prepare({sequences, sequences, 0});
      cheap.run(cost, sequences, std::min<std::size_t>(cost.explored_rows(), 512), 3000);
    }
    cost.prepare({sequences, sequences, 0});
    const std::size_t most = std::min<std::size_t>(cost.explored_rows(), 512);
    const auto dear = std::chrono::nanoseconds(static_cast<std::int64_t>(4e7 * cheap.time(sequences)));
    for (int pass = 0; pass < 200; ++pass) {
      cheap.run(cost, sequences, 0, 1);
      cost.learn(most, dear, {});
    }
    cost.prepare({sequences, sequences, 0});
    EXPECT_GE(cost.cost(most), to_cost(3)) << sequences << " sequences, " << most;
  }
}

TEST(BatchCost, ALoanFollowsTheLenderUntilTheFirstTime) {
  const Engine slow{0.3};
  const Engine fast{0.02};
  BatchCost cost = unknown();
  slow.run(cost, 4, 12, 100);
  slow.expect(cost, 3, 12, 0.1);
  cost.learn(5, {}, {});  // a pass without a time, as beside a prompt, is not a time
  fast.run(cost, 4, 12, 400);
  fast.expect(cost, 3, 12, 0.1);
  EXPECT_EQ(cost.learned(3).passes(), 0U);
  EXPECT_TRUE(cost.learned(3).prior().empty()) << "borrowed costs are not learned ones";

  // The first time makes them its own.
  fast.run(cost, 3, 12, 1);
  EXPECT_FALSE(cost.learned(3).prior().empty());
  const CostPrior own = cost.learned(3).prior();
  slow.run(cost, 4, 12, 100);
  cost.prepare({3, 3, 0});
  EXPECT_EQ(cost.learned(3).prior(), own);
}

TEST(BatchCost, APassThatWasNotAsPlannedDoesNotDelayThePlainPassThatShowsTheCosts) {
  // A server whose plain passes carry prompts, and whose other passes have drafts.
  const Engine engine{0.35};
  BatchCost cost = unknown();
  const LossBudget budget;
  int plain = 0;
  for (int pass = 0; pass < 40; ++pass) {
    for (int prompt = 0; prompt < 3; ++prompt) {
      cost.prepare({3, 3, 0});
      cost.learn(0, {}, {}, false);
    }
    cost.prepare({3, 3, 0});
    const bool probe = cost.pass_costs().should_probe_plain(cost_one / 4, budget);
    plain += probe;
    const std::size_t drafted = probe ? 0 : 2;
    cost.learn(drafted, std::chrono::nanoseconds(static_cast<std::int64_t>(1e7 * engine.time(3 + drafted))), {});
  }
  EXPECT_GE(plain, 2);
  engine.expect(cost, 3, 2, 0.1);
}

TEST(BatchCost, TimesLendBeforeGivenCosts) {
  const Engine engine{0.3};
  BatchCost cost = unknown();
  cost.assume(1, CostPrior::gpu_batch_1());
  cost.prepare({2, 2, 0});
  EXPECT_LT(cost.cost(4), 2 * cost_one) << "given costs, while there are no times";
  engine.run(cost, 8, 12, 200);
  engine.expect(cost, 2, 12, 0.1);
  cost.prepare({1, 1, 0});
  EXPECT_EQ(cost.cost(4), CostPrior::gpu_batch_1().cost(5)) << "given costs are not replaced";
}

TEST(BatchCost, GivenCostsEndALoanAtOnce) {
  BatchCost cost = unknown();
  cost.assume(1, CostPrior::gpu_batch_1());
  cost.prepare({2, 2, 0});
  const Cost cheap = cost.cost(4);
  cost.assume(1, CostPrior::cpu_quantised());
  cost.prepare({2, 2, 0});
  EXPECT_GT(cost.cost(4), cheap);
  cost.assume(2, CostPrior::gpu_batch_1());
  cost.prepare({2, 2, 0});
  EXPECT_EQ(cost.cost(4), CostPrior::gpu_batch_1().cost(5));
  cost.assume(2, {});
  cost.prepare({2, 2, 0});
  EXPECT_GT(cost.cost(4), cheap) << "nothing is known of it again";
}

}  // namespace
}  // namespace reprise::batch_cost_test
