// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace reprise::testing {

/// Ends an input of a fuzzer. If there is a fault, prints it and aborts, so that the fuzzer keeps the input.
inline int fuzzed(const std::string& fault) {
  if (!fault.empty()) {
    std::fprintf(stderr, "%s\n", fault.c_str());
    std::abort();
  }
  return 0;
}

}  // namespace reprise::testing
