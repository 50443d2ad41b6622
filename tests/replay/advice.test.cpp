// SPDX-License-Identifier: Apache-2.0
// reprise-replay --advise: which settings pay, and the C++ to paste.
#include "replay/advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "replay/options.hpp"
#include "replay/replay_tool.hpp"
#include "reprise/history.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/reprise.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::replay::advice_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The code of three advices: it compiles, and CodeToPaste compares it with what is written.
constexpr auto out_of_memory = [] {};
[[maybe_unused]] void all_is_advised() {
#include "replay/advised_all.inc"
  static_cast<void>(capabilities);
  static_cast<void>(limits);
}
[[maybe_unused]] void nothing_is_advised(){
#include "replay/advised_defaults.inc"
}

std::string file_of_tests(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(fs::path(REPRISE_SOURCE_DIR) / "tests/replay" / name, std::ios::binary).rdbuf();
  return text.str();
}

/// `count` sessions of 100 tokens with these costs, and some noise.
std::vector<SessionCost> costs(std::size_t count, double cost, double noise, std::uint64_t seed) {
  testing::Random random(seed);
  std::vector<SessionCost> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back({100, cost + noise * (static_cast<double>(random.below(1001)) / 500 - 1)});
  return all;
}

TEST(Change, PaysIfItIsFasterBeyondNoise) {
  const auto before = costs(40, 50, 10, 1);
  auto after = before;
  for (SessionCost& session : after) session.cost *= 0.98;
  const Change paired = change(before, after);
  EXPECT_NEAR(paired.ratio, 1 / 0.98, 1e-9);
  EXPECT_NEAR(paired.interval->low, 1 / 0.98, 1e-9);  // all sessions gain the same, however much they differ
  EXPECT_TRUE(paired.pays());
  EXPECT_FALSE(change(after, before).pays());

  const Change nothing = change(before, before);
  EXPECT_EQ(nothing.ratio, 1);
  EXPECT_EQ(nothing.interval->low, 1);
  EXPECT_EQ(nothing.interval->high, 1);
  EXPECT_FALSE(nothing.pays());

  for (SessionCost& session : after) session.cost /= 0.982;  // +0.2%: certain, but too little
  EXPECT_GT(change(after, before).interval->high, 0.99);
  EXPECT_FALSE(change(before, after).pays());
}

TEST(Change, PaysForTheMemoryThatItAdds) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  const auto before = costs(16, 50, 10, 1);
  const auto gaining = [&](double gain) {
    auto after = before;
    for (SessionCost& session : after) session.cost /= 1 + gain;
    return change(before, after);
  };
  EXPECT_TRUE(gaining(0.008).pays());
  EXPECT_TRUE(gaining(0.008).pays(5 * mebibyte));
  EXPECT_FALSE(gaining(0.008).pays(7 * mebibyte));
  EXPECT_FALSE(gaining(0.008).pays(64 * mebibyte));
  EXPECT_FALSE(gaining(0.036).pays(64 * mebibyte));
  EXPECT_TRUE(gaining(0.038).pays(64 * mebibyte));
  EXPECT_NEAR(Change::least_gain(64 * mebibyte), 0.037, 1e-12);
}

TEST(Advice, SaysThatAGainIsTooLittleForItsMemory) {
  Advice advice;
  advice.sessions = 16;
  Tried tried;
  tried.question = "history";
  tried.setting = "64 MiB";
  tried.speedup = 2;
  tried.change = {1.008, Interval{1.004, 1.012}};
  tried.memory_bytes = std::uint64_t{72} << 20;
  tried.added_bytes = tried.memory_bytes;
  EXPECT_EQ(text_of(tried, advice).verdict, "too little for its memory");
  EXPECT_EQ(text_of(tried, advice).memory, "72.0 MiB");
  advice.tried = {tried};
  std::ostringstream summary;
  write_summary(summary, advice);
  EXPECT_EQ(summary.str(),
            "Leave the settings as they are: no change gave +0.5% or more, beyond noise, and\n"
            "enough for the memory that it adds.\n");
  tried.added_bytes = 0;
  EXPECT_EQ(text_of(tried, advice).verdict, "leave it");  // it stays slower than plain decoding
  advice.tried = {tried};
  std::ostringstream slower;
  write_summary(slower, advice);
  EXPECT_EQ(slower.str(),
            "Leave the settings as they are: none of them makes drafting faster than plain\ndecoding here.\n");
  tried.change = {1.001, Interval{1.0005, 1.002}};
  EXPECT_EQ(text_of(tried, advice).verdict, "leave it");
}

TEST(Advice, SaysThatAnEngineIsBetterOffWithoutADrafter) {
  Advice advice;
  advice.sessions = 16;
  advice.against_plain = {0.9, Interval{0.88, 0.93}};
  for (const bool tolled : {true, false}) {
    advice.toll = tolled ? 1.28 : 1;
    std::ostringstream summary;
    write_summary(summary, advice);
    const bool without = summary.str().find(
                             "The engine is better off\n"
                             "without any drafter: having one costs +28.0% of each pass.\n") != std::string::npos;
    EXPECT_EQ(without, tolled) << summary.str();
    EXPECT_EQ(summary.str().find("Check the curve") != std::string::npos, !tolled) << summary.str();
  }
}

TEST(Change, NoiseSeldomPays) {
  // Pairs of replays whose sessions cost the same on average. With 99% intervals, half a percent of them may pay.
  int paying = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed)
    paying += change(costs(30, 50, 10, 2 * seed), costs(30, 50, 10, 2 * seed + 1)).pays() ? 1 : 0;
  EXPECT_LE(paying, 5);
  // A gain of 20% is found in the same noise.
  EXPECT_TRUE(change(costs(30, 60, 10, 1), costs(30, 50, 10, 2)).pays());
}

