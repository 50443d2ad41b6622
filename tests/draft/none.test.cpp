// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/none.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace reprise {
namespace {

static_assert(MeasurableStrategy<NoDraft>);

TEST(NoDraft, DraftsNothingWhateverItHasSeen) {
  NoDraft strategy;
  const std::vector<Token> tokens = {1, 1, 1, 1};
  std::array<DraftNode, 8> storage;
  Draft draft(storage);
  strategy.begin(tokens);
  strategy.propose({}, draft);
  EXPECT_TRUE(draft.empty());
  strategy.observe(tokens, Origin::output);
  strategy.feedback({});
  strategy.truncate(1);
  strategy.propose({}, draft);
  EXPECT_TRUE(draft.empty());
}

TEST(NoDraft, HoldsNoMemory) { EXPECT_EQ(NoDraft().memory_bytes(), 0U); }

}  // namespace
}  // namespace reprise
