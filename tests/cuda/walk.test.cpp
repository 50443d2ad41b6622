// SPDX-License-Identifier: Apache-2.0
// The rule that the CUDA example runs on the device, here on the host, against the library's walk.
#include "../../examples/cuda/walk.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../examples/cuda/random_walk.hpp"
#include "reprise/engine/top_k.hpp"

namespace cuda_example::walk_test {
namespace {

TEST(CudaExample, WalksRandomTreesLikeTheLibrary) {
  reprise::testing::Random random(1);
  std::size_t longest = 0;
  for (int i = 0; i < 5000; ++i) {
    const RandomWalk made = random_walk(random, 24);
    std::vector<Step> steps(made.drafted + 1);
    const auto drafted = static_cast<std::int32_t>(made.drafted);
    const std::int32_t count = walk(made.draft(), made.parents.data(), drafted,
                                    static_cast<std::int32_t>(made.anchor_row()), made.picks.data(), steps.data());
    const std::vector<Step> expected = library_walk(made);
    ASSERT_EQ(static_cast<std::size_t>(count), expected.size()) << "case " << i;
    for (std::size_t step = 0; step < expected.size(); ++step) {
      ASSERT_EQ(steps[step].row, expected[step].row) << "case " << i;
      ASSERT_EQ(steps[step].token, expected[step].token) << "case " << i;
    }
    longest = std::max(longest, expected.size());
  }
  EXPECT_GE(longest, 10U) << "the cases must have long paths";
}
TEST(CudaExample, PicksTheTokenThatArgmaxPicks) {
  reprise::testing::Random random(2);
  for (int i = 0; i < 2000; ++i) {
    std::vector<float> scores(random.below(12));
    for (float& score : scores) score = random.chance(20) ? std::nanf("") : static_cast<float>(random.below(4));
    std::int32_t best = -1;
    // From the end, because threads may meet tokens in any order.
    for (auto token = static_cast<std::int32_t>(scores.size()); token-- > 0;) {
      const float best_score = best < 0 ? 0 : scores[static_cast<std::size_t>(best)];
      if (wins(scores[static_cast<std::size_t>(token)], token, best_score, best)) best = token;
    }
    ASSERT_EQ(best < 0 ? 0 : best, reprise::argmax(scores)) << "case " << i;
  }
}

}  // namespace
}  // namespace cuda_example::walk_test
