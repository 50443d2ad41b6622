// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/first_match.hpp"
#include "reprise/draft/jump_forward_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/predicted_output_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/extras/best_of.hpp"
#include "support/allocation_counter.hpp"
#include "support/streams.hpp"

namespace reprise::draft_sources_allocation_test {
namespace {

using testing::AllocationWatch;
using Tokens = std::vector<Token>;

const Tokens text = testing::make_stream(testing::Stream::trace_like, 1200, 3, 60);

PredictedOutputDrafter reference() {
  PredictedOutputDrafter drafter;
  EXPECT_TRUE(drafter.predict(TokenSpan(text).subspan(300)));
  return drafter;
}

/// Runs the rounds of a sequence. Returns the allocations of propose() and feedback(), and of observe() after
/// reserve().
template <class Strategy>
std::size_t allocations_of(Strategy strategy) {
  strategy.begin(TokenSpan(text).first(200));
  strategy.reserve(text.size());
  std::vector<DraftNode> storage(64);
  std::size_t drafted = 0;
  const AllocationWatch watch;
  for (std::size_t at = 200; at + 3 < text.size(); at += 3) {
    const TokenSpan context = TokenSpan(text).first(at);
    Draft draft(storage, {.max_nodes = 40});
    strategy.propose(context, draft);
    drafted += draft.size();
    strategy.feedback(context, {draft.view(), {}, {}, text[at], Cut::none, {}});
    strategy.observe(TokenSpan(text).first(at + 3), 3, Origin::output);
  }
  EXPECT_GT(drafted, 100U);
  return watch.allocations();
}

TEST(DraftSources, DoNotAllocateInSteadyState) {
  EXPECT_EQ(allocations_of(reference()), 0U);
  EXPECT_EQ(allocations_of(UnionDrafter(NgramDrafter<>(), reference(), PromptLookupDrafter<>())), 0U);
  EXPECT_EQ(allocations_of(BestOf(NgramDrafter<>(), reference())), 0U);
  EXPECT_EQ(allocations_of(FirstMatch(PromptLookupDrafter<>(), NgramDrafter<>())), 0U);
}
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
  PredictedOutputDrafter drafter = reference();
  drafter.begin(TokenSpan(text).first(300));
  const TokenSpan context = TokenSpan(text).first(450);
  drafter.observe(context, 150, Origin::output);
  std::vector<DraftNode> storage(64);
  const auto survive = [&](auto original, std::size_t fail_at) {
    bool failed = false;
    auto copy = [&] {
      const AllocationWatch watch(fail_at);
      auto made = original;
      failed = watch.allocations() >= fail_at;
      return made;
    }();
    Draft wanted(storage, {});
    original.propose(context, wanted);
    const std::vector<DraftNode> nodes(wanted.view().begin(), wanted.view().end());
    Draft draft(storage, {});
    copy.propose(context, draft);
    EXPECT_TRUE(draft.empty() || draft.size() == nodes.size()) << "allocation " << fail_at;
    copy.feedback(context, {draft.view(), {}, {}, 1, Cut::none, {}});
    Tokens longer(context.begin(), context.end());
    longer.insert(longer.end(), text.begin(), text.begin() + 30);
    copy.observe(longer, 30, Origin::output);
    copy.truncate(longer, 310);
    Draft again(storage, {});
    copy.propose(context.first(310), again);
    copy.begin(TokenSpan(text).first(100));
    return failed;
  };
  std::size_t fail_at = 1;
  while (survive(external, fail_at)) ++fail_at;
  EXPECT_GT(fail_at, 3U);
  for (fail_at = 1; survive(drafter, fail_at);) ++fail_at;
  EXPECT_GT(fail_at, 6U);
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
TEST(DraftSources, AReferenceDrafterSurvivesAnyFailure) {
  bool failed = true;
  for (std::size_t fail_at = 1; failed; ++fail_at) {
    PredictedOutputDrafter drafter = reference();
    std::vector<DraftNode> storage(64);
    {
      const AllocationWatch watch(fail_at, 2);
      drafter.begin(TokenSpan(text).first(300));
      std::size_t size = 300;
      for (; size + 7 < text.size(); size += 7) drafter.observe(TokenSpan(text).first(size + 7), 7, Origin::output);
      drafter.truncate(TokenSpan(text).first(size), 700);
      const TokenSpan context = TokenSpan(text).first(750);
      drafter.observe(context, 50, Origin::output);
      Draft draft(storage, {});
      drafter.propose(context, draft);
      drafter.feedback(context, {draft.view(), {}, {}, 1, Cut::none, {}});
      failed = watch.allocations() >= fail_at;
    }
    drafter.begin(TokenSpan(text).first(300));
    Draft draft(storage, {});
    drafter.propose(TokenSpan(text).first(300), draft);
    ASSERT_FALSE(draft.empty());
    EXPECT_EQ(draft[0].token, text[300]);
  }
}

}  // namespace
}  // namespace reprise::draft_sources_allocation_test
