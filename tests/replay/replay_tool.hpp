// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "common/text.hpp"
#include "replay/tool.hpp"
#include "support/folder_test.hpp"

namespace reprise::replay {

/// Runs reprise-replay, with a folder of its own for each test. Its subfolder `bundled` has the bundled traces.
class ReplayToolTest : public testing::FolderTest {
 protected:
  using Arguments = std::vector<std::string>;
  struct Ran {
    int status = 0;
    std::string out;
    std::string error;
  };

  [[nodiscard]] Ran run(const Arguments& arguments, TableStyle style = {120, false}) const {
    std::ostringstream out;
    std::ostringstream error;
    const int status = run_tool(arguments, {out, error, {folder_ / "nowhere", folder_ / "bundled"}, {folder_}, style});
    return {status, out.str(), error.str()};
  }
  /// The output of a run that succeeds.
  [[nodiscard]] std::string output(const Arguments& arguments) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, exit_done) << ran.error;
    return ran.out;
  }
  /// The results of a run that succeeds.
  [[nodiscard]] tools::Json::Array results(Arguments arguments) const {
    arguments.insert(arguments.end(), {"--format", "json"});
    return results_in(output(arguments));
  }
  [[nodiscard]] tools::Json result(const Arguments& arguments) const { return results(arguments).front(); }

  /// Expects that a run is refused before it writes anything, with a message that contains `sentence`.
  void refuses(const Arguments& arguments, const std::string& sentence) const {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, exit_bad_input) << sentence;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.error, ::testing::AllOf(::testing::StartsWith("reprise-replay: "), ::testing::HasSubstr(sentence),
                                            ::testing::EndsWith("\n")));
  }

  static tools::Json::Array results_in(const std::string& out) {
    tools::Json json;
    EXPECT_FALSE(tools::parse_json(out, json)) << out;
    return *json.find("results")->array();
  }
  static double number(const tools::Json& result, const std::string& name) {
    return result.find(name)->number()->value;
  }
  static std::string word(const tools::Json& result, const std::string& name) { return *result.find(name)->string(); }
  /// All words and numbers of the results, except those that are times.
  static std::string untimed(const tools::Json::Array& results) {
    std::string all;
    for (const tools::Json& result : results)
      for (const std::string& name : result.object()->keys) {
        if (name.find("ns") != std::string::npos && name != "sessions") continue;
        const tools::Json& value = *result.find(name);
        if (value.number() != nullptr) all += name + "=" + tools::decimal(value.number()->value, 17) + "\n";
        if (value.string() != nullptr) all += name + "=" + *value.string() + "\n";
      }
    return all;
  }
  static Arguments joined(Arguments arguments, const Arguments& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

}  // namespace reprise::replay
