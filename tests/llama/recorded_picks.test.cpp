// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "charged_verifier.hpp"
#include "engine.hpp"
#include "generate.hpp"
#include "llama/stand_in_test.hpp"
#include "peers/published_token_recycling_drafter.hpp"
#include "peers/racer_drafter.hpp"
#include "recorded_verifier.hpp"
#include "support/llama_stand_in/small_context.hpp"

// --picks recorded: the committed tokens are those of a trace.
namespace reprise::llama::recorded_picks_test {
namespace {

using llama_stand_in::ModelText;
using llama_stand_in::SmallContext;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using Tokens = std::vector<Token>;

const Tokens question = {5, 14, 15, 9, 26, 5};

/// A verifier over a stand-in, with the prompt in its cache.
class PickTest : public ::testing::Test {
 protected:
  static ChargedVerifier verifier(const SmallContext& context) {
    LlamaOptions options;
    options.leaves = 4;
    auto made = LlamaVerifier::make(context.get(), options);
    EXPECT_TRUE(made) << made.error().message;
    EXPECT_TRUE(made->prefill(TokenSpan(question).first(question.size() - 1)));
    return {std::move(*made), nullptr};
  }
  /// The likeliest token of the model after a row.
  static Token own(ChargedVerifier& verifier, std::size_t row) { return argmax(verifier.logits(row)); }
};

TEST_F(PickTest, FollowTheRecordingOnItsPathAndTheModelElsewhere) {
  const SmallContext context;
  ChargedVerifier model = verifier(context);
  const Tokens answer = {40, 41, 42, 43, 44, 45};
  RecordedVerifier recorded(model, answer, question.size());
  // 40 -> (41 -> 42, 46); 47 -> 41
  const Tokens batch = {5, 40, 47, 41, 46, 41, 42};
  const std::vector<NodeIndex> parents = {-1, -1, 0, 0, 1, 2};
  auto picks = recorded.verify_tree(batch, 6, parents);
  ASSERT_TRUE(picks);
  ASSERT_EQ(picks->size(), 7U);
  const auto all = [&] {
    Tokens read;
    for (std::size_t i = 0; i < picks->size(); ++i) read.push_back((*picks)[i]);
    return read;
  };
  EXPECT_THAT(all(), ElementsAreArray({40, 41, own(model, 2), 42, own(model, 4), own(model, 5), 43}));
  EXPECT_EQ(recorded.top_k(3)[0], own(model, 3)) << "rows are those of the model";
  EXPECT_NE(recorded.top_k(3)[0], 42) << "the recording differs from the model, or this test shows nothing";
  ASSERT_TRUE(recorded.commit_rows(std::vector<std::size_t>{0, 1, 3, 6}));

  // Two pending tokens: the second pass begins later in the answer and ends after its end.
  const Tokens chain = {43, 44, 45, 46};
  picks = recorded.verify(chain, 3);
  ASSERT_TRUE(picks);
  EXPECT_THAT(all(), ElementsAreArray({44, 45, own(model, 2), own(model, 3)}));
}

TEST_F(PickTest, CountPendingTokens) {
  const SmallContext context;
  ChargedVerifier model = verifier(context);
  const Tokens answer = {40, 41, 42, 43};
  RecordedVerifier recorded(model, answer, question.size());
  const Tokens batch = {5, 40, 41, 42, 46};  // three of them pending
  const auto picks = recorded.verify(batch, 2);
  ASSERT_TRUE(picks);
  EXPECT_EQ((*picks)[0], 42);
  EXPECT_EQ((*picks)[1], 43);
  EXPECT_EQ((*picks)[2], own(model, 2));
}

/// Sessions with made-up answers, which the model would not give.
class RecordedSessions : public StandInTest {
 protected:
  [[nodiscard]] Engine engine(const std::string& kind, std::size_t leaves) const {
    ModelText text;
    text.kind = kind;
    text.eos = 0;
    EngineOptions options;
    options.model = write("model.gguf", text.text());
    options.context = 512;
    options.sequences = static_cast<std::uint32_t>(leaves);
    return Engine::load(options);
  }
  /// Three turns; answers repeat themselves in part, and the second one has end tokens in its middle and at its end.
  static Request request() {
    std::mt19937 random(7);
    Request request{"s", "c", "t:1", {}, true, {}};
    for (std::size_t turn = 0; turn < 3; ++turn) {
      Tokens said = {40, 41, 42};
      Tokens answer;
      for (std::size_t i = 0; i < 40; ++i) answer.push_back(static_cast<Token>(30 + random() % 6));
      if (turn == 1) answer[7] = answer.back() = 1;
      request.turns.push_back({{}, std::move(said), answer.size(), answer});
    }
    return request;
  }
  static Settings settings(std::size_t leaves) {
    Settings settings;
    settings.leaves = leaves;
    settings.picks = PickSource::recorded;
    return settings;
  }
  /// A trace of `sessions` sessions of 60 tokens.
  [[nodiscard]] std::string trace(int sessions) const {
    std::ostringstream text;
    for (int s = 0; s < sessions; ++s) {
      text << R"({"id": "s)" << s << R"(", "category": "c", "turns": [{"prompt": [40, 41, 42, 40], "output": [)";
      for (int i = 0; i < 60; ++i) text << (i > 0 ? ", " : "") << 40 + (i * i + s) % 7 + i % (s + 2);
      text << "]}]}\n";
    }
    return write("t.jsonl", text.str());
  }
};

TEST_F(RecordedSessions, CommitTheRecordedAnswersWithEveryStrategy) {
  for (const auto& [kind, leaves] : {std::pair("attention", 64), {"attention", 1}, {"recurrent", 1}}) {
    Engine engine = this->engine(kind, static_cast<std::size_t>(leaves));
    ASSERT_TRUE(engine.ends(1));
    const std::vector<std::string> specs = {"none", "ngram", "hf", "token-recycling", "racer", "hostile"};
    for (Drafting& drafting : make_draftings(specs)) {
      const Request request = this->request();
      const RequestRun run = run_request(engine, request, drafting, settings(static_cast<std::size_t>(leaves)));
      ASSERT_EQ(run.turns.size(), request.turns.size());
      std::uint64_t accepted = 0;
      for (std::size_t i = 0; i < run.turns.size(); ++i) {
        EXPECT_EQ(run.turns[i].output, request.turns[i].recorded) << kind << leaves << " " << drafting.spec << " " << i;
        accepted += run.turns[i].statistics.tokens - run.turns[i].statistics.passes;
      }
      if (drafting.spec == "hf") {
        EXPECT_GT(accepted, 0U) << kind;
      }
    }
  }
}

TEST_F(RecordedSessions, ShowThePromptToRacerAndToOthersIfAsked) {
  Engine engine = this->engine("attention", 64);
  Request request{"s", "c", "t:1", {}, true, {{{}, {40, 41, 42, 43}, 1, {50}}, {{}, {60, 61, 62}, 1, {51}}}};
  const std::vector<std::string> specs = {"racer", "token-recycling"};
  std::vector<Drafting> draftings = make_draftings(specs, nullptr, replay::Kept::past);
  for (Drafting& drafting : draftings) run_request(engine, request, drafting, settings(64));
  const auto* racer = draftings[0].past->strategy->get<peers::RacerDrafter>();
  const auto* recycling = draftings[1].past->strategy->get<peers::PublishedTokenRecyclingDrafter>();
  ASSERT_TRUE(racer != nullptr && recycling != nullptr);

  auto verifier = LlamaVerifier::make(engine.context(), {});
  ASSERT_TRUE(verifier);
  engine.clear();
  const Tokens text = {40, 41, 42, 43, 50, 60, 61, 62};  // of 43 and 62 the first passes show the rows
  ASSERT_TRUE(verifier->verify(text, text.size() - 1));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const TokenSpan row = verifier->top_k(i);
    EXPECT_THAT(racer->top_k(text[i]), ElementsAreArray(row.begin(), row.end())) << text[i];
    const bool anchor = text[i] == 43 || text[i] == 62;
    EXPECT_EQ(recycling->top_k(text[i])[0] != 0, anchor) << text[i];
  }

