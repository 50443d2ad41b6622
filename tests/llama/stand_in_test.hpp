// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "support/folder_test.hpp"
#include "support/llama_stand_in/stand_in.hpp"
#include "tool.hpp"

namespace reprise::llama {

/// Runs reprise-llama over the stand-in, in a folder of its own for each test. Expects that everything is freed.
class StandInTest : public testing::FolderTest {
 protected:
  using Arguments = std::vector<std::string>;

  StandInTest() {
    llama_stand_in::settings() = {};
    model_ = write("model.gguf", llama_stand_in::ModelText().text());
  }
  ~StandInTest() override {
    EXPECT_EQ(llama_stand_in::settings().samplers, 0U);
    EXPECT_EQ(llama_stand_in::settings().contexts, 0U);
    llama_stand_in::settings() = {};
  }

  /// Runs the program with the test's model. Returns the exit status.
  int run(Arguments arguments) {
    arguments.insert(arguments.begin(), {"--model", model_, "--context", "512"});
    return run_bare(arguments);
  }
  int run_bare(const Arguments& arguments) {
    out_.str("");
    error_.str("");
    return run_tool(arguments, {out_, error_});
  }
  /// The JSON of a run that succeeds.
  tools::Json json(Arguments arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    EXPECT_EQ(run(arguments), exit_done) << out() << error();
    tools::Json json;
    EXPECT_FALSE(parse_json(out(), json)) << out();
    return json;
  }
  [[nodiscard]] std::string out() const { return out_.str(); }
  [[nodiscard]] std::string error() const { return error_.str(); }

  std::string model_;

 private:
  std::ostringstream out_;
  std::ostringstream error_;
};

}  // namespace reprise::llama
