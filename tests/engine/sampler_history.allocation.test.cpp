// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <utility>

#include "reprise/core/strategy.hpp"
#include "reprise/engine/sampler_history.hpp"
#include "reprise/loop/generate.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::sampler_history_allocation_test {
namespace {

using testing::AllocationWatch;

struct Counter {
  Token next = 0;
};
Token count(Counter& counter, std::size_t = 0) { return counter.next++; }

TEST(SamplerHistoryWithoutMemory, SaysSoBeforeAPassDrawsAnything) {
  SamplerHistory<Counter> history(Counter{7});
  {
    const AllocationWatch watch(1);
    const auto reserved = history.reserve(3);
    ASSERT_FALSE(reserved);
    EXPECT_EQ(reserved.error().code, ErrorCode::out_of_memory);
    EXPECT_EQ(reserved.error().value, 3U);
  }
  for (const std::size_t picks : {unlimited, unlimited / sizeof(Counter)}) EXPECT_FALSE(history.reserve(picks));
  {
    const AllocationWatch watch(1);
    const auto picks = history.picks(2, count);
    EXPECT_FALSE(picks);
    EXPECT_EQ(picks.error().code, ErrorCode::out_of_memory);
  }
  EXPECT_EQ(history.drawn(), 0U);
  EXPECT_EQ(history.sampler().next, 7);
  auto picks = history.picks(2, count);
  ASSERT_TRUE(picks);
  EXPECT_EQ((*picks)[0], 7);
  EXPECT_FALSE(history.reserve(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(history.begin_pass(std::numeric_limits<std::size_t>::max()));
}
TEST(SamplerHistoryWithoutMemory, IsCopiedWithoutItsOpenPass) {
  SamplerHistory<Counter> history(Counter{7});
  ASSERT_TRUE(history.begin_pass(1));
  history.draw([](Counter& counter) { return count(counter); });
  const auto copy_without = [&] {
    const AllocationWatch watch(1);
    return SamplerHistory<Counter>(history);
  };
  const SamplerHistory<Counter> copy = copy_without();
  EXPECT_EQ(copy.drawn(), 0U);
  EXPECT_EQ(copy.sampler().next, 7);
  EXPECT_EQ(SamplerHistory<Counter>(history).drawn(), 1U) << "with memory it has the open pass too";
}
TEST(SamplerHistoryWithMemory, AddsNothingToTheHeapWithinWhatWasReserved) {
  SamplerHistory<Counter> history(Counter{});
  ASSERT_TRUE(history.reserve(4));
  SamplerHistory<Counter> moved = std::move(history);
  const AllocationWatch watch;
  for (int pass = 0; pass < 3; ++pass) {
    auto picks = moved.picks(3, count);
    for (std::size_t i = 0; i < 4; ++i) static_cast<void>((*picks)[i]);
    moved.commit(4);
  }
  EXPECT_EQ(watch.allocations(), 0U);
  EXPECT_EQ(moved.sampler().next, 12);
}

/// Counts up. In its third pass there is no memory for the sampler's states.
struct Engine {
  SamplerHistory<Counter> sampler = SamplerHistory<Counter>(Counter{});
  std::size_t passes = 0;
  std::size_t pending = 0;

  auto verify(TokenSpan batch, std::size_t drafted) {
    pending = batch.size() - drafted;
    const std::size_t picks = ++passes == 3 ? std::numeric_limits<std::size_t>::max() : drafted;
    return sampler.picks(picks, count);
  }
  void commit(std::size_t keep) { sampler.commit(keep + 1 - pending); }
};

TEST(SamplerHistoryWithoutMemory, EndsGenerationWithAnErrorAndCanGoOn) {
  Engine engine;
  Session<NoDrafter> session;
  const Token prompt = 5;
  const auto failed = generate(session, engine, TokenSpan(&prompt, 1), {.max_tokens = 6});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::out_of_memory);
  ASSERT_TRUE(generate(session, engine, Limits{.max_tokens = 6}));
  EXPECT_THAT(session.output(), ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace reprise::sampler_history_allocation_test
