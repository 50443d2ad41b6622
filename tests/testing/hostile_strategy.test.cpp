// SPDX-License-Identifier: Apache-2.0
#include "reprise/testing/hostile_strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace reprise::testing {
namespace {

TEST(HostileStrategy, WritesEveryKindOfGarbage) {
  HostileStrategy strategy(1, 4);
  std::array<DraftNode, 8> storage;
  std::set<int> seen;
  for (int i = 0; i < 500; ++i) {
    Draft draft(storage);
    strategy.propose(DraftBudget{.max_nodes = 2}, draft);
    const auto note = [&](int kind, bool holds) {
      if (holds) seen.insert(kind);
    };
    note(0, draft.empty());
    note(1, draft.size() == storage.size());
    note(2, draft.view().kind() == DraftKind::sampled);
    for (std::size_t n = 0; n < draft.size(); ++n) {
      note(3, draft[n].parent == static_cast<NodeIndex>(n));
      note(4, draft[n].parent > static_cast<NodeIndex>(n));
      note(5, draft[n].parent == std::numeric_limits<NodeIndex>::max());
      note(6, draft[n].parent < anchor_parent);
      note(7, draft[n].token == std::numeric_limits<Token>::min());
      note(8, draft[n].token == std::numeric_limits<Token>::max());
      note(9, draft[n].auxiliary);
      note(10, n > 0 && draft[n].path_probability > draft[n - 1].path_probability);
      note(11, n > 0 && draft[n].token == draft[n - 1].token && draft[n].parent == draft[n - 1].parent);
      note(12, draft[n].token >= 0 && draft[n].token < 4 && draft[n].parent == static_cast<NodeIndex>(n) - 1);
    }
  }
  EXPECT_EQ(seen.size(), 13U);
}
TEST(HostileStrategy, GivesTheSameGarbageForTheSameSeed) {
  HostileStrategy one(7);
  HostileStrategy two(7);
  for (int i = 0; i < 50; ++i) {
    std::array<DraftNode, 8> a;
    std::array<DraftNode, 8> b;
    Draft first(a);
    Draft second(b);
    one.propose({}, first);
    two.propose({}, second);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t n = 0; n < first.size(); ++n) ASSERT_EQ(first[n].token, second[n].token);
  }
}

}  // namespace
}  // namespace reprise::testing
