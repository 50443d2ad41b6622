// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/detail/claim_calibrator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::detail::isotonic_test {
namespace {

struct Given {
  std::uint64_t value;
  std::uint64_t weight;
};

std::vector<std::uint64_t> fitted(const std::vector<Given>& all) {
  std::array<std::uint64_t, 12> values;
  std::array<std::uint64_t, 12> weights;
  values.fill(1'000'000);  // after all others, so that it changes none of them
  weights.fill(1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    values[i] = all[i].value;
    weights[i] = all[i].weight;
  }
  make_isotonic(values, weights);
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(all.size())};
}

TEST(MakeIsotonic, LeavesWhatRises) {
  EXPECT_EQ(fitted({{1, 5}, {1, 1}, {3, 2}, {7, 1}}), (std::vector<std::uint64_t>{1, 1, 3, 7}));
}
TEST(MakeIsotonic, PoolsNeighboursByWeight) {
  EXPECT_EQ(fitted({{10, 3}, {2, 1}}), (std::vector<std::uint64_t>{8, 8}));
  EXPECT_EQ(fitted({{1, 1}, {9, 1}, {6, 1}, {3, 1}, {8, 1}}), (std::vector<std::uint64_t>{1, 6, 6, 6, 8}));
}
TEST(MakeIsotonic, IsTheGreatestOfTheLeastMeans) {
  // The textbook formula: value i is the maximum over a <= i of the minimum over b >= i of the mean of values a to b.
  testing::Random random(3);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<Given> all(1 + random.below(12));
    for (Given& given : all) given = {random.below(1000), 1 + random.below(20)};
    const std::vector<std::uint64_t> found = fitted(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      double best = 0;
      for (std::size_t a = 0; a <= i; ++a) {
        double least = 1e9;
        double sum = 0;
        double weight = 0;
        for (std::size_t b = a; b < all.size(); ++b) {
          sum += static_cast<double>(all[b].value * all[b].weight);
          weight += static_cast<double>(all[b].weight);
          if (b >= i && sum / weight < least) least = sum / weight;
        }
        best = a == 0 || least > best ? least : best;
      }
      EXPECT_NEAR(static_cast<double>(found[i]), best, 1) << i;
    }
  }
}

}  // namespace
}  // namespace reprise::detail::isotonic_test
