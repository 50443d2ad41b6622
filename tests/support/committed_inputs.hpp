// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

namespace reprise::testing {

/// A file of tests/fuzz/corpus/.
struct CommittedInput {
  std::string name;
  std::vector<std::uint8_t> bytes;
};

/// Returns the committed inputs of a fuzzer, by name. The test fails if there are none.
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
  std::ranges::sort(inputs, {}, &CommittedInput::name);
  return inputs;
}

}  // namespace reprise::testing
