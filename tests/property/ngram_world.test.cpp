// SPDX-License-Identifier: Apache-2.0
#include "support/ngram_world.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::ngram_world_test {
namespace {

TEST(NgramWorldProperty, EveryDraftOfEveryRandomWorldKeepsThePropertiesOfDrafts) {
  const std::uint64_t cases = property_cases(50);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_ngram_world(choices).fault, "") << run_again(seed);
  }
}

TEST(NgramWorldProperty, EveryWorldThatBytesDescribeKeepsThem) {
  expect_no_fault_of_bytes("ngram_world", [](Choices& choices) { return run_ngram_world(choices).fault; });
}

TEST(NgramWorldProperty, RandomWorldsMeetEveryKindOfDraft) {
  NgramCoverage all;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_ngram_world(choices, all).fault, "") << seed;
  }
  EXPECT_GT(all.drafts, 1000U);
  EXPECT_GT(all.trees, 500U);
  EXPECT_GT(all.past_end, 10U);
  EXPECT_GT(all.copied, 1000U);
  EXPECT_GT(all.fillers, 1000U);
  EXPECT_GT(all.foreign, 500U);
  EXPECT_GT(all.remembered, 300U);
  EXPECT_GT(all.truncations, 200U);
  EXPECT_GT(all.rebases, 200U);
  EXPECT_GT(all.most_evidence, 300U);
  EXPECT_GT(all.longest, 600U);
}

}  // namespace
}  // namespace reprise::testing::ngram_world_test
