// SPDX-License-Identifier: Apache-2.0
#include "support/c_calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::c_calls_test {
namespace {

TEST(CInterface, DoesWhatCppDoesInAnyOrderOfCalls) {
  const std::uint64_t calls = property_cases();
  std::uint64_t seed = property_seed();
  CCallsCoverage coverage;
  for (; coverage.calls < calls; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(CCallsRun(choices).run(1 + seed * 37 % 400, coverage), "") << run_again(seed);
  }
  if (calls < 50'000) return;
  for (std::size_t status = REPRISE_OK; status < REPRISE_INTERNAL; ++status)
    if (status != REPRISE_OUT_OF_MEMORY) {
      EXPECT_GT(coverage.statuses[status], 0U) << "no call returned this status: " << status;
    }
  EXPECT_EQ(coverage.statuses[REPRISE_INTERNAL], 0U);
  EXPECT_GT(coverage.statuses[REPRISE_OK], calls / 2);
  EXPECT_GT(coverage.drafted, calls / 10);
  EXPECT_GT(coverage.shared, calls / 20);
  EXPECT_GT(coverage.accepted, calls / 50);
  EXPECT_GT(coverage.trees, calls / 500);
  EXPECT_GT(coverage.restored, calls / 500);
}

TEST(CInterface, DoesWhatCppDoesInCallsThatBytesDescribe) {
  CCallsCoverage coverage;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    std::vector<std::uint8_t> bytes(random.below(400));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    Choices choices{std::span<const std::uint8_t>(bytes)};
    ASSERT_EQ(CCallsRun(choices).run(bytes.size() / 2, coverage), "") << "bytes of Random(" << seed << ")";
  }
}

TEST(CInterface, DoesWhatCppDoesInTheInputsOfTheFuzzer) {
  CCallsCoverage coverage;
  for (const auto& input : committed_inputs("c_interface")) {
    Choices choices{std::span<const std::uint8_t>(input.bytes)};
    ASSERT_EQ(CCallsRun(choices).run(input.bytes.size() / 2, coverage), "") << input.name;
  }
}

}  // namespace
}  // namespace reprise::testing::c_calls_test
