// SPDX-License-Identifier: Apache-2.0
#include "support/hostile_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reprise/testing/random.hpp"
#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::hostile_rows_test {
namespace {

TEST(HostileRows, NeverChangeTheOutput) {
  const std::uint64_t cases = property_cases(10);
  const std::uint64_t first = property_seed();
  HostileRowsCoverage coverage;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(HostileRowsRun(choices).run(&coverage), "") << run_again(seed);
  }
  if (cases < 1000) return;
  EXPECT_GT(coverage.kept, 3 * cases);
  EXPECT_GT(coverage.drafted, 10 * cases);
  EXPECT_GT(coverage.accepted, cases);
}

TEST(HostileRows, NeverChangeTheOutputOfARunThatBytesDescribe) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    std::vector<std::uint8_t> bytes(random.below(300));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random.next());
    Choices choices{std::span<const std::uint8_t>(bytes)};
    ASSERT_EQ(HostileRowsRun(choices).run(), "") << "bytes of Random(" << seed << ")";
  }
}

TEST(HostileRows, NeverChangeTheOutputOfTheInputsOfTheFuzzer) {
  for (const auto& input : committed_inputs("hostile_rows")) {
    Choices choices{std::span<const std::uint8_t>(input.bytes)};
    ASSERT_EQ(HostileRowsRun(choices).run(), "") << input.name;
  }
}

}  // namespace
}  // namespace reprise::testing::hostile_rows_test
