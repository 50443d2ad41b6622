// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/property/learned_costs.test.cpp.
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/choices.hpp"
#include "support/fuzzed.hpp"
#include "support/recovery_world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::testing::Choices choices{std::span<const std::uint8_t>(data, size)};
  return reprise::testing::fuzzed(reprise::testing::run_recovery_world(choices).fault());
}
