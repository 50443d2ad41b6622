// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/predicted_output_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/streams.hpp"

namespace reprise::draft_sources_allocation_test {
namespace {

using testing::AllocationWatch;
using Tokens = std::vector<Token>;

const Tokens text = testing::make_stream(testing::Stream::trace_like, 1200, 3, 60);

TEST(DraftSources, ExternalDraftsAllocateBelowTheirReserveNowhere) {
  ExternalDrafter strategy;
  ASSERT_TRUE(strategy.reserve_nodes(64));
  std::vector<DraftNode> storage(64);
  const AllocationWatch watch;
  ASSERT_TRUE(strategy.set({.tokens = TokenSpan(text).first(64)}));
  Draft draft(storage, {.max_nodes = 64});
  strategy.propose({}, draft);
  EXPECT_EQ(draft.size(), 64U);
  EXPECT_EQ(watch.allocations(), 0U);
}
TEST(DraftSources, AnExternalDraftWithoutMemoryIsRefused) {
  for (std::size_t fail_at = 1; fail_at <= 3; ++fail_at) {
    ExternalDrafter strategy;
    const auto set = [&] {
      const AllocationWatch watch(fail_at, 2);  // growing is tried twice
      return strategy.set({.tokens = TokenSpan(text).first(64)});
    }();
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ErrorCode::out_of_memory);
    std::vector<DraftNode> storage(64);
    Draft draft(storage, {});
    strategy.propose({}, draft);
    EXPECT_TRUE(draft.empty());
  }
}
TEST(DraftSources, ACopyWithoutMemoryDraftsNothingOrTheSame) {
  ExternalDrafter external;
  ASSERT_TRUE(external.set({.tokens = TokenSpan(text).first(20)}));
  std::vector<DraftNode> storage(64);
  bool failed = true;
  std::size_t fail_at = 1;
  for (; failed; ++fail_at) {
    ExternalDrafter copy = [&] {
      const AllocationWatch watch(fail_at);
      ExternalDrafter made = external;
      failed = watch.allocations() >= fail_at;
      return made;
    }();
    Draft draft(storage, {});
    copy.propose({}, draft);
    EXPECT_TRUE(draft.empty() || draft.size() == 20) << "allocation " << fail_at;
  }
  EXPECT_GT(fail_at, 3U);
}
TEST(DraftSources, AReferenceWithoutMemoryIsRefusedAndTheOthersStay) {
  const Tokens first = {1, 2, 3, 4, 5};
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    PredictedOutputDrafter drafter;
    ASSERT_TRUE(drafter.predict(first));
    {
      const AllocationWatch watch(fail_at);
      const auto added = drafter.add_reference(text);
      failed = watch.allocations() >= fail_at;
      EXPECT_EQ(drafter.reference_size(), added ? text.size() + first.size() : first.size());
    }
    drafter.begin(TokenSpan(text).first(3));
    std::vector<DraftNode> storage(64);
    Draft draft(storage, {});
    drafter.propose(TokenSpan(text).first(3), draft);
    EXPECT_TRUE(draft.empty() || draft[0].token == 1) << fail_at;
    drafter.clear_references();
    ASSERT_TRUE(drafter.predict(first));
    drafter.begin(TokenSpan(text).first(3));
    Draft again(storage, {});
    drafter.propose(TokenSpan(text).first(3), again);
    ASSERT_FALSE(again.empty()) << fail_at;
    EXPECT_EQ(again[0].token, 1);
  }
}

}  // namespace
}  // namespace reprise::draft_sources_allocation_test
