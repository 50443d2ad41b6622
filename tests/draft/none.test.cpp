// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/none.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/lent_context.hpp"

namespace reprise {
namespace {

static_assert(MeasurableStrategy<NoDraft>);

TEST(NoDraft, DraftsNothingWhateverItHasSeen) {
  testing::Lent<NoDraft> strategy;
  const std::vector<Token> tokens = {1, 1, 1, 1};
  strategy.begin(tokens);
  EXPECT_TRUE(strategy.propose().nodes.empty());
  strategy.observe(tokens, Origin::output);
  strategy.feedback({});
  strategy.truncate(1);
  EXPECT_TRUE(strategy.propose().nodes.empty());
}

TEST(NoDraft, HoldsNoMemory) { EXPECT_EQ(NoDraft().memory_bytes(), 0U); }

}  // namespace
}  // namespace reprise
