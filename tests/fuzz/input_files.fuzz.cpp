// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/replay/input_files.test.cpp.
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/fuzzed.hpp"
#include "support/input_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return reprise::testing::fuzzed(reprise::replay::read_as_input_files(std::string(data, data + size)));
}
