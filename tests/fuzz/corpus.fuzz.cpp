// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/corpus/corpus_damage.test.cpp.
#include <cstddef>
#include <cstdint>
#include <span>

#include "support/corpora.hpp"
#include "support/fuzzed.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return reprise::testing::fuzzed(reprise::testing::read_any_corpora(std::as_bytes(std::span(data, size))));
}
