// SPDX-License-Identifier: Apache-2.0
#include "flips.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "common/json.hpp"
#include "llama/fake_passes.hpp"
#include "reprise_testing/random.hpp"
#include "support/refusal.hpp"

namespace reprise::llama::flips_test {
namespace {

using ::testing::HasSubstr;

/// Fills logits that depend on the tokens alone.
void plain_answer(TokenSpan tokens, std::vector<float>& logits) {
  std::uint64_t hash = 0;
  for (const Token token : tokens) hash = testing::mix(hash + static_cast<std::uint64_t>(token));
  for (float& logit : logits) logit = static_cast<float>((hash = testing::mix(hash)) % 1000) / 100;
}
std::size_t likeliest(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class Flips : public ::testing::Test {
 protected:
  Flips() {
    engine.answer = [](TokenSpan tokens, std::size_t, std::vector<float>& logits) { plain_answer(tokens, logits); };
    testing::Random random(1);
    for (const char* id : {"a", "b"}) {
      replay::TraceSession session{id, "test", {}, std::string("t.jsonl:") + (*id == 'a' ? "1" : "2")};
      for (const std::size_t output : {37U, 64U, 0U, 1U}) {
        replay::Turn& turn = session.turns.emplace_back();
        for (std::size_t i = 0; i < 9; ++i) turn.prompt.push_back(static_cast<Token>(random.below(32)));
        for (std::size_t i = 0; i < output; ++i) turn.output.push_back(static_cast<Token>(random.below(32)));
      }
      sessions.push_back(session);
    }
  }
  std::vector<WidthFlips> measure() {
    auto widths = measure_flips(engine, sessions, settings, progress);
    EXPECT_EQ(engine.faults, 0U);
    EXPECT_TRUE(engine.cache.empty());
    return widths;
  }
  std::string refused() {
    return testing::refusal([&] { return measure(); });
  }

  FakePasses engine;
  FlipSettings settings;
  std::vector<replay::TraceSession> sessions;
  tools::Progress progress{nullptr, 80};
};

TEST_F(Flips, AnEngineWhoseAnswersDependOnTheTokensAloneHasNone) {
  const auto widths = measure();
  ASSERT_EQ(widths.size(), 8U);
  for (const WidthFlips& width : widths) {
    EXPECT_EQ(width.positions, 2 * (37 + 64 + 1U)) << width.rows;
    EXPECT_EQ(width.compared, width.positions);
    EXPECT_EQ(width.flips, 0U);
    EXPECT_EQ(width.unlike_before, 0U);
    EXPECT_EQ(width.largest_difference, 0);
  }
}

TEST_F(Flips, AreThoseOfTheWidthThatHasThem) {
  // At every position divisible by 7, passes of 4 rows prefer the second best token.
  std::size_t expected = 0;
  for (const replay::TraceSession& session : sessions) {
    std::size_t size = 0;
    for (const replay::Turn& turn : session.turns) {
      size += turn.prompt.size();
      for (std::size_t i = 0; i < turn.output.size(); ++i) expected += (size + i) % 7 == 0 ? 1U : 0U;
      size += turn.output.size();
    }
  }
  engine.answer = [](TokenSpan tokens, std::size_t rows, std::vector<float>& logits) {
    plain_answer(tokens, logits);
    const std::size_t best = likeliest(logits);
    for (float& logit : logits) logit = std::min(logit, 9.5F);
    logits[best] = 10;
    logits[(best + 1) % logits.size()] = rows == 4 && tokens.size() % 7 == 0 ? 10.25F : 9.75F;
  };
  for (const WidthFlips& width : measure()) {
    EXPECT_EQ(width.flips, width.rows == 4 ? expected : 0) << width.rows;
    EXPECT_EQ(width.margins, std::vector<float>(width.flips, 0.25F));
    EXPECT_EQ(width.largest_difference, width.rows == 4 ? 0.5F : 0.0F);
    EXPECT_EQ(width.unlike_before, 0U);
  }
}

TEST_F(Flips, EveryPassOfAWidthHasThatManyRows) {
  settings.widths = {5, 5, 32};
  settings.repeat = false;
  EXPECT_EQ(measure().size(), 3U);
  const std::size_t ones = std::size_t{4} * (37 + 64 + 1);  // both times
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(engine.widths, 1U)), ones);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(engine.widths, 5U)), 2 * (8 + 13 + 1U));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(engine.widths, 32U)), 2 * (2 + 2 + 1U));
  EXPECT_EQ(engine.widths.size(), ones + 54);
  engine.widths.clear();
  settings.repeat = true;
  measure();
  EXPECT_EQ(engine.widths.size(), ones + 108);
}

