// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/property_cases.hpp"
#include "support/world.hpp"

namespace reprise::testing::property_lossless_test {
namespace {

TEST(LosslessProperty, EveryRandomWorldDecodesAsPlainDecodingDoes) {
  const std::uint64_t cases = property_cases();
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    const std::string breaches = describe(run_world(choices));
    ASSERT_EQ(breaches, "") << run_again(seed);
  }
}

TEST(LosslessProperty, RandomWorldsEndInEveryWayAndMeetEveryLimit) {
  Coverage coverage;
  for (std::uint64_t seed = 0; seed < 5'000; ++seed) {
    Choices choices(seed);
    World world(choices);
    static_cast<void>(world.run());
    coverage += world.coverage();
  }
  for (const auto finish :
       {FinishReason::eos, FinishReason::stop_id, FinishReason::stop_sequence, FinishReason::predicate,
        FinishReason::max_tokens, FinishReason::context_full, FinishReason::caller})
    EXPECT_GE(coverage.finishes[static_cast<std::size_t>(finish)], 20U) << to_string(finish);
  for (const Cut cut : {Cut::none, Cut::no_match, Cut::budget, Cut::shape, Cut::depth, Cut::rows, Cut::width,
                        Cut::rollback, Cut::context, Cut::max_tokens, Cut::throttled, Cut::unlikely})
    EXPECT_GE(coverage.statistics.count(cut), 20U) << to_string(cut);
  EXPECT_GE(coverage.trees, 300U);
  EXPECT_GE(coverage.statistics.count(Cut::constraint), 20U);
  EXPECT_GE(coverage.restores, 300U);
  EXPECT_GE(coverage.replayed, 100U);
  EXPECT_GE(coverage.auxiliary, 300U);
  EXPECT_GE(coverage.revealed, 300U);
  EXPECT_GE(coverage.statistics.padding, 100U);
  EXPECT_GT(coverage.statistics.acceptance_rate(), 0.2);
  EXPECT_LT(coverage.statistics.acceptance_rate(), 0.9);
}

TEST(LosslessProperty, EveryWorldThatBytesDescribeDecodesAsPlainDecodingDoes) {
  expect_no_fault_of_bytes("lossless", [](Choices& choices) { return describe(run_world(choices)); });
}

}  // namespace
}  // namespace reprise::testing::property_lossless_test