  // Drafts show rows after the same tokens, too, but with other text before them.
  const Ranking first(verifier->top_k(1));
  const Ranking second(verifier->top_k(6));
  const std::vector<std::string> ngram = {"ngram"};
  for (const bool shown : {false, true}) {
    std::vector<Drafting> one = make_draftings(ngram, nullptr, replay::Kept::past);
    Settings asked = settings(64);
    asked.prompt_rows = shown;
    run_request(engine, request, one.front(), asked);
    EXPECT_EQ(one.front().past->memory->options().next_tokens->after(40, 41).ranking() == first, shown);
    EXPECT_EQ(one.front().past->memory->options().next_tokens->after(60, 61).ranking() == second, shown)
        << "the second turn";
  }
}

TEST_F(RecordedSessions, CompareUnderAnyRounding) {
  llama_stand_in::settings().row_count_noise = 0.5F;
  const auto with = [&](const std::string& option, const std::string& value) {
    return Arguments{"--trace",    trace(1),          "--leaves", "64",       "--strategy", "hostile", "--compare",
                     "--strategy", "token-recycling", "--cost",   "linear:0", option,       value};
  };
  EXPECT_EQ(run(with("--epsilon", "0")), exit_wrong) << "the texts differ, or this test shows nothing";
  const tools::Json json = this->json(with("--picks", "recorded"));
  EXPECT_EQ(*json.find("picks")->string(), "recorded");
  EXPECT_THAT(*json.find("checked")->string(), HasSubstr("the recorded tokens count as the model's picks"));
  for (const tools::Json& strategy : *json.find("strategies")->array())
    EXPECT_EQ(strategy.find("total")->find("tokens")->number()->integer, 60);
  EXPECT_EQ(run(with("--picks", "recorded")), exit_done);
  EXPECT_THAT(out(), HasSubstr(", picks recorded, "));
}

TEST_F(RecordedSessions, CostAsMuchAsTheirReplay) {
  const tools::Json json =
      this->json({"--trace", trace(3), "--compare", "--picks", "recorded", "--strategy", "copy", "--strategy", "hf",
                  "--leaves", "8", "--cost", "linear:0.05", "--cost-model", "linear:0.05"});
  for (const tools::Json& strategy : *json.find("strategies")->array())
    for (const tools::Json& session : *strategy.find("sessions")->array())
      EXPECT_DOUBLE_EQ(session.find("with")->find("speedup_under_cost")->number()->value,
                       session.find("predicted")->find("speedup")->number()->value);
}

}  // namespace
}  // namespace reprise::llama::recorded_picks_test
