// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "support/allocation_counter.hpp"
#include "support/lent_context.hpp"
#include "support/ngram_world.hpp"
#include "support/ranked_memory.hpp"
#include "support/streams.hpp"

namespace reprise::ngram_drafter_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::LentNgram;
using Tokens = std::vector<Token>;

Tokens text_of(std::size_t size, std::uint64_t seed) {
  return testing::make_stream(testing::Stream::trace_like, size, seed, 60);
}
constexpr DraftBudget tree = {.max_nodes = 64, .shape = DraftShape::tree};

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveHoweverLongTheTurnsAre) {
  for (const testing::Stream stream : {testing::Stream::random_small, testing::Stream::all_distinct})
    for (const std::size_t turn : {4U, 64U, 65U, 66U, 200U}) {
      LentNgram<> drafter;
      const Tokens text = testing::make_stream(stream, 4000, 2);
      drafter.begin(TokenSpan(text).first(8));
      drafter.reserve(text.size());
      const AllocationWatch watch;
      for (std::size_t at = 8; at + turn <= text.size(); at += turn)
        drafter.observe(TokenSpan(text).subspan(at, turn), at % 200 == 0 ? Origin::output : Origin::prompt);
      EXPECT_EQ(watch.allocations(), 0U) << turn;
    }
}

TEST(NgramDrafterMemory, IsNotAskedForInObserveAfterReserveWhenTheContextHasChanged) {
  NgramDrafter<> drafter;
  const Tokens text = testing::make_stream(testing::Stream::random_small, 4000, 2);
  const auto context = [&](std::size_t size) { return TokenSpan(text).first(size); };
  drafter.begin(context(1000));
  drafter.reserve(text.size());
  drafter.rebase(context(1000), context(8));
  ASSERT_GT(drafter.replaced_tokens(), 900U);
  const AllocationWatch watch;
  for (std::size_t at = 8; at < text.size(); at += 4) drafter.observe(context(at + 4), 4, Origin::prompt);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(NgramDrafterMemory, OfRowsIsAskedForOnceInObserve) {
  LentNgram<> drafter;
  const Tokens text = text_of(500, 1);
  drafter.begin(TokenSpan(text).first(100));
  drafter.reserve(text.size());
  std::vector<DraftNode> storage(64);
  const std::array<Outcome::RankedToken, 2> rows = {Outcome::RankedToken{anchor_parent, 0, 500},
                                                    Outcome::RankedToken{0, 0, 501}};
  for (std::size_t at = 100; at < text.size(); ++at) {
    Draft draft(storage, tree);
    const AllocationWatch watch;
    drafter.propose(draft);
    drafter.feedback({draft.view(), {}, {}, text[at], Cut::none, rows});
    EXPECT_EQ(watch.allocations(), 0U);
    drafter.observe(TokenSpan(text).subspan(at, 1));
    EXPECT_EQ(watch.allocations(), at == 100 ? 1U : 0U) << at;
  }
  const AllocationWatch watch;
  drafter.learn_row(text, Tokens(text.begin(), text.begin() + 5));
  EXPECT_EQ(watch.allocations(), 1U) << "the test's own";
}

TEST(NgramDrafterMemory, OfRowsIsAskedForByTheFirstRowOfAPrompt) {
  LentNgram<> drafter;
  const Tokens text = text_of(500, 1);
  drafter.begin(TokenSpan(text).first(100));
  drafter.reserve(text.size());
  const Tokens row = {500, 501};
  {
    const AllocationWatch watch(1, 1);  // the first allocation fails
    drafter.learn_row(text, row);
    EXPECT_EQ(watch.allocations(), 1U);
    EXPECT_TRUE(drafter.strategy().rows().empty());
  }
  const AllocationWatch watch;
  drafter.learn_row(text, row);
  drafter.learn_row(TokenSpan(text).first(50), row);
  drafter.observe(TokenSpan(text).subspan(100, 50));
  EXPECT_EQ(watch.allocations(), 1U);
}

TEST(NgramDrafterMemory, OfRowsMayFail) {
  testing::expect_recovery_from_failures<NgramDrafter<>>({.order = 1, .vocabulary = 40}, {Tokens(300, 4), Tokens{39}});
  testing::expect_usable_copies<NgramDrafter<>>({.order = 1, .vocabulary = 40});
}

}  // namespace
}  // namespace reprise::ngram_drafter_allocation_test
