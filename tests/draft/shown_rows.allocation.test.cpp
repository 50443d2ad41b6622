// SPDX-License-Identifier: Apache-2.0
// The rows that a drafter is shown, when memory runs out: only reserve() and copies allocate.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/detail/next_token_lists.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::shown_rows_allocation_test {
namespace {

using detail::ShownRows;
using testing::AllocationWatch;

TEST(ShownRowsAllocations, NoneToLearnToReadAndToClear) {
  const std::vector<Token> context = {1, 2};
  const std::vector<DraftNode> draft = {{.token = 5}, {.token = 6}};
  const std::vector<NodeIndex> accepted = {0};
  const std::vector<Outcome::RankedToken> top_k = {{anchor_parent, 0, 5}, {0, 0, 7}, {1, 0, 8}};
  Outcome outcome;
  outcome.draft = DraftView(draft, DraftKind::ordered);
  outcome.accepted = accepted;
  outcome.pick = 7;
  outcome.top_k = top_k;
  ShownRows rows(1 << 16);  // in 4 KiB, two of the rows have the same place
  rows.reserve();
  std::size_t found = 0;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    rows.reserve();
    rows.learn(context, outcome);
    for (const Token last : {2, 5, 6}) found += rows.after(Ranking::none, last) == nullptr ? 0U : 1U;
    rows.clear();
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_EQ(found, 3U);
}

TEST(ShownRowsAllocations, NoRowsWhereOneFails) {
  ShownRows rows(1 << 12);
  {
    const AllocationWatch watch(1, 100);
    rows.reserve();
  }
  rows.keep(1, 2, Ranking(std::vector<Token>{3}));
  EXPECT_EQ(rows.after(1, 2), nullptr);
  rows.reserve();
  rows.keep(1, 2, Ranking(std::vector<Token>{3}));
  ASSERT_NE(rows.after(1, 2), nullptr);

  const auto copy_without_memory = [&rows] {
    const AllocationWatch watch(1, 100);
    return rows;
  };
  ShownRows copy = copy_without_memory();
  EXPECT_EQ(copy.after(1, 2), nullptr);
  EXPECT_EQ(copy.memory_bytes(), 0U);
  copy.reserve();
  copy.keep(4, 5, Ranking(std::vector<Token>{6}));
  EXPECT_NE(copy.after(4, 5), nullptr) << "the copy can keep rows of its own";
  EXPECT_NE(rows.after(1, 2), nullptr);
}

}  // namespace
}  // namespace reprise::shown_rows_allocation_test
