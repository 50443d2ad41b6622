// SPDX-License-Identifier: Apache-2.0
/// reprise-replay with learned costs: --seeds and the options of the simulated engine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "replay/replay_tool.hpp"

namespace reprise::replay::seeds_tool_test {
namespace {

using ::testing::IsEmpty;

const std::string edits = REPRISE_SOURCE_DIR "/bench/traces/code-edit.jsonl";
const std::string objects = REPRISE_SOURCE_DIR "/bench/traces/json.jsonl";

class SeedsTool : public ReplayToolTest {
 protected:
  /// The summed cost of a replay without --seeds.
  [[nodiscard]] double cost(const Arguments& arguments) const {
    const tools::Json one = result(arguments);
    return number(one, "tokens") / number(one, "speedup");
  }
};
using Arguments = std::vector<std::string>;

/// A recording at contexts 0 and 4000, whose times double; `more` follows the times of 1 to 40 rows.
std::string recording(const std::string& more) {
  std::string text = R"({"version": 1, "pass_times": [)";
  for (const auto& [context, plain] : {std::pair(0, 1000), std::pair(4000, 2000)})
    for (int rows = 1; rows <= 40; rows += 3)
      text += std::string(text.back() == '[' ? "" : ", ") + R"({"context": )" + std::to_string(context) +
              R"(, "rows": )" + std::to_string(rows) + R"(, "ns": [)" + std::to_string(plain * (9 + rows) / 10) + more +
              "]}";
  return text + "]}";
}

TEST_F(SeedsTool, ComparesEachSeedWithTold) {
  for (const std::string known : {"learned", "carried"}) {
    const Arguments common = {edits, "--limit", "8", "--cost", "linear:0.1", "--shape", "chain"};
    const Arguments learned = joined(common, {"--cost-known", known, "--noise", "0.2"});
    const tools::Json::Array rows = results(joined(learned, {"--seeds", "3", "--seed", "5"}));
    ASSERT_EQ(rows.size(), 1U);
    const tools::Json& row = rows.front();
    const double told = cost(common);
    EXPECT_NEAR(number(row, "told_speedup") * told, number(row, "tokens"), 1e-6);
    const tools::Json::Array& runs = *row.find("runs")->array();
    ASSERT_EQ(runs.size(), 3U);
    double sum = 0;
    double worst = 2;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t seed = 5 + i;
      EXPECT_EQ(number(runs[i], "seed"), seed);
      const double ratio = number(runs[i], "ratio");
      EXPECT_NEAR(ratio, told / cost(joined(learned, {"--seed", std::to_string(seed)})), 1e-12);
      sum += ratio;
      worst = std::min(worst, ratio);
      if (ratio == number(row, "worst_ratio")) {
        EXPECT_EQ(number(row, "worst_seed"), seed);
      }
    }
    EXPECT_EQ(number(row, "worst_ratio"), worst);
    EXPECT_NEAR(number(row, "mean_ratio"), sum / 3, 1e-12);
    EXPECT_EQ(*row.find("cost_known")->string(), known);
    EXPECT_NE(number(runs[0], "ratio"), number(runs[1], "ratio"));
  }
}

TEST_F(SeedsTool, CountsTheRunsWithAWeakLastQuarter) {
  const tools::Json row = results({edits, "--limit", "8", "--cost", "linear:0.1", "--cost-known", "learned", "--noise",
                                   "0.5", "--outliers", "50:30", "--seeds", "6"})
                              .front();
  std::string weak;
  for (const tools::Json& run : *row.find("runs")->array())
    if (number(run, "last_quarter") < 0.97)
      weak += (weak.empty() ? "" : " ") + std::to_string(static_cast<int>(number(run, "seed")));
  EXPECT_THAT(weak, Not(IsEmpty())) << "such times teach nothing";
  EXPECT_EQ(*row.find("weak_seeds")->string(), weak);
  EXPECT_EQ(number(row, "weak_last_quarters"), std::count(weak.begin(), weak.end(), ' ') + 1);
}

TEST_F(SeedsTool, RecordsTheLearnedCurveOverThePasses) {
  const auto curve = [&](const std::string& known) {
    const tools::Json row = results({edits, "--limit", "6", "--max-nodes", "9", "--cost", "linear:0.1", "--cost-known",
                                     known, "--seeds", "1", "--noise", "0", "--outliers", "0:10"})
                                .front();
    return *row.find("runs")->array()->front().find("curve")->array();
  };
  const tools::Json::Array carried = curve("carried");
  ASSERT_GT(carried.size(), 3U);
  EXPECT_EQ(number(carried[0], "passes"), 0);
  EXPECT_EQ(number(carried[1], "passes"), 64);
  EXPECT_EQ(number(carried[2], "passes"), 128);
  for (const tools::Json& point : carried) {
    ASSERT_EQ(point.find("learned")->array()->size(), 10U);
    ASSERT_EQ(point.find("true")->array()->size(), 10U);
    EXPECT_NEAR((*point.find("true")->array())[9].number()->value, 1.9, 1e-9);
    EXPECT_NE(point.find("uncertain")->array(), nullptr);
  }
  EXPECT_GT(std::abs(number(carried.front(), "largest_error")), 0.05);
  EXPECT_LT(std::abs(number(carried.back(), "largest_error")), 0.03) << "exact times";
  const tools::Json::Array learned = curve("learned");
  EXPECT_LT(number(learned.back(), "passes"), number(carried.back(), "passes")) << "one session only";
  EXPECT_GT(number(learned.back(), "passes"), 20);
}

TEST_F(SeedsTool, GivesTheSameOnAnyNumberOfThreads) {
  const auto with = [&](const std::string& threads, const std::string& format) {
    return output({edits, objects, "--limit", "5", "--cost", "linear:0.1", "--cost", "linear:0.02", "--cost-known",
                   "learned", "--seeds", "3", "--by-category", "--threads", threads, "--format", format});
  };
  EXPECT_EQ(with("3", "json"), with("1", "json"));
  EXPECT_EQ(with("100", "table"), with("1", "table"));
}

TEST_F(SeedsTool, PoisonsThePassesThatItIsAskedTo) {
  // The drafts of trees change with each mode; those of chains do not with slow-machine.
  const Arguments common = {edits, "--limit", "8", "--cost", "linear:0.1", "--shape", "tree"};
  const Arguments carried = joined(common, {"--cost-known", "carried"});
  const Arguments learned = joined(common, {"--cost-known", "learned"});
  for (const std::string mode :
       {"random", "drafts-dear", "plain-cheap", "drafts-free", "first-slow", "slow-machine", "missing"}) {
    const Arguments wrong = joined(carried, {"--poison", mode + ":150"});
    const double once = cost(wrong);
    EXPECT_NE(once, cost(carried)) << mode;
    EXPECT_EQ(once, cost(wrong)) << mode;
    const tools::Json row = results(joined(wrong, {"--seeds", "1"})).front();
    EXPECT_NEAR(number(row.find("runs")->array()->front(), "speedup") * once, number(row, "tokens"), 1e-6) << mode;
    EXPECT_EQ(word(row, "poison"), mode + ":150");
    EXPECT_NE(cost(joined(learned, {"--poison", mode + ":150"})), cost(learned)) << mode;
  }
  Arguments assumed = learned;
  assumed.back() = "assumed";
  EXPECT_EQ(cost(joined(learned, {"--poison", "missing:1000000"})), cost(assumed));
}

TEST_F(SeedsTool, SlowsDownWhereItIsAskedTo) {
  const Arguments carried = {edits, "--limit", "8", "--cost", "linear:0.1", "--cost-known", "carried"};
  const Arguments learned = {edits, "--limit", "8", "--cost", "linear:0.1", "--cost-known", "learned"};
  const tools::Json::Array whole = results(carried);
  const double passes = number(whole.front(), "passes");
  ASSERT_GT(passes, 300);
  const auto slow = [&](const Arguments& arguments, const std::string& spec) {
    return cost(joined(arguments, {"--slowdown", spec}));
  };
  EXPECT_EQ(slow(carried, "1@0"), cost(carried));
  EXPECT_EQ(slow(carried, "2@100000"), cost(carried));
  EXPECT_NE(slow(carried, "4@100"), cost(carried));
  EXPECT_NE(slow(carried, "2@middle"), cost(carried));
  EXPECT_NE(slow(learned, "2@middle"), cost(learned));
  const std::string late = std::to_string(static_cast<int>(passes * 0.8));
  EXPECT_NE(slow(carried, "4@" + late), cost(carried)) << "the passes of all sessions count";
  EXPECT_EQ(slow(learned, "4@" + late), cost(learned)) << "no session has so many passes";
}

TEST_F(SeedsTool, ReportsLongAndShortSessions) {
  std::string output = "0";
  for (int i = 1; i < 1001; ++i) output += "," + std::to_string(i * i % 97);
  const std::string long_session = R"({"id":"a","category":"x","turns":[{"prompt":[1],"output":[)" + output + "]}]}\n";
  const std::string one_less =
      R"({"id":"b","category":"x","turns":[{"prompt":[1],"output":[)" + output.substr(2) + "]}]}\n";
  const Arguments common = {"--cost", "linear:0.1", "--cost-known", "learned", "--seeds", "3"};
  const auto replayed = [&](const std::string& text) { return result(joined(common, {write("t.jsonl", text)})); };
  const tools::Json both = replayed(one_less + long_session + one_less);
  const tools::Json only_long = replayed(long_session);
  const tools::Json only_short = replayed(one_less + one_less);
  for (const char* name : {"mean_", "worst_"}) {
    const std::string ratio = std::string(name) + "ratio";
    EXPECT_EQ(number(both, std::string(name) + "long"), number(only_long, ratio));
    EXPECT_EQ(number(both, std::string(name) + "short"), number(only_short, ratio));
    EXPECT_EQ(number(only_short, std::string(name) + "long"), 0) << "there are none";
  }
  EXPECT_NE(number(both, "mean_long"), number(both, "mean_short"));
}

TEST_F(SeedsTool, ReplaysSeveralFilesAsOneStream) {
  const std::string both = write("both.jsonl", read(edits) + read(objects));
  for (const Arguments& more : {Arguments{"--cost-known", "carried"}, {"--memory", "past"}, {}}) {
    const Arguments common = joined(more, {"--cost", "linear:0.1", "--by-category"});
    const tools::Json::Array stream = results(joined(common, {edits, objects, "--stream"}));
    const tools::Json::Array one = results(joined(common, {both}));
    ASSERT_EQ(stream.size(), 3U) << "all, and two categories";
    ASSERT_EQ(one.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
      for (const char* name : {"sessions", "tokens", "passes", "drafted", "accepted", "speedup", "worst_loss"})
        EXPECT_EQ(number(stream[i], name), number(one[i], name)) << name;
    EXPECT_EQ(*stream[0].find("trace")->string(), "stream of 2 traces");
  }
  const Arguments carried = {"--cost-known", "carried", "--cost", "linear:0.1"};
  EXPECT_NE(cost(joined(carried, {both})), cost(joined(carried, {edits})) + cost(joined(carried, {objects})))
      << "without --stream, the second file starts with nothing learned";
  EXPECT_EQ(*results({objects, "--stream", "--limit", "1", "--cost", "linear:0.1"}).front().find("trace")->string(),
            objects);
}

TEST_F(SeedsTool, ReplaysRecordedPassTimes) {
  const std::string exact = write("exact.json", recording(""));
  const Arguments common = {edits, "--limit", "8"};
  EXPECT_NEAR(cost(joined(common, {"--pass-times", exact})), cost(joined(common, {"--cost", "linear:0.1"})), 1e-6)
      << "told: the medians are linear";
  const Arguments timed = joined(common, {"--pass-times", exact, "--cost-known", "carried"});
  const tools::Json row = results(joined(timed, {"--seeds", "2"})).front();
  EXPECT_EQ(*row.find("cost")->string(), exact);
  EXPECT_EQ(number(row, "noise"), 0);
  EXPECT_EQ(*row.find("outliers")->string(), "none");
  const tools::Json::Array& runs = *row.find("runs")->array();
  EXPECT_EQ(number(runs[0], "ratio"), number(runs[1], "ratio")) << "each shape has one time, so no seed matters";
  EXPECT_GT(number(runs[0], "ratio"), 0.9);

  // Two further times on each side of the median: the costs do not change, but the times do.
  std::string scattered = recording(", 1, 2, 1000000, 2000000");
  const std::string wild = write("wild.json", scattered);
  EXPECT_NEAR(cost(joined(common, {"--pass-times", wild})), cost(joined(common, {"--cost", "linear:0.1"})), 1e-6);
  const tools::Json noisy =
      results(joined(common, {"--pass-times", wild, "--cost-known", "carried", "--seeds", "2"})).front();
  const tools::Json::Array& noisy_runs = *noisy.find("runs")->array();
  EXPECT_NE(number(noisy_runs[0], "ratio"), number(noisy_runs[1], "ratio"));
  EXPECT_LT(number(noisy_runs[0], "ratio"), number(runs[0], "ratio"));
}

}  // namespace
}  // namespace reprise::replay::seeds_tool_test
