// SPDX-License-Identifier: Apache-2.0
#include "replay/loss_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::replay::loss_window_test {
namespace {

struct OnePass {
  double cost;
  std::size_t committed;
};

double worst(const std::vector<OnePass>& passes, std::size_t longest) {
  LossWindow window(longest);
  for (const OnePass& pass : passes) window.add(pass.cost, pass.committed);
  return window.worst();
}

TEST(LossWindow, AgreesWithAllStretchesTriedInTurn) {
  testing::Random random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<OnePass> passes;
    for (std::size_t n = random.below(60); n > 0; --n)
      passes.push_back({1 + static_cast<double>(random.below(8)) / 8, random.below(3)});
    const std::size_t longest = random.below(20) + 1;
    double most = 0;
    for (std::size_t from = 0; from < passes.size(); ++from) {
      double loss = 0;
      for (std::size_t i = from; i < std::min(passes.size(), from + longest); ++i) {
        loss += passes[i].cost - static_cast<double>(passes[i].committed);
        most = std::max(most, loss);
      }
    }
    ASSERT_DOUBLE_EQ(worst(passes, longest), most);
  }
}

}  // namespace
}  // namespace reprise::replay::loss_window_test
