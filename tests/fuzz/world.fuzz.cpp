// SPDX-License-Identifier: Apache-2.0
// A fuzzer of one kind of random worlds, with the body of its property test; fuzz.cmake has the list. Build with
// clang++ -fsanitize=fuzzer,address,undefined.
#include <cstddef>
#include <cstdint>
#include <span>

#include REPRISE_FUZZED_HEADER
#include "support/choices.hpp"
#include "support/fuzzed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::testing;
  Choices choices{std::span<const std::uint8_t>(data, size)};
  return fuzzed(REPRISE_FUZZED_FAULT);  // an expression of `choices`
}
