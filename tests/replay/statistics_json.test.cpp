// SPDX-License-Identifier: Apache-2.0
// Reads back the output of statistics_text.hpp; a JSON reader is available here.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/json.hpp"
#include "reprise/stats/statistics_text.hpp"

namespace reprise::replay::statistics_json_test {
namespace {

std::int64_t number_at(const tools::Json& json, std::string_view key) {
  const tools::Json* found = json.find(key);
  if (found == nullptr || found->number() == nullptr) return -1;
  return found->number()->integer.value_or(-2);
}

TEST(StatisticsJson, IsReadBackAsItWasWritten) {
  Statistics statistics;
  statistics.tokens = 12;
  statistics.passes = 5;
  statistics.drafted = 10;
  statistics.accepted = 7;
  for (std::size_t i = 0; i < cut_count; ++i) statistics.cuts[i] = 100 + i;
  for (std::size_t i = 0; i < draft_source_count; ++i) statistics.by_source[i] = {200 + i, i};
  for (std::size_t i = 0; i < Statistics::depth_count; ++i) statistics.by_depth[i] = {300 + i, i};
  statistics.pass_time = {5, 1000};
  statistics.drafting_time = {4, 99};

  std::string text;
  write_json(statistics, [&](std::string_view piece) { text += piece; });
  tools::Json json;
  const auto error = tools::parse_json(text, json);
  ASSERT_FALSE(error) << error->message << " at " << error->column << " of " << text;
  EXPECT_EQ(number_at(json, "tokens"), 12);
  EXPECT_EQ(number_at(json, "passes_saved"), 7);
  EXPECT_EQ(number_at(json, "wasted"), 3);
  EXPECT_EQ(number_at(json, "timed_passes"), 5);
  EXPECT_EQ(number_at(json, "drafting_ns"), 99);
  EXPECT_EQ(json.find("mat")->number()->value, 2.4);
  const tools::Json* cuts = json.find("cuts");
  ASSERT_NE(cuts, nullptr);
  for (std::size_t i = 0; i < cut_count; ++i)
    EXPECT_EQ(number_at(*cuts, to_string(static_cast<Cut>(i))), static_cast<std::int64_t>(100 + i));
  const tools::Json* sources = json.find("by_source");
  ASSERT_NE(sources, nullptr);
  ASSERT_EQ(sources->object()->keys.size(), draft_source_count);
  for (std::size_t i = 0; i < draft_source_count; ++i)
    EXPECT_EQ(number_at(*sources->find(to_string(static_cast<DraftSource>(i))), "sent"),
              static_cast<std::int64_t>(200 + i));
  const tools::Json::Array* depths = json.find("by_depth")->array();
  ASSERT_NE(depths, nullptr);
  ASSERT_EQ(depths->size(), Statistics::depth_count);
  for (std::size_t i = 0; i < depths->size(); ++i) {
    EXPECT_EQ(number_at((*depths)[i], "sent"), static_cast<std::int64_t>(300 + i));
    EXPECT_EQ(number_at((*depths)[i], "accepted"), static_cast<std::int64_t>(i));
  }
}

}  // namespace
}  // namespace reprise::replay::statistics_json_test
