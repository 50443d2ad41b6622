// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/property/batch_follower.test.cpp.
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/batch_follower_world.hpp"
#include "support/choices.hpp"
#include "support/fuzzed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::testing::Choices choices{std::span<const std::uint8_t>(data, size)};
  return reprise::testing::fuzzed(reprise::testing::run_batch_follower_world(choices));
}
