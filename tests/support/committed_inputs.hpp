// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "reprise_testing/random.hpp"
#include "support/choices.hpp"

namespace reprise::testing {

/// A file of tests/fuzz/corpus/.
struct CommittedInput {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

/// Returns the committed inputs of a fuzzer, by name. The test fails if there are none, or more than 30 beside those
/// that once found a fault (tests/fuzz/README.md).
inline std::vector<CommittedInput> committed_inputs(const std::string& fuzzer) {
  const std::filesystem::path folder = std::filesystem::path(REPRISE_SOURCE_DIR) / "tests/fuzz/corpus" / fuzzer;
  std::vector<CommittedInput> inputs;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::ifstream file(entry.path(), std::ios::binary);
    EXPECT_TRUE(file) << entry.path();
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    inputs.push_back({entry.path().filename().string(), {text.begin(), text.end()}});
  }
  EXPECT_FALSE(inputs.empty()) << "no file in " << folder;
  EXPECT_LE(std::ranges::count_if(inputs, [](const auto& input) { return !input.name.starts_with("fault-"); }), 30)
      << folder;
  std::ranges::sort(inputs, {}, &CommittedInput::name);
  return inputs;
}

/// Expects that `fault_of(choices)` is empty for each committed input of a fuzzer, and for `random_inputs` inputs of up
/// to 400 random bytes.
template <class FaultOf>
void expect_no_fault_of_bytes(const std::string& fuzzer, const FaultOf& fault_of, std::uint64_t random_inputs = 500) {
  std::vector<CommittedInput> inputs = committed_inputs(fuzzer);
  for (std::uint64_t seed = 0; seed < random_inputs; ++seed) {
    Random random(seed);
    inputs.push_back({"bytes of Random(" + std::to_string(seed) + ")", std::vector<std::uint8_t>(random.below(400))});
    for (auto& byte : inputs.back().bytes) byte = static_cast<std::uint8_t>(random.next());
  }
  for (const CommittedInput& input : inputs) {
    Choices choices{std::span<const std::uint8_t>(input.bytes)};
    ASSERT_EQ(fault_of(choices), "") << input.name;
  }
}

}  // namespace reprise::testing
