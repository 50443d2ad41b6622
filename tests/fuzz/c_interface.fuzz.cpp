// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/c/c_calls.test.cpp.
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/c_calls.hpp"
#include "support/choices.hpp"
#include "support/fuzzed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::testing::Choices choices{std::span(data, size)};
  reprise::testing::CCallsCoverage coverage;
  return reprise::testing::fuzzed(reprise::testing::CCallsRun(choices).run(size / 2, coverage));
}
