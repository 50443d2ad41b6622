// SPDX-License-Identifier: Apache-2.0
#include "batch_decode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "batch_compare.hpp"
#include "batch_engine.hpp"
#include "llama/stand_in_test.hpp"
#include "verdict.hpp"

// Many sequences in one llama_context, with the stand-in: the text of each equals its text when decoded alone.
namespace reprise::llama::batch_decode_test {
namespace {

using llama_stand_in::ModelText;
using ::testing::HasSubstr;
using Kind = BatchRule::Kind;

const BatchRule every_rule[] = {{Kind::plain, 0}, {Kind::told, 0},  {Kind::learned, 0},
                                {Kind::fixed, 1}, {Kind::fixed, 4}, {Kind::fixed, 8}};

class BatchDecode : public StandInTest {
 protected:
  BatchDecode() {
    options_.context = 2048;
    options_.sequences = 4;
    options_.batch = 64;
    load({});
  }

  void load(const ModelText& text) {
    engine_ = {};
    options_.model = write("model.gguf", text.text());
    engine_ = Engine::load(options_);
  }
  /// Sessions with prompts and answers of different lengths; every third has two turns.
  static std::vector<Request> requests(std::size_t count = 7, std::size_t most = 30) {
    std::vector<Request> all;
    for (std::size_t i = 0; i < count; ++i) {
      Request request{"s" + std::to_string(i), "test", "here", {}, false, {}, true};
      std::string text;
      for (std::size_t word = 0; word < 3 + 5 * (i % 4); ++word) text += "abc" + std::to_string((word + i) % 3) + " ";
      request.turns.push_back({text, {}, most - 4 * (i % 3), {}});
      if (i % 3 == 0) request.turns.push_back({"and again", {}, most / 2, {}});
      all.push_back(request);
    }
    return all;
  }

  BatchRun decode(const std::vector<Request>& sessions, const BatchRule& rule) {
    BatchOptions options;
    if (rule.kind == Kind::told) options.curve = CostCurve::linear(0.02);
    options.max_rows = options_.batch;
    BatchPlanner planner(options);
    return decode_batch(engine_, sessions, make_draftings(std::vector<std::string>{strategy_})[0], rule, planner,
                        settings_);
  }
  /// Expects that every session is complete and has its text when decoded alone.
  void expect_texts(const BatchRun& run, const std::vector<Request>& sessions, const std::string& what) {
    ASSERT_EQ(run.sessions.size(), sessions.size());
    Drafting plain = no_drafting();
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const RequestRun alone = run_request(engine_, sessions[i], plain, settings_.settings);
      EXPECT_FALSE(first_difference(alone, run.sessions[i].run)) << what << ", session " << i;
      EXPECT_TRUE(run.sessions[i].done) << what << ", session " << i;
      EXPECT_EQ(run.sessions[i].gave_up, "");
      for (std::size_t t = 0; t < alone.turns.size(); ++t)
        EXPECT_EQ(run.sessions[i].run.turns[t].finish, alone.turns[t].finish);
    }
    EXPECT_FALSE(run.stopped);
  }
  void expect_texts_of_every_rule(const std::vector<Request>& sessions) {
    for (const BatchRule& rule : every_rule) expect_texts(decode(sessions, rule), sessions, rule.name());
  }

