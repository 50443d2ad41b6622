// SPDX-License-Identifier: Apache-2.0
#include "replay/seeds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "replay/report_curve.hpp"
#include "replay/report_seeds.hpp"
#include "replay/tool.hpp"

namespace reprise::replay::seeds_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double last_quarter(std::uint64_t tokens, const std::vector<std::pair<double, std::size_t>>& passes) {
  StreamCost cost(tokens);
  for (const auto& [of_pass, committed] : passes) cost.add(of_pass, committed);
  return cost.last_quarter();
}

TEST(StreamCost, SumsTheLastQuarterOfTheTokens) {
  EXPECT_EQ(last_quarter(8, {{1, 4}, {1, 2}, {2, 1}, {3, 1}}), 5) << "tokens 7 and 8";
  EXPECT_EQ(last_quarter(8, {{1, 4}, {4, 4}}), 2) << "two of its four tokens are late";
  EXPECT_EQ(last_quarter(8, {{8, 8}}), 2);
  EXPECT_EQ(last_quarter(3, {{1, 1}, {1, 1}, {1, 1}}), 0) << "a quarter of three tokens is none";
  EXPECT_EQ(last_quarter(0, {}), 0);
}

SeedRow row_of(const std::vector<double>& ratios) {
  SeedRow row;
  row.trace = "t";
  row.category = all_categories;
  row.strategy = "ngram";
  row.control = {ControlKind::cost, 0};
  row.told.sessions = 1;
  row.told.tokens = 30;
  row.told.charges = {{15, 0}};
  for (std::size_t i = 0; i < ratios.size(); ++i) {
    SeedRun& run = row.runs.emplace_back();
    run.seed = 5 + i;
    run.ratio = ratios[i];
    run.last_quarter = ratios[i];
  }
  return row;
}

TEST(SeedRow, HasMeanWorstAndWeakSeeds) {
  const SeedRow row = row_of({0.98, 0.9, 1, 0.9, 0.97});
  EXPECT_EQ(row.told_speedup(), 2);
  EXPECT_NEAR(row.mean(), 0.95, 1e-12);
  EXPECT_EQ(row.worst().seed, 6U) << "the first of two";
  EXPECT_EQ(row.lowest(&SeedRun::ratio), 0.9);
  EXPECT_THAT(row.weak_seeds(), ElementsAre(6, 8)) << "0.97 is not below 0.97";
}

std::string table(const std::vector<SeedRow>& rows, CostKnown known = CostKnown::carried) {
  const std::vector<CostCurve> costs = {CostCurve::parse("linear:0.1")};
  std::ostringstream out;
  ReplaySettings settings = two_functions();
  settings.cost_known = known;
  write_table(out, SeedReport{rows, costs, settings}, {80, false});
  return out.str();
}

TEST(SeedReport, DrawsATableAndASummary) {
  EXPECT_EQ(table({row_of({0.5, 1.125})}),
            "t\n"
            "  1 session, 30 tokens; carried, noise 0.1, seeds 5 to 6\n"
            "  drafts: chains, no rankings (the traces have none)\n"
            "\n"
            "                        told  mean / worst /  seed of   last quarter below\n"
            "strategy  curve      speedup    told    told    worst   0.97 of told\n"
            "ngram     linear:0.1   2.000  0.8125  0.5000        5   1 (seed 5)\n"
            "\n"
            "2 runs, speedup relative to told\n"
            "  all sessions: geometric mean 0.7500, lowest mean of a line 0.8125, worst run 0.5000\n"
            "  runs whose last quarter is below 0.97 of told: 1\n");
  EXPECT_THAT(table({row_of(std::vector<double>(8, 0.5))}), HasSubstr("8 (seed 5, 6, 7, 8, 9, 10, ...)\n"));
  EXPECT_THAT(table({row_of({1})}), AllOf(HasSubstr(", seed 5\n"), HasSubstr("   none\n")));
}

TEST(SeedReport, SumsUpLongAndShortSessionsWhereEachStartsAnew) {
  SeedRow row = row_of({0.9, 0.9});
  row.runs[0].long_ratio = 0.5;
  row.runs[1].long_ratio = 0.5;
  EXPECT_THAT(table({row}), Not(HasSubstr("1,000 tokens")));
  const std::string text = table({row, row_of({0.8})}, CostKnown::learned);
  EXPECT_THAT(text, HasSubstr("  sessions of 1,000 tokens and more: geometric mean 0.5000, lowest mean of a line "
                              "0.5000, worst run 0.5000\n"));
  EXPECT_THAT(text, Not(HasSubstr("shorter sessions"))) << "there are none";
}

TEST(SeedReport, DrawsTheLearnedCurveOfTheWorstRun) {
  SeedRow row = row_of({0.875, 0.75});
  for (int i = 0; i < 50; ++i) row.told_rows.add(2);
  CurvePoint before{0, 4, {{1, 1}, {1.25, 1}, {1.5, 2}}};
  CurvePoint end{20, 34, {{1, 1}, {1.5, 1}, {1, 2, true}}};
  row.runs[1].curve = {before, end};
  std::ostringstream out;
  write_curve(out, row, "it", {56, false});
  EXPECT_EQ(out.str(),
            "learned curve of it, seed 6 (0.7500 of told)\n"
            "after 20 passes, context 34\n"
            "\n"
            "  rows     true  learned    error      bar: learned, |: true\n"
            "     1    1.000    1.000    +0.0%     ########|\n"
            "     2    1.000    1.500   +50.0% *   ########|###\n"
            "     3    2.000    1.000   -50.0%  ?  ########        |\n"
            "  *: told sends it in 1% of its passes or more. ?: uncertain to the control.\n"
            "\n"
            "   passes     rows    error    largest error of the row counts marked *\n"
            "        0        2   +25.0%    ########\n"
            "       20        2   +50.0%    ################\n"
            "\n");
  std::ostringstream members;
  tools::JsonWriter json(members);
  json.begin_object();
  write_curve_json(json, row.runs[1].curve, row.told_rows);
  EXPECT_EQ(members.str(),
            R"({"curve": [{"passes": 0, "context": 4, "learned": [1, 1.25, 1.5], "true": [1, 1, 2], "uncertain": [], )"
            R"("largest_error": 0.25, "largest_error_rows": 2}, )"
            R"({"passes": 20, "context": 34, "learned": [1, 1.5, 1], "true": [1, 1, 2], "uncertain": [3], )"
            R"("largest_error": 0.5, "largest_error_rows": 2}])");

  SeedRow better = row_of({0.9});
  better.runs[0].curve = {before};
  EXPECT_THAT(table({better, row}), AllOf(HasSubstr("seed 6 (0.7500 of told)"), Not(HasSubstr("0.9000 of told)"))));
}

TEST(SeedReport, ReportsOutputsThatDiffer) {
  std::vector<SeedRow> rows = {row_of({1})};
  std::ostringstream error;
  EXPECT_EQ(report_faults(rows, error), exit_done);
  rows[0].told.fault = "session \x1b, turn 1";
  EXPECT_EQ(report_faults(rows, error), exit_failed);
  EXPECT_EQ(error.str(), "reprise-replay: NOT LOSSLESS: t: ngram: session \\x1b, turn 1\n");
}

}  // namespace
}  // namespace reprise::replay::seeds_test
