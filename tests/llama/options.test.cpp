// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::llama::llama_options_test {
namespace {

EngineOptions engine_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--model", "m.gguf"});
  return parse_options(arguments).engine;
}

TEST(LlamaOptions, MakeRoomForThePassesOfTheirTask) {
  EXPECT_EQ(engine_of({"--prompt", "a"}).sequences, 1U);
  EXPECT_EQ(engine_of({"--prompt", "a", "--leaves=4"}).sequences, 4U);
  EXPECT_EQ(engine_of({"--prompt", "a", "--sequences", "1,8,4"}).sequences, 8U);
  EXPECT_TRUE(engine_of({"--prompt", "a", "--sequences", "2"}).unified);
  EXPECT_FALSE(engine_of({"--prompt", "a", "--sequences", "2", "--cache", "separate"}).unified);

  const EngineOptions profile = engine_of({"--profile", "p.json", "--contexts", "10,1000", "--sequences=1,3"});
  EXPECT_EQ(profile.sequences, 3U);
  EXPECT_GE(profile.context, 3 * (1000U + 33U));
  EXPECT_FALSE(profile.unified);
  EXPECT_TRUE(engine_of({"--profile", "p", "--cache", "unified"}).unified);
  EXPECT_EQ(engine_of({"--profile", "p", "--most-drafted", "8", "--sequences", "16"}).batch, 512U);
  EXPECT_EQ(engine_of({"--profile", "p", "--most-drafted", "31", "--sequences", "20"}).batch, 640U);
}

}  // namespace
}  // namespace reprise::llama::llama_options_test