TEST(Change, NeedsSessionsWithTokens) {
  auto before = costs(7, 50, 0, 1);
  auto after = costs(7, 25, 0, 1);
  for (int i = 0; i < 9; ++i) {
    before.push_back({0, 0});
    after.push_back({0, 0});
  }
  const Change few = change(before, after);
  EXPECT_EQ(few.ratio, 2);
  EXPECT_FALSE(few.interval);
  EXPECT_FALSE(few.pays());
  before.push_back({100, 50});
  after.push_back({100, 25});
  EXPECT_TRUE(change(before, after).pays());
  EXPECT_EQ(change({}, {}).ratio, 1);
}

TEST(Advice, CodeToPaste) {
  Advice advice;
  const CostCurve curve = CostCurve::parse("linear:0.02");
  AdviceReport report{advice, curve};
  report.settings.cost_known = CostKnown::learned;
  std::ostringstream defaults;
  write_code(defaults, report);
  EXPECT_EQ(defaults.str(), file_of_tests("advised_defaults.inc"));

  advice.settings = {.trees = true, .history_bytes = 1 << 20, .drafter = Drafter::suffix_array, .max_nodes = 8};
  report.settings.cost_known = CostKnown::told;
  report.top_k = true;
  std::ostringstream all;
  write_code(all, report);
  EXPECT_EQ(all.str(), file_of_tests("advised_all.inc"));

  advice.settings = {.drafter = Drafter::copy};
  std::ostringstream copies;
  write_code(copies, report);
  EXPECT_EQ(copies.str(), file_of_tests("advised_copy.inc"));
}

TEST(Advice, NamesOfFilesStayInTheirComments) {
  Advice advice;
  const CostCurve curve = CostCurve::parse_file(
      "a\nabort();.json",
      R"({"version": 1, "base_ns": 10, "points": [{"sequences": 1, "context": 0, "rows": 1, "ns": 10}]})");
  AdviceReport report{advice, curve};
  report.settings.corpora = "b\nabort();";
  std::ostringstream code;
  write_code(code, report);
  EXPECT_THAT(code.str(),
              AllOf(HasSubstr("a\\nabort();.json.\n"), HasSubstr("b\\nabort();.\n"), Not(HasSubstr("\na"))));
}

TEST(AdvisedSettings, AreTheDefaultsOfTheTool) {
  // An engine with only verify() and commit(): chains, and no top_k(i).
  const ReplaySettings defaults = parse_options({}).settings;
  EXPECT_EQ(AdvisedSettings().trees, defaults.trees);
  EXPECT_EQ(defaults.trees, Capabilities().max_leaves > 1);
  EXPECT_FALSE(defaults.top_k);
}

class AdviceTool : public ReplayToolTest {
 protected:
  [[nodiscard]] Ran advised(const Arguments& options) const {
    return run(joined(joined({"--advise"}, options), {path("t.jsonl")}));
  }
  /// Sessions of random tokens. With `alike`, every output is one of three texts that no prompt contains.
  void write(std::size_t sessions, bool alike) {
    testing::Random random(7);
    std::vector<std::string> texts;
    const auto tokens = [&] {
      std::string list;
      for (int i = 0; i < 60; ++i) list += (i == 0 ? "" : ",") + std::to_string(random.below(30'000));
      return list;
    };
    for (int i = 0; i < 3; ++i) texts.push_back(tokens());
    std::ostringstream file;
    for (std::size_t i = 0; i < sessions; ++i)
      file << R"({"id":"s)" << i << R"(","category":"c","turns":[{"prompt":[1,2,3],"output":[)"
           << (alike ? texts[i % 3] : tokens()) << "]}]}\n";
    FolderTest::write("t.jsonl", file.str());
  }
};

TEST_F(AdviceTool, FindsThatAHistoryPays) {
  write(24, true);
  const Ran ran = advised({"--cost", "linear:0.02"});
  ASSERT_EQ(ran.status, 0) << ran.error;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("Advice for 24 sessions, 1,416 tokens, under linear:0.02"),
                    HasSubstr("\nUse: history 1 MiB.\nTogether: "),
                    HasSubstr("The defaults (chains, no rankings, no history): "),
                    HasSubstr("A change must gain\n0.5%, and 0.05% more for each MiB of memory that it adds.\n"),
                    HasSubstr("HistoryStore::make({.max_bytes = 1048576})"), Not(HasSubstr("SuffixArray"))));
  EXPECT_EQ(advised({"--cost", "linear:0.02", "--threads", "3"}).out, ran.out);
}

TEST_F(AdviceTool, LeavesTheDefaultsIfDraftingDoesNotPay) {
  write(12, false);
  const std::string out = advised({"--cost", "linear:0.005"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("Leave the settings as they are: no change gave"),
                         HasSubstr("The defaults are slower than plain decoding here."), Not(HasSubstr("use it")),
                         HasSubstr("Speculator"), Not(HasSubstr("HistoryStore"))));
}

TEST_F(AdviceTool, SaysThatSessionsAreTooFew) {
  write(5, true);
  const Ran ran = advised({"--cost", "linear:0.02"});
  ASSERT_EQ(ran.status, 0) << ran.error;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("Too few sessions for an advice: 5 with tokens, and at least 8 are needed"),
                             HasSubstr("  too few\n"), Not(HasSubstr("use it"))));
}

}  // namespace
}  // namespace reprise::replay::advice_test
