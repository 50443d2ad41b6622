// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same body as tests/corpus/corpus_damage.test.cpp.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "support/corpora.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string fault = reprise::testing::read_any_corpora(std::as_bytes(std::span(data, size)));
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
