// SPDX-License-Identifier: Apache-2.0
#include "reprise/extras/rest_drafter.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "reprise/history/history_store.hpp"
#include "support/allocation_counter.hpp"
#include "support/lent_context.hpp"

namespace reprise::rest_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using Tokens = std::vector<Token>;

const Tokens context = {1, 2, 3, 4};

const HistoryStore& history() {
  static const HistoryStore store = [] {
    HistoryStore made = HistoryStore::make({.max_bytes = 1 << 16}).value();
    for (Token last = 10; last < 20; ++last) {
      made.begin_sequence(static_cast<SequenceTag>(last));
      made.append(Tokens{1, 2, 3, 4, last, 5, 6, 7, 8}, Origin::prompt);
      made.end_sequence();
    }
    return made;
  }();
  return store;
}
RestDrafter drafter() { return RestDrafter::make({.store = history()}).value(); }

TEST(RestDrafterMemory, IsAskedForInBeginOnly) {
  std::vector<DraftNode> storage(64);
  for (const bool cut : {false, true}) {
    RestDrafter strategy = RestDrafter::make({.store = history(), .cut = cut}).value();
    strategy.begin(context);
    Draft draft(storage, {.max_nodes = 64});
    const AllocationWatch watch;
    strategy.propose(context, draft);
    strategy.observe(context, 2, Origin::output);
    strategy.feedback(context, {});
    strategy.truncate(context, 1);
    strategy.begin(context);  // the memory is there
    EXPECT_EQ(watch.allocations(), 0U);
    EXPECT_GT(draft.size(), 20U);
  }
}

TEST(RestDrafterMemory, MayRunOutAndThenNothingIsDraftedUntilTheNextSequence) {
  bool failed = true;
  std::size_t failures = 0;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    RestDrafter strategy = drafter();
    {
      const AllocationWatch watch(fail_at, 10);
      strategy.begin(context);
      failed = watch.allocations() >= fail_at;
    }
    failures += failed ? 1 : 0;
    EXPECT_EQ(testing::propose(strategy, context).nodes.empty(), failed);
    strategy.begin(context);
    EXPECT_FALSE(testing::propose(strategy, context).nodes.empty());
  }
  EXPECT_GT(failures, 3U);
}

TEST(RestDrafterMemory, MayRunOutInACopy) {
  RestDrafter strategy = drafter();
  strategy.begin(context);
  std::size_t empty = 0;
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    std::optional<RestDrafter> copy;
    {
      const AllocationWatch watch(fail_at, 2);  // a buffer tries twice
      copy.emplace(strategy);
      failed = watch.allocations() >= fail_at;
    }
    empty += testing::propose(*copy, context).nodes.empty() ? 1 : 0;
    copy->begin(context);
    EXPECT_FALSE(testing::propose(*copy, context).nodes.empty());
  }
  EXPECT_EQ(empty, 4U) << "each of the four buffers may run out";
  EXPECT_FALSE(testing::propose(strategy, context).nodes.empty());
}

}  // namespace
}  // namespace reprise::rest_drafter_allocation_test
