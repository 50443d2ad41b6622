// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
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
TEST(DraftSources, APredictionWithoutMemoryIsRefusedOrLeftOut) {
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    NgramDrafter<> drafter;
    const auto draft_of = [&] {
      std::vector<DraftNode> storage(64);
      Draft draft(storage, {});
      drafter.propose(TokenSpan(text).first(3), draft);
      return draft.empty() ? Token{-1} : draft[0].token;
    };
    {
      const AllocationWatch watch(fail_at);
      static_cast<void>(drafter.predict(TokenSpan(text).subspan(3)));
      drafter.begin(TokenSpan(text).first(3));
      failed = watch.allocations() >= fail_at;
    }
    static_cast<void>(draft_of());
    ASSERT_TRUE(drafter.predict(TokenSpan(text).subspan(3)));
    drafter.begin(TokenSpan(text).first(3));
    EXPECT_EQ(draft_of(), text[3]) << "the next one is as any other, " << fail_at;
  }
}

}  // namespace
}  // namespace reprise::draft_sources_allocation_test
