// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/ngram_world.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::ngram_model_test {
namespace {

TEST(NgramModelProperty, EveryDrafterDraftsWhatTheModelDraftsInEveryRandomWorld) {
  const std::uint64_t cases = property_cases(50);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_ngram_world(choices), "") << run_again(seed);
  }
}

TEST(NgramModelProperty, EveryWorldThatBytesDescribeIsAgreedOn) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    std::vector<std::uint8_t> bytes(random.below(400));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    Choices choices{std::span<const std::uint8_t>(bytes)};
    ASSERT_EQ(run_ngram_world(choices), "") << "bytes of Random(" << seed << ")";
  }
}

TEST(NgramModelProperty, RandomWorldsMeetEveryKindOfDraft) {
  NgramCoverage all;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Choices choices(seed);
    static_cast<void>(run_ngram_world(choices, &all));
  }
  EXPECT_GT(all.drafts, 1000U);
  EXPECT_GT(all.trees, 500U);
  EXPECT_GT(all.fillers, 1000U);
  EXPECT_GT(all.past_end, 10U);
  EXPECT_GT(all.truncations, 200U);
  EXPECT_GT(all.rebases, 200U);
  EXPECT_GT(all.most_evidence, 300U);
  EXPECT_GT(all.longest, 600U);
  EXPECT_GT(all.remembered, 300U);
  EXPECT_GT(all.named, 500U);
  EXPECT_GT(all.ranked, 500U);
  for (const std::size_t nodes : all.by_source) EXPECT_GT(nodes, 300U);
}

TEST(NgramModelProperty, HoldsForTheInputsOfTheFuzzer) {
  for (const auto& input : committed_inputs("ngram_model")) {
    Choices choices{std::span<const std::uint8_t>(input.bytes)};
    ASSERT_EQ(run_ngram_world(choices), "") << input.name;
  }
}

}  // namespace
}  // namespace reprise::testing::ngram_model_test
