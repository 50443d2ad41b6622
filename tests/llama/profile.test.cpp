// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "common/input_error.hpp"
#include "common/json.hpp"
#include "engine_error.hpp"
#include "llama/fake_passes.hpp"
#include "replay/cost_curve.hpp"
#include "replay/pass_times.hpp"
#include "reprise_testing/random.hpp"
#include "support/folder_test.hpp"

#ifdef __linux__
#include "support/file_size_limit.hpp"
#include "support/refusal.hpp"
#endif

namespace reprise::llama::profile_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using tools::InputError;

std::uint64_t exact_time(std::size_t rows, std::size_t context, std::size_t sequences) {
  return 1000000 + 70000 * rows + 30 * context * sequences + (rows > 8 ? 500000 : 0);
}

struct ProfileOf : testing::FolderTest {
  ProfileOf() {
    engine.time = exact_time;
    settings.contexts = {1024, 128};
  }
  Profile measure() {
    Profile profile = measure_profile(engine, settings, progress);
    EXPECT_EQ(engine.faults, 0U);
    EXPECT_TRUE(engine.cache.empty());
    return profile;
  }
  std::string refused() {
    return testing::refusal([&] { return measure(); });
  }

  FakePasses engine;
  ProfileSettings settings;
  tools::Progress progress{nullptr, 80};
};

TEST_F(ProfileOf, AnEngineOfKnownTimesIsThoseTimes) {
  const Profile profile = measure();
  EXPECT_EQ(profile.points.size(), 3 * 2 * 33U);
  std::set<std::vector<std::size_t>> shapes;
  for (const ProfilePoint& point : profile.points) {
    EXPECT_EQ(point.ns, static_cast<double>(exact_time(point.rows, point.context, point.sequences)));
    EXPECT_EQ(point.rows % point.sequences, 0U);
    shapes.insert({point.sequences, point.context, point.rows});
  }
  EXPECT_EQ(shapes.size(), profile.points.size());
  EXPECT_TRUE(profile.left_out.empty());
}

TEST_F(ProfileOf, MediansStandAgainstOutliers) {
  testing::Random random(5);
  engine.time = [&](std::size_t rows, std::size_t context, std::size_t sequences) {
    return exact_time(rows, context, sequences) * (random.chance(10) ? 20 : 1);
  };
  settings.repetitions = 31;
  for (const ProfilePoint& point : measure().points)
    EXPECT_EQ(point.ns, static_cast<double>(exact_time(point.rows, point.context, point.sequences)));
}

TEST_F(ProfileOf, AMachineThatGetsSlowerDoesNotBendTheCurve) {
  std::size_t passes = 0;  // each pass takes longer than the one before, whatever its rows
  engine.time = [&](std::size_t, std::size_t, std::size_t) { return 1000000 + 1000 * passes++; };
  settings.contexts = {128};
  settings.sequences = {1};
  settings.repetitions = 101;
  const Profile profile = measure();
  for (const ProfilePoint& point : profile.points) EXPECT_NEAR(point.ns / profile.points[0].ns, 1, 0.01) << point.rows;
}

TEST_F(ProfileOf, ADraftPaysForTheChangeOfShapeBeforeAndAfterIt) {
  std::size_t last = 0;
  engine.time = [&](std::size_t rows, std::size_t context, std::size_t sequences) {
    const bool changed = std::exchange(last, rows) != rows;
    return exact_time(rows, context, sequences) + (changed ? 50000 : 0);
  };
  for (const ProfilePoint& point : measure().points) {
    const double changes = point.rows == point.sequences ? 0 : 2 * 50000;
    EXPECT_EQ(point.ns, static_cast<double>(exact_time(point.rows, point.context, point.sequences)) + changes);
  }
}

