// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace reprise::testing {

/// Returns the number in the environment variable `name`, or `otherwise` if it is not set.
inline std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Returns how many random cases a property runs: REPRISE_PROPERTY_CASES, or 50,000, divided by `share` for a property
/// whose cases take longer; at least 1. .ci/full runs more.
inline std::uint64_t property_cases(std::uint64_t share = 1) {
  return std::max<std::uint64_t>(1, environment_number("REPRISE_PROPERTY_CASES", 50'000) / share);
}

/// Returns the seed of the first case: REPRISE_PROPERTY_SEED, or 0.
inline std::uint64_t property_seed() { return environment_number("REPRISE_PROPERTY_SEED", 0); }

/// Returns the settings that run the case of `seed` alone.
inline std::string run_again(std::uint64_t seed) {
  return "run again with REPRISE_PROPERTY_SEED=" + std::to_string(seed) + " REPRISE_PROPERTY_CASES=1";
}

}  // namespace reprise::testing
