// SPDX-License-Identifier: Apache-2.0
#include "reprise/core/strategy.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/lent_context.hpp"

namespace reprise::no_drafter_test {
namespace {

static_assert(MeasurableStrategy<NoDrafter>);

TEST(NoDrafter, DraftsNothingWhateverItHasSeen) {
  testing::Lent<NoDrafter> strategy;
  const std::vector<Token> tokens = {1, 1, 1, 1};
  strategy.begin(tokens);
  EXPECT_TRUE(strategy.propose().nodes.empty());
  strategy.observe(tokens, Origin::output);
  strategy.feedback({});
  strategy.truncate(1);
  EXPECT_TRUE(strategy.propose().nodes.empty());
  EXPECT_EQ(strategy->memory_bytes(), 0U);
}

}  // namespace
}  // namespace reprise::no_drafter_test