TEST_F(ProfileOf, EveryRepetitionHasEveryWidthOnceInAnotherOrder) {
  settings.contexts = {64};
  settings.sequences = {1};
  settings.drafted = {5, 3, 3, 9};
  measure();
  // The plain pass and three widths, warmed up; a plain pass; then in each repetition a plain pass, and three passes
  // for each width.
  ASSERT_EQ(engine.widths.size(), 4 + 1 + (1 + 3 * 3) * settings.repetitions);
  std::set<std::vector<std::size_t>> orders;
  for (std::size_t i = 5; i < engine.widths.size(); i += 10) {
    const auto from = engine.widths.begin() + static_cast<std::ptrdiff_t>(i);
    EXPECT_THAT(std::vector<std::size_t>(from, from + 10),
                ::testing::UnorderedElementsAre(1, 1, 4, 1, 1, 6, 1, 1, 10, 1));
    for (const std::ptrdiff_t at : {0, 1, 3, 4, 6, 7, 9}) EXPECT_EQ(from[at], 1U) << at;
    orders.insert(std::vector<std::size_t>(from, from + 10));
  }
  EXPECT_GT(orders.size(), 3U);
  EXPECT_EQ(engine.filled, 64U);
}

TEST_F(ProfileOf, TheFileIsACurveForReplayAndControl) {
  const Profile profile = measure();
  std::ostringstream json;
  write_profile_json(json, profile, {"a \"fast\" one", "m", "l", 2, "2026-11-21", "reprise-llama --profile x"});
  const auto curve = replay::CostCurve::parse_file("x", json.str());
  const auto control = curve.for_control();
  for (const std::size_t context : {128U, 1024U})
    for (std::size_t rows = 1; rows <= 33; ++rows) {
      const double cost =
          static_cast<double>(exact_time(rows, context, 1)) / static_cast<double>(exact_time(1, context, 1));
      EXPECT_NEAR(curve.cost({1, rows, context}), cost, 1e-9);
      EXPECT_NEAR(static_cast<double>(control.cost({1, rows, context})) / cost_one, cost, 1e-4);
    }
  tools::Json read;
  ASSERT_FALSE(tools::parse_json(json.str(), read));
  EXPECT_EQ(*read.find("hardware")->string(), "a \"fast\" one");
  EXPECT_EQ(read.find("threads")->number()->integer, 2);
  for (const char* key : {"model", "library", "date", "command"}) EXPECT_NE(read.find(key), nullptr) << key;
  EXPECT_EQ(read.find("base_ns")->number()->integer, static_cast<std::int64_t>(exact_time(1, 128, 1)));

  // The library also accepts the points of several sequences.
  std::vector<CostPoint> points;
  for (const ProfilePoint& point : profile.points)
    points.push_back({point.sequences, point.context, point.rows, point.ns});
  EXPECT_TRUE(reprise::CostCurve::from_points(points));
}

