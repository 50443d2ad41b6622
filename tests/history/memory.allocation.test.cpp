// SPDX-License-Identifier: Apache-2.0
// The allocations of a memory, which only make(), options() and add() perform, and what happens without memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/memory.hpp"
#include "support/allocation_counter.hpp"

namespace reprise::memory_allocation_test {
namespace {

using testing::AllocationWatch;

constexpr MemoryOptions small = {.max_bytes = 2'000, .next_token_bytes = 2'000, .rankings = true, .salts = 2};

TEST(MemoryAllocations, NoneToKeepASequence) {
  const Memory memory = Memory::make(small).value();
  NgramDrafter<> drafter(memory.options());
  const std::vector<Token> tokens(500, 3);
  drafter.begin(tokens);
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    drafter.keep();
    static_cast<void>(memory.options());
    static_cast<void>(memory.options().memory->calibration());
    static_cast<void>(memory.memory_bytes());
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
}

TEST(MemoryAllocations, NoneInObserveAfterReserve) {
  const Memory memory = Memory::make(small).value();
  NgramDrafter<> drafter(memory.options());
  std::vector<Token> tokens(20'000, 3);
  drafter.begin(TokenSpan(tokens).first(10));
  drafter.reserve(tokens.size());
  const AllocationWatch watch;
  for (std::size_t size = 11; size <= tokens.size(); ++size)
    drafter.observe(TokenSpan(tokens).first(size), 1, Origin::output);
  EXPECT_EQ(watch.allocations(), 0U);
}

TEST(MemoryAllocations, AnErrorOfMakeWhereOneFails) {
  std::size_t failed = 0;
  for (bool made = false; !made;) {
    const AllocationWatch watch(failed + 1);
    const auto memory = Memory::make(small);
    made = memory.has_value();
    if (made) break;
    ++failed;
    ASSERT_EQ(memory.error().code, ErrorCode::out_of_memory);
  }
  EXPECT_GE(failed, 7U) << "three objects, tokens, what is known of them, an index, and a table";
}

TEST(MemoryAllocations, ASaltWithoutTextWhereOneFails) {
  std::size_t without_text = 0;
  for (std::size_t fail_at = 1;; ++fail_at) {
    const Memory memory = Memory::make(small).value();
    NgramOptions options;
    bool failed = true;
    {
      const AllocationWatch watch(fail_at, 2);
      options = memory.options(5);
      failed = watch.allocations() >= fail_at;
    }
    without_text += options.stores[0].empty() ? 1 : 0;
    NgramDrafter<> drafter(options);
    const std::vector<Token> tokens(50, 3);
    drafter.begin(tokens);
    drafter.begin(tokens);
    if (!failed) break;
  }
  EXPECT_GE(without_text, 4U);
}

TEST(MemoryAllocations, ATextIsNotKeptWhereOneFails) {
  Memory memory = Memory::make(small).value();
  const std::vector<Token> tokens(500, 3);
  const AllocationWatch watch(1, 100);
  memory.add(tokens, 10);
}

}  // namespace
}  // namespace reprise::memory_allocation_test