  EngineOptions options_;
  Engine engine_;
  BatchSettings settings_{.sequences = 3, .chunk = 7};
  std::string strategy_ = "ngram";
};

TEST_F(BatchDecode, DraftsAndSharesPasses) {
  const auto sessions = requests();
  const BatchRun plain = decode(sessions, {Kind::plain, 0});
  const BatchRun fixed = decode(sessions, {Kind::fixed, 4});
  EXPECT_EQ(plain.all.drafted, 0U);
  EXPECT_GT(fixed.all.accepted, 0U);
  EXPECT_LT(fixed.all.accepted, fixed.all.drafted);
  EXPECT_EQ(plain.all.tokens, fixed.all.tokens);
  EXPECT_EQ(plain.most_running, 3U);
  EXPECT_LT(plain.all.passes, plain.all.tokens) << "several sequences share a pass";
  EXPECT_LT(fixed.all.passes, plain.all.passes);
  EXPECT_EQ(plain.all.rows, plain.all.tokens + plain.all.prompt_rows) << "without drafts, one row for each token";
  EXPECT_EQ(fixed.all.rows, fixed.all.prompt_rows + (fixed.all.tokens - fixed.all.accepted) + fixed.all.drafted);
  EXPECT_GT(plain.decoding.passes, 0U);
  EXPECT_LT(plain.decoding.passes, plain.all.passes);
  EXPECT_EQ(plain.decoding.prompt_rows, 0U);
}

TEST_F(BatchDecode, DrawsTheSameTokensFromSeededSamplers) {
  settings_.settings.sampling = {.temperature = 1.5, .seed = 5};
  expect_texts_of_every_rule(requests());
}

TEST_F(BatchDecode, LimitsPromptRowsBesideDecoding) {
  const auto sessions = requests(6);
  settings_.chunk = 1;
  const BatchRun small = decode(sessions, {Kind::plain, 0});
  settings_.chunk = 60;
  const BatchRun large = decode(sessions, {Kind::plain, 0});
  EXPECT_EQ(small.all.prompt_rows, large.all.prompt_rows);
  EXPECT_GT(small.all.passes, large.all.passes);
  expect_texts(small, sessions, "chunks of 1");
  expect_texts(large, sessions, "chunks of 60");
}

TEST_F(BatchDecode, KeepsPromptsApartWithoutAChunk) {
  const auto sessions = requests(6);
  settings_.chunk = 0;
  const BatchRun run = decode(sessions, {Kind::fixed, 4});
  expect_texts(run, sessions, "prompts apart");
  EXPECT_EQ(run.all.rows - run.decoding.rows, run.all.prompt_rows) << "a pass with prompt rows has no others";
  std::size_t passes = 0;
  for (const BatchSession& session : run.sessions)
    for (std::size_t t = 0; t < session.run.turns.size(); ++t)
      passes += (session.run.turns[t].prompt.size() - (t == 0 ? 1 : 0) + 63) / 64;
  EXPECT_EQ(run.all.passes - run.decoding.passes, passes) << "each prompt has passes of its own";
}

TEST_F(BatchDecode, WaitsIfTheEngineSaysThatItsCacheIsFull) {
  const auto sessions = requests();
  for (std::size_t failing = 2; failing < 40; failing += 3) {
    llama_stand_in::settings().decodes = 0;
    llama_stand_in::settings().failure = 1;
    llama_stand_in::settings().failing_decode = failing;
    const BatchRun run = decode(sessions, {Kind::fixed, 4});
    llama_stand_in::settings().failing_decode = 0;
    expect_texts(run, sessions, "decode " + std::to_string(failing));
  }
}

TEST_F(BatchDecode, TriesARefusedPassAgainWithoutDrafts) {
  settings_.sequences = 1;
  const auto sessions = requests(1);
  llama_stand_in::settings().failure = 1;
  std::size_t complete = 0;
  for (std::size_t failing = 3; failing < 15; ++failing) {
    llama_stand_in::settings().decodes = 0;
    llama_stand_in::settings().failing_decode = failing;
    complete += decode(sessions, {Kind::fixed, 8}).sessions[0].gave_up.empty() ? 1 : 0;
  }
  EXPECT_GT(complete, 0U);
}

TEST_F(BatchDecode, LetsNobodyBackInUntilASessionHasEnded) {
  // The engine refuses three passes: one session gives way, then another, and the last gives up.
  const auto sessions = requests();
  std::size_t passes = 0;
  llama_stand_in::settings().failure = 1;
  settings_.stop = [&] {
    if (++passes <= 3) llama_stand_in::settings().failing_decode = llama_stand_in::settings().decodes + 1;
    return false;
  };
  BatchRun run = decode(sessions, {Kind::plain, 0});
  EXPECT_EQ(run.preemptions, 2U);
  EXPECT_THAT(run.sessions[0].gave_up, HasSubstr("no room"));
  EXPECT_TRUE(run.sessions[0].run.turns.at(0).output.empty());
  Drafting plain = no_drafting();
  for (std::size_t i = 1; i < sessions.size(); ++i)
    EXPECT_FALSE(first_difference(run_request(engine_, sessions[i], plain, settings_.settings), run.sessions[i].run));
}

TEST_F(BatchDecode, GivesUpWithAReasonIfOneSequenceAloneDoesNotFit) {
  settings_.sequences = 1;
  const auto sessions = requests(2);
  llama_stand_in::settings().failure = 1;
  llama_stand_in::settings().failing_decode = 9;
  const BatchRun run = decode(sessions, {Kind::plain, 0});
  llama_stand_in::settings().failing_decode = 0;
  EXPECT_THAT(run.sessions[0].gave_up, HasSubstr("no room"));
  EXPECT_TRUE(run.sessions[0].done);
  Drafting plain = no_drafting();
  const RequestRun alone = run_request(engine_, sessions[0], plain, settings_.settings);
  const auto& output = run.sessions[0].run.turns[0].output;
  ASSERT_LT(output.size(), alone.turns[0].output.size());
  EXPECT_GT(output.size(), 0U);
  EXPECT_TRUE(std::equal(output.begin(), output.end(), alone.turns[0].output.begin())) << "what it has is right";
  EXPECT_EQ(run.sessions[1].gave_up, "") << "the next session runs";
}

TEST_F(BatchDecode, PassesOnAFailureOfTheEngine) {
  llama_stand_in::settings().failure = -3;
  llama_stand_in::settings().failing_decode = 5;
  EXPECT_THROW(decode(requests(), {Kind::plain, 0}), EngineError);
}

TEST_F(BatchDecode, DraftsNothingForSessionsThatAskForNone) {
  auto sessions = requests();
  for (std::size_t i = 0; i < sessions.size(); i += 2) sessions[i].draft = false;
  for (const BatchRule& rule : {BatchRule{Kind::told, 0}, BatchRule{Kind::fixed, 4}}) {
    const BatchRun run = decode(sessions, rule);
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      std::size_t drafted = 0;
      for (const TurnRun& turn : run.sessions[i].run.turns) drafted += turn.statistics.drafted;
      EXPECT_EQ(drafted > 0, sessions[i].draft) << rule.name() << ", session " << i;
    }
    expect_texts(run, sessions, rule.name());
  }
}