TEST_F(ProfileOf, TheFileIsARecordingOfPassTimesIfTheyAreKept) {
  std::map<std::size_t, std::uint64_t> passes;  // by rows; plain passes always take the same time
  engine.time = [&](std::size_t rows, std::size_t context, std::size_t sequences) {
    return exact_time(rows, context, sequences) * (rows == sequences ? 2 : 1 + ++passes[rows] % 3);
  };
  settings.repetitions = 11;
  std::ostringstream without;
  write_profile_json(without, measure(), {});
  EXPECT_THAT(without.str(), Not(HasSubstr("pass_times")));
  settings.keep_times = true;
  const Profile profile = measure();
  std::ostringstream json;
  write_profile_json(json, profile, {});
  const auto recorded = replay::PassTimes::parse("x", json.str());
  const auto curve = replay::CostCurve::parse_file("x", json.str());
  testing::Random random(1);
  std::set<std::uint64_t> factors;
  for (const ProfilePoint& point : profile.points) {
    EXPECT_EQ(point.times.size(), point.sequences == 1 ? 11U : 0U);
    if (point.sequences != 1) continue;
    EXPECT_EQ(recorded.medians().nanoseconds(point.rows, point.context), point.ns);
    const auto exact = static_cast<double>(exact_time(point.rows, point.context, 1));
    const double factor = recorded.sample({1, point.rows, point.context}, random) / exact;
    EXPECT_EQ(factor, std::floor(factor));
    factors.insert(static_cast<std::uint64_t>(factor));
  }
  EXPECT_EQ(factors, (std::set<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(curve.cost({1, 9, 128}), recorded.medians().nanoseconds(9, 128) / recorded.medians().nanoseconds(1, 128));
}

TEST_F(ProfileOf, WhatDoesNotFitIsLeftOutAndSaid) {
  engine.size = 128 + 33;
  engine.sequences = 2;
  const Profile profile = measure();
  EXPECT_EQ(profile.points.size(), 2 * 33U);
  EXPECT_THAT(profile.left_out,
              ::testing::ElementsAre(HasSubstr("1 sequence, context 1024"), HasSubstr("2 sequences, context 1024"),
                                     HasSubstr("4 sequences, context 128"), HasSubstr("made for 2 sequences")));
  engine.size = 128 + 32;
  EXPECT_THAT(refused(), HasSubstr("room for 160 tokens"));
}

TEST_F(ProfileOf, SequencesShareTheRoomOfAUnifiedCache) {
  engine.total = 2 * (1024 + 33);
  const Profile profile = measure();
  EXPECT_EQ(profile.points.size(), 5 * 33U);
  EXPECT_THAT(profile.left_out, ::testing::ElementsAre(HasSubstr("4 sequences, context 1024")));
}

TEST_F(ProfileOf, APassThatTheEngineWouldSplitIsNotMeasured) {
  engine.rows = 33;
  EXPECT_EQ(measure().points.size(), 2 * 33U);
  engine.rows = 32;
  EXPECT_THAT(refused(), HasSubstr("33 rows is more than the 32"));
}

TEST_F(ProfileOf, TheTextIsWhatPassesRunOn) {
  settings.text = {7};
  settings.contexts = {64};
  settings.sequences = {1};
  engine.answer = [](TokenSpan tokens, std::size_t, std::vector<float>&) {
    for (const Token token : tokens) ASSERT_EQ(token, 7);
  };
  measure();
}

TEST_F(ProfileOf, TheTableShowsEveryWidth) {
  settings.contexts = {128};
  settings.sequences = {1};
  settings.drafted = {1, 20};
  std::ostringstream out;
  write_profile_table(out, measure());
  EXPECT_EQ(out.str(),
            "1 sequence, context 128: c(k), the time of a pass with k drafted tokens in plain passes\n"
            "   k  rows         ms  spread    c(k)\n"
            "   0     1      1.074    0.0%    1.00  ##################\n"
            "   1     2      1.144    0.0%    1.07  ###################\n"
            "  20    21      2.974    0.0%    2.77  ##################################################\n");
}

TEST(Hardware, IsTheProcessorsName) {
  std::istringstream pc(
      "processor\t: 0\nmodel name\t: A fast: one\nflags : x\n\nprocessor\t: 1\nmodel name\t: A fast: one\n");
  EXPECT_EQ(hardware_text(pc), "A fast: one, 2 processors");
  std::istringstream board("processor\t: 0\nBogoMIPS\t: 48\n");
  EXPECT_EQ(hardware_text(board), "unknown");
  EXPECT_FALSE(hardware_text().empty());
  EXPECT_THAT(date_text(), ::testing::MatchesRegex("20..-..-.."));
}

TEST_F(ProfileOf, AFileThatCannotBeWrittenIsSaidBeforeAnythingIsMeasured) {
  std::ostringstream out;
  EXPECT_THROW(run_profile(engine, settings, {}, "no/such/folder/x.json", out, progress), InputError);
  EXPECT_TRUE(engine.widths.empty());
  run_profile(engine, settings, {}, path("curve.json"), out, progress);
  EXPECT_NO_THROW(replay::CostCurve::parse(path("curve.json")));
  EXPECT_THAT(out.str(), HasSubstr("4 sequences, context 1024: c(k)"));
#ifdef __linux__
  EXPECT_THROW(run_profile(engine, settings, {}, "/dev/full", out, progress), EngineError);
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/full"));
#endif
}

#ifdef __linux__
TEST_F(ProfileOf, AFullDiskLeavesTheCurveThatWasThere) {
  namespace fs = std::filesystem;
  const std::string curve = path("curve.json");
  const std::string link = path("link.json");
  std::ostringstream out;
  for (const std::string before : {"", "an earlier curve"}) {
    if (!before.empty()) write("curve.json", before);
    const testing::FileSizeLimit limit(500);
    EXPECT_THROW(run_profile(engine, settings, {}, curve, out, progress), EngineError);
    EXPECT_EQ(read(curve), before);
    EXPECT_EQ(fs::exists(curve), !before.empty());
    EXPECT_FALSE(fs::exists(curve + ".part"));
  }
  fs::create_symlink(curve, link);
  run_profile(engine, settings, {}, link, out, progress);
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_NO_THROW(replay::CostCurve::parse(curve));
}
#endif

}  // namespace
}  // namespace reprise::llama::profile_test
