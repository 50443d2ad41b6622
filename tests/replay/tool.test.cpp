// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "common/bundled_files.hpp"
#include "common/progress.hpp"
#include "replay/replay_tool.hpp"
#include "replay/report.hpp"
#include "replay/report_json.hpp"

namespace reprise::replay::replay_tool_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class Tool : public ReplayToolTest {
 protected:
  static constexpr const char* two_sessions =
      R"({"id":"a","category":"x","turns":[{"prompt":[1,2,3,4,5],"output":[1,2,3,4,5,1,2,3,4,5]}]})"
      "\n"
      R"({"id":"b","category":"y","turns":[{"prompt":[1,2,3],"output":[4,5,6]}]})"
      "\n";
};

TEST_F(Tool, DraftsNothingAfterATokenThatEndsAGeneration) {
  std::string line = R"({"id":"a","category":"x","turns":[)";
  for (int turn = 0; turn < 30; ++turn) line += R"({"prompt":[5,6,7],"output":[8,9,10,11,2]},)";
  line.back() = ']';
  const std::string trace = write("t.jsonl", line + "}\n");
  const auto count = [&](std::vector<std::string> more, const char* name) {
    more.insert(more.end(), {"--format", "json", "--cost", "linear:0", trace});
    return static_cast<std::int64_t>(*results_in(run(more).out).at(0).find(name)->number()->integer);
  };
  EXPECT_GT(count({}, "drafted"), 200);
  EXPECT_LT(count({"--eos", "99", "--eos", "2"}, "drafted"), 130) << "30 turns of 4 tokens";
  EXPECT_EQ(count({"--eos", "2"}, "passes"), count({}, "passes"));
  EXPECT_EQ(results_in(run({"--format", "json", "--eos", "2", trace}).out).at(0).find("eos")->array()->size(), 1U);
  refuses({"--eos", "-1", trace}, "--eos -1: expected a token id");
}

TEST_F(Tool, FitsATerminalOf80Columns) {
  const std::string trace = write("t.jsonl", two_sessions);
  const Ran ran = run({"--strategy", "ngram-simple:n=3,m=10", "--strategy",
                       "copy:index=rolling_hash,min_ngram=1,max_ngram=16,k=10,prefer=recent", trace},
                      {80, false});
  EXPECT_THAT(ran.out, HasSubstr("\nspeedup under "));
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 80 || line.find(trace) != std::string::npos) << line;
}

TEST_F(Tool, CarriesWhatControlHasLearnedFromSessionToSessionWhenAskedTo) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(two_sessions);
  const std::string trace = write("t.jsonl", text);
  const auto replay = [&](const std::string& known, const std::string& threads) {
    const tools::Json one = result({"--strategy", "hf", "--control", "cost", "--cost", "linear:3", "--cost-known",
                                    known, "--threads", threads, trace});
    EXPECT_EQ(word(one, "cost_known"), known);
    return number(one, "drafted");
  };
  EXPECT_EQ(replay("carried", "1"), replay("carried", "4"));
  EXPECT_LT(replay("carried", "1"), replay("learned", "1")) << "known to be dear after the first few";
}

TEST_F(Tool, DraftsByAssumedCostsWithoutTimes) {
  std::string text;
  for (int i = 0; i < 30; ++i) text += std::string(two_sessions);
  const std::string trace = write("t.jsonl", text);
  const auto replay = [&](const std::string& known, const std::string& prior) {
    const Arguments one = {"--strategy",  "hf",  "--control",    "cost", "--cost",
                           "linear:0.02", trace, "--cost-known", known};
    return result(prior.empty() ? one : joined(one, {"--cost-prior", prior}));
  };
  const auto drafted = [](const tools::Json& one) { return number(one, "drafted"); };
  const tools::Json cheap = replay("assumed", "gpu-batch-1");
  EXPECT_EQ(word(cheap, "cost_known"), "assumed");
  EXPECT_EQ(word(cheap, "cost_prior"), "gpu-batch-1");
  EXPECT_EQ(number(cheap, "seed"), 0) << "no times";
  EXPECT_GT(drafted(cheap), drafted(replay("assumed", "linear:5")));
  EXPECT_EQ(replay("assumed", "").find("cost_prior"), nullptr);
  EXPECT_GT(drafted(replay("learned", "gpu-batch-1")), drafted(replay("learned", "linear:5")));
  refuses({"--cost-known", "learned", "--cost-prior", "gpu", trace}, "--cost-prior gpu");
}

