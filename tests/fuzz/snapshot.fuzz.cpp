// SPDX-License-Identifier: Apache-2.0
// Build with clang++ -fsanitize=fuzzer,address,undefined. The same bodies as tests/history/snapshot.test.cpp and
// history_snapshot.test.cpp.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "support/fuzzed.hpp"
#include "support/history_snapshots.hpp"
#include "support/snapshots.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  reprise::testing::SnapshotCoverage coverage;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::string fault = reprise::testing::read_as_any_snapshot(bytes, coverage);
  if (fault.empty()) fault = reprise::testing::load_any_snapshot(bytes);
  return reprise::testing::fuzzed(fault);
}
