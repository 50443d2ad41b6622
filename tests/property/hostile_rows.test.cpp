// SPDX-License-Identifier: Apache-2.0
#include "support/hostile_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "reprise/testing/random.hpp"
#include "support/choices.hpp"
#include "support/committed_inputs.hpp"

namespace reprise::testing {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// REPRISE_PROPERTY_CASES sets the number of runs, one per ten cases; REPRISE_PROPERTY_SEED sets the first of them.
TEST(HostileRows, NeverChangeTheOutput) {
  const std::uint64_t cases = std::max<std::uint64_t>(1, number_from("REPRISE_PROPERTY_CASES", 200'000) / 10);
  const std::uint64_t first = number_from("REPRISE_PROPERTY_SEED", 0);
  HostileRowsCoverage coverage;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(HostileRowsRun(choices).run(&coverage), "")
        << "run again with REPRISE_PROPERTY_SEED=" << seed << " REPRISE_PROPERTY_CASES=1";
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
}  // namespace reprise::testing