TEST_F(Tool, CountsWhyDraftsWereCutAndHowTrueTheirClaimsWere) {
  const tools::Json one =
      result({"--strategy", "hf", "--control", "best:1", "--cost", "linear:2", write("t.jsonl", two_sessions)});
  double passes = 0;
  for (const tools::Json& count : one.find("cuts")->object()->values) passes += count.number()->value;
  EXPECT_EQ(passes, number(one, "passes"));
  EXPECT_GT(number(*one.find("cuts"), "budget"), 0);
  const tools::Json& certain = one.find("reliability")->array()->back();
  EXPECT_GT(number(certain, "tests"), 0);
  EXPECT_EQ(number(certain, "claimed"), 1);
  EXPECT_NEAR(1 - number(certain, "observed"), number(one, "calibration_error"), 1e-12);
  EXPECT_GE(number(one, "worst_loss"), 0);
}

TEST_F(Tool, WritesToAFile) {
  const std::string trace = write("t.jsonl", two_sessions);
  const std::string output = (folder_ / "out.json").generic_string();
  const Ran ran = run({"--format", "json", "--output", output, trace});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.out, IsEmpty());
  tools::Json json;
  EXPECT_FALSE(tools::parse_json(read(output), json));
}

TEST_F(Tool, LeavesALinkToTheOutputFileAloneWhenTheInputIsBad) {
  const fs::path link = folder_ / "link";
  std::error_code no_links;
  fs::create_symlink("fresh.json", link, no_links);
  if (no_links) return;
  EXPECT_EQ(run({"--output", link.generic_string(), write("t.jsonl", "{")}).status, 2);
  EXPECT_TRUE(fs::is_symlink(link)) << "what leads to a file that is not there yet stays as well";
  EXPECT_FALSE(fs::exists(folder_ / "fresh.json"));
  EXPECT_EQ(run({"--output", link.generic_string(), write("t.jsonl", two_sessions)}).status, 0);
  EXPECT_FALSE(read(path("fresh.json")).empty());
}

TEST(Progress, ShowsControlCharactersEscaped) {
  std::ostringstream out;
  tools::Progress progress(&out, 80);
  progress.start("a\x1b[1mb", 3);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("a\\x1b[1mb"), Not(HasSubstr("\x1b[1m"))));
}

TEST_F(Tool, FindsTheBundledTraces) {
  Ran ran = run({});
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("nowhere"), HasSubstr("bundled"), HasSubstr("give the path of a trace")));
  write("bundled/b.jsonl", two_sessions);
  write("bundled/a.jsonl", two_sessions);
  write("bundled/README.md", "not a trace");
  ran = run({"--format", "json", "--cost", "linear:0"});
  EXPECT_EQ(ran.status, 0) << ran.error;
  EXPECT_LT(ran.out.find("bundled/a.jsonl"), ran.out.find("bundled/b.jsonl"));
  EXPECT_THAT(ran.out, Not(HasSubstr("README")));
}

TEST(BundledTraces, LieBesideTheInstalledProgramOrWhereItWasBuilt) {
  const auto folders = tools::bundled_folders("/opt/x/bin/reprise-replay", "traces");
  ASSERT_EQ(folders.size(), 2U);
  EXPECT_EQ(folders[0].generic_string(), "/opt/x/share/reprise/traces");
  EXPECT_EQ(tools::find_traces({folders[1]}).size(), 8U) << "the build tree";
  EXPECT_TRUE(fs::exists(tools::bundled_folders("x", "profiles")[1] / "step-8.json"));
}

TEST(BundledTraces, AreFoundFromTheRunningProgram) { EXPECT_TRUE(fs::exists(tools::program_path("x"))); }

TEST(Report, ShowsAnOutputThatDiffers) {
  const std::vector<CostCurve> curves = {CostCurve::parse("linear:0")};
  std::vector<Row> rows(1);
  rows[0].category = all_categories;
  rows[0].counts.charges = {{1.0, 0.0}};
  rows[0].counts.fault = "turn 1";
  std::ostringstream table;
  write_table(table, {rows, curves}, {});
  EXPECT_THAT(table.str(), HasSubstr("NOT LOSSLESS"));
  std::ostringstream json;
  write_json(json, Report{rows, curves});
  EXPECT_THAT(json.str(), HasSubstr("\"lossless\": false"));
  std::ostringstream error;
  EXPECT_EQ(report_faults(rows, error), exit_failed);
  EXPECT_THAT(error.str(), HasSubstr("NOT LOSSLESS"));
  rows[0].counts.fault.clear();
  EXPECT_EQ(report_faults(rows, error), exit_done);
}

TEST(Report, MakesNumbersOfNothing) {
  const Counts none;
  EXPECT_EQ(ratios(none).mat, 0);
  Row row;
  row.counts.charges.resize(1);
  EXPECT_EQ(speedup(row), 1);
}

}  // namespace
}  // namespace reprise::replay::replay_tool_test
