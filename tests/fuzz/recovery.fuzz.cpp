// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/property/learned_costs.test.cpp.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "support/choices.hpp"
#include "support/recovery_world.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::testing::Choices choices{std::span<const std::uint8_t>(data, size)};
  const std::string difference = reprise::testing::run_recovery_world(choices).fault();
  if (!difference.empty()) {
    std::fputs(difference.c_str(), stderr);
    std::abort();
  }
  return 0;
}
