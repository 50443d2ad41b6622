// SPDX-License-Identifier: Apache-2.0
#include "reprise/stats/statistics_text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>

namespace reprise::statistics_text_test {
namespace {

std::string json_of(const Statistics& statistics) {
  std::string text;
  // A generic function gets a std::string_view each time.
  write_json(statistics, [&](auto piece) { text += piece.substr(0); });
  return text;
}
std::string table_of(const Statistics& statistics) {
  std::string text;
  write_table(statistics, [&](auto piece) { text += piece.substr(0); });
  return text;
}

Statistics some() {
  Statistics statistics;
  statistics.tokens = 71;
  statistics.passes = 28;
  statistics.drafted_passes = 20;
  statistics.drafted = 90;
  statistics.accepted = 43;
  statistics.cuts[static_cast<std::size_t>(Cut::none)] = 20;
  statistics.cuts[static_cast<std::size_t>(Cut::no_match)] = 8;
  statistics.by_source[static_cast<std::size_t>(DraftSource::context)] = {90, 43};
  statistics.by_depth[0] = {30, 20};
  statistics.by_depth[1] = {30, 15};
  statistics.by_depth[16] = {30, 8};
  statistics.pass_time = {28, 2800};
  return statistics;
}

TEST(StatisticsJson, IsOneObjectWithEveryField) {
  EXPECT_EQ(
      json_of(some()),
      R"({"tokens": 71, "passes": 28, "passes_saved": 43, "drafted_passes": 20, "drafted": 90, "accepted": 43, )"
      R"("wasted": 47, "padding": 0, "auxiliary": 0, "mat": 2.535, "acceptance_rate": 0.477, )"
      R"("drafted_per_pass": 3.214, "cuts": {"none": 20, "no_match": 8, "unlikely": 0, "throttled": 0, "budget": 0, )"
      R"("shape": 0, "depth": 0, "rows": 0, "width": 0, "rollback": 0, "context": 0, "max_tokens": 0, )"
      R"("out_of_memory": 0, "constraint": 0, "strategy_threw": 0}, )"
      R"("by_source": {"unknown": {"sent": 0, "accepted": 0}, )"
      R"("context": {"sent": 90, "accepted": 43}, "store": {"sent": 0, "accepted": 0}, )"
      R"("model": {"sent": 0, "accepted": 0}, )"
      R"("target": {"sent": 0, "accepted": 0}, "external": {"sent": 0, "accepted": 0}, )"
      R"("jump_forward": {"sent": 0, "accepted": 0}, "padding": {"sent": 0, "accepted": 0}}, )"
      R"("by_depth": [{"sent": 30, "accepted": 20}, )"
      R"({"sent": 30, "accepted": 15}, {"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, )"
      R"({"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, )"
      R"({"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, )"
      R"({"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, )"
      R"({"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, {"sent": 0, "accepted": 0}, )"
      R"({"sent": 30, "accepted": 8}], "timed_passes": 28, "pass_ns": 2800, "timed_drafts": 0, "drafting_ns": 0})");
}
TEST(StatisticsJson, WritesNumbersOfEverySize) {
  Statistics statistics;
  statistics.tokens = 3;
  statistics.passes = 7;
  statistics.pass_time = {1, std::numeric_limits<std::uint64_t>::max()};
  const std::string text = json_of(statistics);
  EXPECT_NE(text.find(R"("passes_saved": -4,)"), std::string::npos);
  EXPECT_NE(text.find(R"("mat": 0.428,)"), std::string::npos);
  EXPECT_NE(text.find(R"("pass_ns": 18446744073709551615,)"), std::string::npos);
  statistics.drafted = std::numeric_limits<std::uint64_t>::max();
  statistics.accepted = statistics.drafted - 1;
  EXPECT_NE(json_of(statistics).find(R"("acceptance_rate": 0.000,)"), std::string::npos) << "no such generation";
}
TEST(StatisticsTable, ShowsTotalsAndWhatOccurred) {
  EXPECT_EQ(table_of(some()),
            "tokens                        71\n"
            "passes                        28\n"
            "  with a draft                20\n"
            "drafted                       90\n"
            "accepted                      43\n"
            "wasted                        47\n"
            "tokens per pass       2.535\n"
            "acceptance rate       0.477\n"
            "ns per pass           100.000\n"
            "\n"
            "cut                       passes\n"
            "none                          20\n"
            "no_match                       8\n"
            "\n"
            "source                      sent    accepted  rate\n"
            "context                       90          43  0.477\n"
            "\n"
            "depth                       sent    accepted  rate\n"
            "1                             30          20  0.666\n"
            "2                             30          15  0.500\n"
            "deeper                        30           8  0.266\n");
}
TEST(StatisticsTable, ShowsPaddingAuxiliaryTokensAndDraftingTimeWhereThereAreAny) {
  Statistics statistics;
  EXPECT_EQ(table_of(statistics).find("pad rows"), std::string::npos);
  statistics.padding = 2;
  statistics.auxiliary = 3;
  statistics.drafting_time.add(std::chrono::nanoseconds(1500));
  const std::string text = table_of(statistics);
  EXPECT_NE(text.find("pad rows                       2\n"), std::string::npos);
  EXPECT_NE(text.find("auxiliary                      3\n"), std::string::npos);
  EXPECT_NE(text.find("ns per draft          1500.000\n"), std::string::npos);
}
TEST(StatisticsText, NamesEverySource) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < draft_source_count; ++i) names.insert(to_string(static_cast<DraftSource>(i)));
  EXPECT_EQ(names.size(), draft_source_count);
  EXPECT_EQ(to_string(DraftSource::padding), "padding");
}

}  // namespace
}  // namespace reprise::statistics_text_test
