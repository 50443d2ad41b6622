// SPDX-License-Identifier: Apache-2.0
#include "support/input_files.hpp"

#include <gtest/gtest.h>

#include <string>

#include "reprise_testing/random.hpp"
#include "support/committed_inputs.hpp"

namespace reprise::replay::input_files_test {
namespace {

const std::string trace =
    R"({"id": "a", "category": "b", "turns": [{"prompt": [1, -2], "output": [3]}, {"prompt": [], "output": [4, 5]}]})";
const std::string top_k_trace =
    R"({"id": "a", "category": "b", "turns": [{"prompt": [1], "output": [3, 4], "top_k": [[3, -8], []]}]})";
const std::string curve =
    R"({"version": 1, "base_ns": 10, "points": [{"sequences": 1, "context": 0, "rows": 1, "ns": 10},)"
    R"( {"sequences": 1, "context": 64, "rows": 8, "ns": 12.5e0}]})";
const std::string pass_times = R"({"version": 1, "pass_times": [{"context": 0, "rows": 1, "ns": [10, 11]},)"
                               R"( {"context": 0, "rows": 8, "ns": [12.5e0]}, {"context": 64, "rows": 1, "ns": [9]}]})";

TEST(InputFiles, CutAnywhereAreReadOrRefused) {
  for (const std::string& whole : {trace, top_k_trace, curve, pass_times})
    for (std::size_t size = 0; size <= whole.size(); ++size)
      ASSERT_EQ(read_as_input_files(whole.substr(0, size)), "") << "cut at " << size;
}

TEST(InputFiles, WithAnyDamageAreReadOrRefused) {
  const std::string alphabet = "{}[]\",:0123456789.eE+- \\untrue\n";
  testing::Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = i % 4 == 0 ? trace : i % 4 == 1 ? top_k_trace : i % 4 == 2 ? curve : pass_times;
    for (std::size_t j = random.below(6) + 1; j > 0; --j) {
      const std::size_t at = random.below(damaged.size());
      switch (random.below(3)) {
        case 0:
          damaged[at] = alphabet[random.below(alphabet.size())];
          break;
        case 1:
          damaged.insert(at, 1, alphabet[random.below(alphabet.size())]);
          break;
        default:
          damaged.erase(at, random.below(4) + 1);
      }
      if (damaged.empty()) break;
    }
    ASSERT_EQ(read_as_input_files(damaged), "") << damaged;
  }
}

TEST(InputFiles, OfTheFuzzerAreReadOrRefused) {
  for (const auto& input : testing::committed_inputs("input_files"))
    ASSERT_EQ(read_as_input_files({input.bytes.begin(), input.bytes.end()}), "") << input.name;
}

}  // namespace
}  // namespace reprise::replay::input_files_test
