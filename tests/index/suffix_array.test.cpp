// SPDX-License-Identifier: Apache-2.0
// The promises of the suffix array alone; lookup_index.test.cpp tests the shared contract.

#include "reprise/index/suffix_array.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/index_queries.hpp"
#include "support/naive_index.hpp"
#include "support/streams.hpp"

namespace suffix_array_test {
namespace {

using reprise::MatchLimits;
using reprise::SuffixArrayIndex;
using reprise::Token;
using reprise::testing::index_of;
using reprise::testing::make_stream;
using reprise::testing::matches;
using reprise::testing::NaiveIndex;
using reprise::testing::Stream;

TEST(SuffixArrayIndex, AnswersEveryOrderWhateverItWasMadeFor) {
  const std::vector<Token> tokens = make_stream(Stream::trace_like, 5000, 1);
  const auto index = index_of<SuffixArrayIndex>({.orders = {7}}, tokens);
  const auto reference = index_of<NaiveIndex>({}, tokens);
  for (const std::uint32_t n : {1u, 2u, 5u, 31u, 32u})
    for (const MatchLimits::Order order : {MatchLimits::Order::most_recent, MatchLimits::Order::earliest})
      ASSERT_EQ(matches(index, {.shortest = n, .longest = 40, .candidates = 5, .order = order}),
                matches(reference, {.shortest = n, .longest = 40, .candidates = 5, .order = order}));
}

TEST(SuffixArrayIndex, DoesNotAllocateWithinAReservation) {
  SuffixArrayIndex index;
  ASSERT_TRUE(index.reserve(20000));
  const std::size_t bytes = index.memory_bytes();
  const std::vector<Token> tokens = make_stream(Stream::zipf, 20000, 1);
  index.append(std::span(tokens).first(9000));
  for (std::size_t i = 9000; i < tokens.size(); ++i) index.append({&tokens[i], 1});
  EXPECT_EQ(index.memory_bytes(), bytes);
  EXPECT_LE(bytes, 9u * 20000u);
}

}  // namespace
}  // namespace suffix_array_test
