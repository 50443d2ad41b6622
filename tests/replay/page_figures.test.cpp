// SPDX-License-Identifier: Apache-2.0
#include "replay/page_figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::replay::page_figures_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<SessionCost> random_sessions(std::size_t count, std::uint64_t seed) {
  testing::Random random(seed);
  std::vector<SessionCost> sessions;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t tokens = 1 + random.below(500);
    const double speedup = 1 + static_cast<double>(random.below(1000)) / 500;
    sessions.push_back({tokens, static_cast<double>(tokens) / speedup});
  }
  return sessions;
}

TEST(PageFigures, BootstrapIsDeterministicAndHoldsTheSpeedup) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto sessions = random_sessions(2 + seed, seed);
    const auto once = bootstrap(sessions);
    const auto again = bootstrap(sessions);
    ASSERT_TRUE(once && again);
    EXPECT_EQ(once->low, again->low);
    EXPECT_EQ(once->high, again->high);
    EXPECT_LE(once->low, sum(sessions).speedup());
    EXPECT_GE(once->high, sum(sessions).speedup());
  }
}

// Of 200 samples from one population, the interval holds the true speedup in about 95 of 100.
TEST(PageFigures, BootstrapCoversTheTruth) {
  const auto population = random_sessions(4000, 3);
  const double truth = sum(population).speedup();
  testing::Random random(11);
  int covered = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<SessionCost> sample;
    for (int j = 0; j < 60; ++j) sample.push_back(population[random.below(population.size())]);
    const auto interval = bootstrap(sample);
    covered += interval->low <= truth && truth <= interval->high ? 1 : 0;
  }
  EXPECT_GE(covered, 178);
  EXPECT_LE(covered, 199);
}

TEST(PageFigures, ThousandsOfGroupsAreFoldedByTokens) {
  std::vector<std::string> names;
  std::vector<std::uint64_t> tokens;
  for (std::size_t i = 0; i < 5000; ++i) {
    names.push_back("category " + std::to_string(i));
    tokens.push_back(i % 1000 == 999 ? 100 : 1);
  }
  const Groups groups = group_by(names, tokens, 5);
  ASSERT_EQ(groups.groups.size(), 6U);
  EXPECT_EQ(groups.folded, 4995U);
  EXPECT_EQ(groups.groups.front().name, "category 999");
  EXPECT_EQ(groups.groups[4].name, "category 4999");
  EXPECT_EQ(groups.groups.back().name, "4995 others");
  EXPECT_EQ(groups.groups.back().sessions.size(), 4995U);
}

TEST(PageFigures, WorstMedianAndBestAreDistinctSessionsWithTokens) {
  const std::vector<SessionCost> sessions = {{10, 5}, {0, 0}, {10, 10}, {10, 4}, {10, 8}, {10, 10}};
  EXPECT_THAT(worst_median_best(sessions, {"all", {0, 1, 2, 3, 4, 5}}), ElementsAre(2, 4, 3));
  EXPECT_THAT(worst_median_best(sessions, {"two", {0, 1, 2}}), ElementsAre(2, 0));
  EXPECT_THAT(worst_median_best(sessions, {"none", {1}}), IsEmpty());
}

}  // namespace
}  // namespace reprise::replay::page_figures_test
