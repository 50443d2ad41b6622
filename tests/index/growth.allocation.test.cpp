// SPDX-License-Identifier: Apache-2.0
// The rolling-hash index while its tables and arrays move, when memory runs out.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "reprise/index/rolling_hash.hpp"
#include "support/allocation_counter.hpp"
#include "support/index_queries.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace reprise::growth_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::matches;
using testing::NaiveIndex;

/// Appends tokens one by one, so that all tables and arrays move.
class GrowthAllocations : public ::testing::Test {
 protected:
  GrowthAllocations() : tokens_(testing::make_stream(testing::Stream::trace_like, 12'000, 1, 50'000)) {
    index_.append(TokenSpan(tokens_).first(begin));
  }
  /// Returns the number of allocations.
  std::size_t grow(std::size_t until, std::size_t fail_at, std::size_t failures) {
    const AllocationWatch watch(fail_at, failures);
    for (std::size_t i = begin; i < until; ++i) index_.append({&tokens_[i], 1});
    return watch.allocations();
  }
  static void expect_the_same(const RollingHashIndex& index, TokenSpan tokens) {
    NaiveIndex naive;
    naive.append(tokens);
    RollingHashIndex copy = index;
    for (std::size_t cut = 0; cut < 300; cut += 10) {
      copy.truncate(tokens.size() - cut);
      naive.truncate(tokens.size() - cut);
      for (const std::uint32_t n : {1U, 3U, 8U})
        ASSERT_EQ(matches(copy, {.shortest = n}), matches(naive, {.shortest = n})) << cut;
    }
  }

  static constexpr std::size_t begin = 4500;
  std::vector<Token> tokens_;
  RollingHashIndex index_;
};

TEST_F(GrowthAllocations, MayFailOnce) {
  const RollingHashIndex original = index_;
  index_ = original;  // a copy has less room
  const std::size_t all = grow(tokens_.size(), 0, 1);
  EXPECT_GE(all, 10U) << "four arrays and three tables of two arrays";
  for (std::size_t fail_at = 1; fail_at <= all; ++fail_at) {
    index_ = original;
    ASSERT_GE(grow(tokens_.size(), fail_at, 1), fail_at);
    ASSERT_FALSE(index_.exhausted()) << fail_at;
    expect_the_same(index_, tokens_);
    if (HasFatalFailure()) FAIL() << fail_at;
  }
}

TEST_F(GrowthAllocations, MayFailFromAnyTimeOn) {
  const RollingHashIndex original = index_;
  index_ = original;  // a copy has less room
  const std::size_t all = grow(9000, 0, 1);
  for (std::size_t fail_at = 1; fail_at <= all; ++fail_at) {
    index_ = original;
    static_cast<void>(grow(tokens_.size(), fail_at, 1'000'000));
    EXPECT_TRUE(index_.exhausted()) << fail_at;
    const std::size_t indexed = index_.tokens().size();
    index_.truncate(indexed);
    if (indexed != 0) expect_the_same(index_, TokenSpan(tokens_).first(indexed));
    index_.append(TokenSpan(tokens_).subspan(indexed));
    expect_the_same(index_, tokens_);
    if (HasFatalFailure()) FAIL() << fail_at;
  }
}

TEST_F(GrowthAllocations, OfACopyMayFailWhileATableOrAnArrayMoves) {
  std::size_t moving = 0;
  for (std::size_t i = begin; i < tokens_.size(); ++i) {
    const std::size_t before = index_.memory_bytes();
    index_.append({&tokens_[i], 1});
    moving = index_.memory_bytes() > before ? 0 : moving + 1;
    if (moving != 5 && moving != 50) continue;
    testing::for_each_copy_without_memory(index_, [&](RollingHashIndex& copy) {
      const TokenSpan indexed = TokenSpan(tokens_).first(i + 1);
      if (copy.exhausted()) {
        EXPECT_TRUE(copy.tokens().empty());
        copy.clear();
        copy.append(indexed);
      }
      for (const std::uint32_t n : {1U, 3U, 8U})
        ASSERT_EQ(matches(copy, {.shortest = n}), matches(index_, {.shortest = n})) << i;
      copy.append({&tokens_[0], 1});
      copy.truncate(100);
    });
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace reprise::growth_allocation_test