TEST_F(Flips, AnEngineThatAnswersDifferentlyNextTimeIsFoundOut) {
  std::size_t call = 0;
  engine.answer = [&](TokenSpan tokens, std::size_t rows, std::vector<float>& logits) {
    plain_answer(tokens, logits);
    if (rows == 8 || rows == 1) logits[3] -= static_cast<float>(testing::mix(++call) % 2) * 1e-3F;
  };
  for (const WidthFlips& width : measure())
    EXPECT_EQ(width.unlike_before != 0, width.rows == 8 || width.rows == 1) << width.rows;
}

TEST_F(Flips, PositionsEndIt) {
  settings.positions = 50;
  EXPECT_EQ(measure().front().positions, 37U + 64);
}

TEST_F(Flips, WhatCannotBeRunIsRefused) {
  settings.widths = {0};
  EXPECT_THAT(refused(), HasSubstr("passes of 0 rows"));
  settings.widths = {513};
  EXPECT_THAT(refused(), HasSubstr("1 to 512"));
  settings = {};
  engine.size = 4 * 9 + 37 + 64 + 1 + 31;
  EXPECT_THAT(refused(), HasSubstr("t.jsonl:1: session a needs a context of 170 tokens, and there are 169"));
  ++engine.size;
  EXPECT_EQ(refused(), "accepted");
  sessions[1].turns[0].output[3] = 32;
  EXPECT_THAT(refused(), HasSubstr("t.jsonl:2: turns[0].output[3]: token 32 is not in this model's vocabulary of 32"));
  for (replay::TraceSession& session : sessions)
    for (replay::Turn& turn : session.turns) turn.output.clear();
  EXPECT_THAT(refused(), HasSubstr("nothing to count"));
  sessions.clear();
  EXPECT_THAT(refused(), HasSubstr("nothing to count"));
}

TEST(FlipRates, HaveWilsonsInterval) {
  const Rate none = per_10000(0, 10000);
  EXPECT_EQ(none.rate, 0);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 3.840, 1e-3);
  const Rate some = per_10000(10, 20000);
  EXPECT_NEAR(some.rate, 5, 1e-9);
  EXPECT_NEAR(some.low, 2.716, 1e-3);
  EXPECT_NEAR(some.high, 9.202, 1e-3);
  EXPECT_EQ(per_10000(7, 7).high, 10000);
  EXPECT_EQ(per_10000(0, 0).high, 10000);
}

TEST_F(Flips, AreATableAndAnObject) {
  std::vector<WidthFlips> widths(2);
  widths[0].positions = widths[1].positions = widths[1].compared = 20000;
  widths[0].compared = 5;
  widths[1].rows = 4;
  widths[1].flips = 2;
  widths[1].margins = {0.25F, 0.75F};
  widths[1].largest_difference = 2;
  std::ostringstream table;
  write_flips_table(table, widths);
  EXPECT_THAT(table.str(),
              HasSubstr("   4      2        1.00     0.27     3.65       0.500000        0.750000            "
                        "2.000000                0\n"));
  EXPECT_THAT(table.str(), HasSubstr("at the first 5 positions"));
  std::ostringstream text;
  write_flips_json(text, widths, "a \"model\"", "l", 1);
  tools::Json json;
  ASSERT_FALSE(tools::parse_json(text.str(), json)) << text.str();
  EXPECT_EQ(*json.find("model")->string(), "a \"model\"");
  const tools::Json& width = json.find("widths")->array()->at(1);
  EXPECT_EQ(width.find("flips")->number()->integer, 2);
  EXPECT_EQ(width.find("median_margin")->number()->value, 0.5);
  EXPECT_EQ(width.find("per_10000")->find("rate")->number()->value, 1);
}

}  // namespace
}  // namespace reprise::llama::flips_test