TEST_F(BatchDecode, KeepsWhatItHasWhenItIsStopped) {
  const auto sessions = requests();
  std::size_t passes = 0;
  settings_.stop = [&] { return ++passes > 20; };
  const BatchRun run = decode(sessions, {Kind::plain, 0});
  settings_.stop = {};
  EXPECT_TRUE(run.stopped);
  EXPECT_LE(run.all.passes, 20U);
  ASSERT_EQ(run.sessions.size(), sessions.size());
  EXPECT_FALSE(run.sessions[0].done);
  EXPECT_FALSE(run.sessions[0].run.turns.at(0).output.empty());
  EXPECT_TRUE(run.sessions.back().run.turns.empty()) << "it never began";
}

// Comparisons.

class BatchComparisonTest : public BatchDecode {
 protected:
  BatchComparison compare(const std::vector<Request>& sessions) {
    tools::Progress progress(nullptr, 80);
    return compare_batches(engine_, sessions, make_draftings(std::vector<std::string>{strategy_})[0], compared_,
                           progress);
  }
  replay::CostCurve told_ = replay::CostCurve::parse("linear:0.02");
  BatchCompareSettings compared_{.sequences = {2, 3},
                                 .rules = {every_rule[0], every_rule[1], every_rule[4]},
                                 .told = &told_,
                                 .batch = {.chunk = 9}};
};

TEST_F(BatchComparisonTest, RunsEveryRuleWithEveryNumberAndComparesAllTexts) {
  compared_.repeat = 2;
  const auto sessions = requests();
  const BatchComparison result = compare(sessions);
  ASSERT_EQ(result.lanes.size(), 6U);
  EXPECT_FALSE(result.partial);
  EXPECT_EQ(result.verdict(), Verdict::identical);
  for (const BatchLane& lane : result.lanes) {
    EXPECT_EQ(lane.runs.size(), 2U);
    EXPECT_EQ(lane.count(Verdict::identical), sessions.size());
    EXPECT_GT(lane.tokens_per_second(), 0);
    EXPECT_EQ(lane.all().tokens, 2 * lane.runs[0].all.tokens);
  }
  EXPECT_EQ(result.lanes[4].rule.name(), "told");
  EXPECT_EQ(result.lanes[4].sequences, 3U);
}

TEST_F(BatchComparisonTest, TellsNearTiesFromWrongTexts) {
  // Logits depend on the number of rows in the pass, as with real kernels.
  llama_stand_in::settings().row_count_noise = 0.4F;
  compared_.epsilon = 10;
  const BatchComparison loose = compare(requests());
  EXPECT_EQ(loose.verdict(), Verdict::near_tie);
  compared_.epsilon = 1e-6;
  const BatchComparison strict = compare(requests());
  EXPECT_EQ(strict.verdict(), Verdict::wrong);
  std::size_t differences = 0;
  for (const BatchLane& lane : strict.lanes) differences += lane.count(Verdict::wrong);
  EXPECT_GT(differences, 0U);
}

TEST_F(BatchComparisonTest, AnInterruptLeavesAPartialResult) {
  std::size_t asked = 0;
  std::size_t last = unlimited;
  compared_.batch.stop = [&] { return ++asked > last; };
  EXPECT_FALSE(compare(requests()).partial);
  last = asked / 2;
  asked = 0;
  const BatchComparison result = compare(requests());
  EXPECT_TRUE(result.partial);
  ASSERT_FALSE(result.lanes.empty());
  EXPECT_LT(result.lanes.size(), 6U);
  EXPECT_FALSE(result.lanes.front().runs.front().stopped);
  EXPECT_TRUE(result.lanes.back().runs.back().stopped);
  EXPECT_EQ(result.lanes.front().compared(), 0U);
}

}  // namespace
}  // namespace reprise::llama::batch_decode_test
