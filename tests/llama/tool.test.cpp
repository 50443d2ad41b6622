// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "generate.hpp"
#include "inputs.hpp"
#include "llama/stand_in_test.hpp"
#include "replay/past.hpp"
#include "replay/replay_settings.hpp"
#include "replay/trace.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"

namespace reprise::llama::llama_tool_test {
namespace {

namespace fs = std::filesystem;
using llama_stand_in::Fault;
using llama_stand_in::ModelText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LlamaTool : public StandInTest {
 protected:
  std::string model(const ModelText& text) const { return write("other.gguf", text.text()); }
  std::string prompts() const {
    return write("p.jsonl",
                 "{\"id\": \"a\", \"category\": \"one\", \"turns\": [\"abcabcabc\", \"abc again\"]}\n\n"
                 "{\"id\": \"b\", \"category\": \"two\", \"system\": \"short\", \"turns\": [\"x y z\"]}\n");
  }
};

TEST_F(LlamaTool, WritesTheSameAnswerWhateverTheStrategy) {
  ASSERT_EQ(run({"--prompt", "abcabcabc", "--max-tokens", "40", "--strategy", "none"}), exit_done);
  const std::string plain = out();
  EXPECT_THAT(plain, Not(IsEmpty()));
  for (const char* strategy : {"ngram", "hf", "copy", "hostile"}) {
    ASSERT_EQ(run({"--prompt", "abcabcabc", "--max-tokens", "40", "--strategy", strategy}), exit_done) << error();
    EXPECT_EQ(out(), plain) << strategy;
    EXPECT_THAT(error(), HasSubstr("40 tokens in"));
  }
}

TEST_F(LlamaTool, DrawsTheSameAnswerWithTheSameSeedAndAnotherWithAnother) {
  const auto drawn = [&](const char* seed, const char* strategy) {
    EXPECT_EQ(run({"--prompt", "abcabc", "--max-tokens", "30", "--temperature", "1.5", "--seed", seed, "--strategy",
                   strategy}),
              exit_done);
    return out();
  };
  EXPECT_EQ(drawn("1", "none"), drawn("1", "hf"));
  EXPECT_NE(drawn("1", "none"), drawn("2", "none"));
}

TEST_F(LlamaTool, FollowsAGrammarWithDraftsAndWithout) {
  const std::string grammar = write("g.gbnf", "alternate even and odd");
  for (const char* temperature : {"0", "1.5"}) {
    const auto made = [&](const char* strategy, bool guided) {
      std::vector<std::string> arguments = {"--prompt",   "abcabcabc", "--max-tokens",  "40",
                                            "--strategy", strategy,    "--temperature", temperature};
      if (guided) arguments.insert(arguments.end(), {"--grammar", grammar});
      EXPECT_EQ(run(arguments), exit_done) << error();
      return out();
    };
    EXPECT_NE(made("none", true), made("none", false));
    for (const char* strategy : {"hf", "ngram", "hostile"}) EXPECT_EQ(made(strategy, true), made("none", true));
  }
  ASSERT_EQ(run({"--prompts", prompts(), "--max-tokens", "24", "--compare", "--strategy", "hf", "--grammar", grammar}),
            exit_done)
      << out() << error();
  EXPECT_THAT(out(), HasSubstr("verdict: identical"));
  for (const char* task : {"--compare", "--sequences=2"}) {
    ASSERT_EQ(run({"--prompts", prompts(), "--max-tokens", "24", task, "--grammar", grammar, "--format", "json"}),
              exit_done)
        << out() << error();
    EXPECT_THAT(out(), AllOf(HasSubstr(R"("verdict": "identical")"), HasSubstr(R"("grammar": true)"))) << task;
  }
}

TEST(Draftings, HaveTheSizeOfTheirMethod) {
  const std::vector<std::string> specs = {"ngram", "token-recycling", "racer"};
  std::vector<std::size_t> sizes;
  for (const Drafting& drafting : make_draftings(specs)) sizes.push_back(drafting.max_nodes);
  EXPECT_EQ(sizes, (std::vector<std::size_t>{32, 80, 63}));
}

/// The number that a field of the total of a strategy has.
double total(const tools::Json& json, std::size_t strategy, const char* field) {
  return (*json.find("strategies")->array())[strategy].find("total")->find(field)->number()->value;
}

TEST_F(LlamaTool, ComparesUnderAGivenCurveWhateverTheMachine) {
  const auto compared = [&](const char* cost) {
    return json({"--prompts", prompts(), "--max-tokens", "60", "--compare", "--leaves", "8", "--strategy", "ngram",
                 "--strategy", "hf", "--strategy", "none", "--cost", cost});
  };
  for (const double slope : {0.0, 0.25}) {
    const tools::Json json = compared(slope == 0 ? "linear:0" : "linear:0.25");
    for (std::size_t i = 0; i < 3; ++i) {
      const double mat = total(json, i, "mat");
      const double nodes = total(json, i, "nodes_per_pass");
      EXPECT_NEAR(total(json, i, "speedup_under_cost"), mat / (1 + slope * nodes), 1e-5) << slope << " " << i;
      EXPECT_EQ(nodes > 0, i < 2);
      EXPECT_NEAR(total(json, i, "passes") * mat, total(json, i, "tokens"), 1e-3);
      const tools::Json& strategy = (*json.find("strategies")->array())[i];
      EXPECT_EQ(strategy.find("categories")->array()->size(), 2U);
      double passes = 0;
      for (const tools::Json& category : *strategy.find("categories")->array())
        passes += category.find("passes")->number()->value;
      EXPECT_EQ(passes, total(json, i, "passes"));
    }
    EXPECT_EQ(total(json, 2, "speedup_under_cost"), 1);
  }
  const tools::Json learned = compared("learned");
  EXPECT_NE(learned.find("strategies")->array()->front().find("total")->find("speedup_under_cost"), nullptr);
  EXPECT_EQ(learned.find("strategies")->array()->front().find("total")->find("speedup_under_cost")->number(), nullptr);
  ASSERT_EQ(run({"--prompts", prompts(), "--max-tokens", "8", "--compare", "--cost", "linear:0.25"}), exit_done);
  EXPECT_THAT(out(), HasSubstr("--cost: tokens / summed cost of the passes under linear:0.25"));
  ASSERT_EQ(run({"--prompts", prompts(), "--max-tokens", "8", "--compare"}), exit_done);
  EXPECT_THAT(out(), Not(HasSubstr("summed cost")));
}

TEST_F(LlamaTool, LeavesThePastOfEachStrategyToTheNextSession) {
  const std::string twice = write("twice.jsonl",
                                  "{\"id\": \"a\", \"category\": \"c\", \"turns\": [\"abcabcabc\"]}\n"
                                  "{\"id\": \"b\", \"category\": \"c\", \"turns\": [\"abcabcabc\"]}\n");
  const auto passes = [&](const char* memory) {
    Arguments arguments = {"--prompts", twice,    "--max-tokens", "60",       "--compare", "--leaves",
                           "64",        "--cost", "linear:0",     "--memory", memory};
    for (const char* strategy : {"ngram", "token-recycling", "racer", "token-table", "hf"})
      arguments.insert(arguments.end(), {"--strategy", strategy});
    const tools::Json json = this->json(arguments);
    EXPECT_EQ(*json.find("memory")->string(), memory);
    std::vector<std::vector<double>> counts;
    for (const tools::Json& strategy : *json.find("strategies")->array()) {
      counts.emplace_back();
      for (const tools::Json& session : *strategy.find("sessions")->array())
        counts.back().push_back(1 / session.find("with")->find("mat")->number()->value);
    }
    return counts;
  };
  const auto cold = passes("session");
  const auto warm = passes("past");
  for (std::size_t i = 0; i < cold.size(); ++i) {
    EXPECT_EQ(cold[i][0], cold[i][1]) << i << ": the same session, and nothing is kept";
    EXPECT_EQ(cold[i][0], warm[i][0]) << i << ": the first session has no past";
    if (i < 4)
      EXPECT_LT(warm[i][1], cold[i][1]) << i;
    else
      EXPECT_EQ(warm[i], cold[i]) << "hf has no memory";
  }
}

/// Two sessions with the same text, the first in half a and the second in half b.
std::string halves() {
  std::string text;
  for (const replay::TracePart part : {replay::TracePart::a, replay::TracePart::b}) {
    char id = 'a';
    while (replay::part_of({&id, 1}) != part) ++id;
    text += std::string("{\"id\": \"") + id + "\", \"category\": \"c\", \"turns\": [\"abcabcabc\"]}\n";
  }
  return text;
}

/// The passes of each session of the first strategy of a comparison.
std::vector<double> session_passes(const tools::Json& json) {
  std::vector<double> passes;
  for (const tools::Json& session : *(*json.find("strategies")->array())[0].find("sessions")->array())
    passes.push_back(session.find("with")->find("statistics")->find("passes")->number()->value);
  return passes;
}

TEST_F(LlamaTool, FillsMemoriesWithOneHalfOfTheSessionsAndMeasuresTheOther) {
  const std::string sessions = write("halves.jsonl", halves());
  const auto passes = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"--prompts", sessions, "--max-tokens", "60", "--compare", "--cost", "linear:0", "--memory", "past"});
    return session_passes(json(more));
  };
  const auto both = passes({});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_LT(both[1], both[0]);
  EXPECT_EQ(passes({"--part", "b"}), std::vector<double>{both[0]}) << "the memory is empty";
  EXPECT_EQ(passes({"--part", "b", "--warm"}), std::vector<double>{both[1]});
  EXPECT_THAT(out(), HasSubstr("\"filled_with\": 1"));

  ASSERT_EQ(
      run({"--prompts", sessions, "--max-tokens", "20", "--compare", "--memory", "past", "--part", "a", "--warm"}),
      exit_done);
  EXPECT_THAT(out(), HasSubstr("memory past (filled with 1 session)"));
}

TEST_F(LlamaTool, SavesAMemoryThatAnotherRunStartsWith) {
  const std::string sessions = write("halves.jsonl", halves());
  const std::string saved = path("memory");
  const auto passes = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--prompts", sessions, "--max-tokens", "60", "--compare", "--cost", "linear:0.1",
                               "--leaves", "16", "--memory", "past"});
    return session_passes(json(more));
  };
  const auto warm = passes({"--part", "b", "--warm"});
  const auto cold = passes({"--part", "b"});
  passes({"--part", "a", "--snapshot-out", saved});
  EXPECT_EQ(passes({"--part", "b", "--snapshot-in", saved}), warm);
  EXPECT_LT(warm, cold);

  // One run without --compare continues the file of another.
  const auto size = fs::file_size(saved);
  ASSERT_EQ(run({"--prompt", "xyzzy", "--max-tokens", "9", "--memory", "past", "--snapshot-in", saved, "--snapshot-out",
                 saved}),
            exit_done)
      << error();
  EXPECT_GT(fs::file_size(saved), size);
}

TEST_F(LlamaTool, SavesAllPartsOfAMemory) {
  const std::string saved = path("memory");
  ASSERT_EQ(run({"--prompt", "abcabcabc", "--max-tokens", "60", "--memory", "past", "--snapshot-out", saved,
                 "--fingerprint", "7"}),
            exit_done)
      << error();
  const std::string text = read(saved);
  const auto reader = SnapshotReader::open(std::as_bytes(std::span(text)), 7);
  ASSERT_TRUE(reader);
  for (const SectionKind kind : {SectionKind::calibration, SectionKind::runs, SectionKind::next_tokens}) {
    const auto section = reader->section(kind);
    ASSERT_TRUE(section) << static_cast<unsigned>(kind);
    EXPECT_GT(section->left(), 24U);
  }
  replay::Past past;
  replay::give_room(past, std::size_t{1} << 20, replay::ReplaySettings().next_token_bytes);
  replay::load(past, {.bytes = std::as_bytes(std::span(text)), .fingerprint = 7});
  const NextTokens& next_tokens = *past.memory->options().next_tokens;
  std::size_t ranked = 0;
  for (Token last = 0; last < 256; ++last) ranked += next_tokens.after(last).ranking().empty() ? 0 : 1;
  EXPECT_GT(ranked, 0U) << "rankings are saved too";
}

TEST_F(LlamaTool, RunsRecurrentModelsAndFailsWhereTheirStateIsNotPutBack) {
  ModelText text;
  text.kind = "recurrent";
  const std::vector<std::string> arguments = {"--model",   model(text),  "--context",    "512",
                                              "--prompts", prompts(),    "--max-tokens", "60",
                                              "--compare", "--strategy", "hostile"};
  EXPECT_EQ(run_bare(arguments), exit_done) << out() << error();
  llama_stand_in::settings().fault = Fault::state_not_restored;
  EXPECT_EQ(run_bare(arguments), exit_failed) << out() << error();
  EXPECT_THAT(error(), HasSubstr("session a, turn 1: "));
}

TEST_F(LlamaTool, SaysThatTextsDifferAtNearTiesWhereRowCountsChangeLogits) {
  llama_stand_in::settings().row_count_noise = 0.5F;
  const auto compared = [&](const char* epsilon) {
    return run(
        {"--prompts", prompts(), "--max-tokens", "60", "--compare", "--strategy", "hostile", "--epsilon", epsilon});
  };
  EXPECT_EQ(compared("1.1"), exit_near_tie) << out() << error();
  EXPECT_THAT(out(), AllOf(HasSubstr("verdict: near tie"), HasSubstr("  near tie: ")));
  EXPECT_EQ(compared("0"), exit_wrong) << out();
  EXPECT_THAT(out(), AllOf(HasSubstr("verdict: wrong"), HasSubstr("  wrong: ")));
}

TEST_F(LlamaTool, GeneratesAsManyTokensAsATraceHas) {
  const std::string trace =
      write("t.jsonl",
            "\n{\"id\": \"s\", \"category\": \"c\", \"turns\": [{\"prompt\": [40, 41, 42, 40, 41], "
            "\"output\": [5, 6, 7]}, {\"prompt\": [40], \"output\": [8]}]}\n");
  ASSERT_EQ(run({"--trace", trace}), exit_done);
  EXPECT_THAT(error(), HasSubstr("4 tokens in"));
  Engine engine = Engine::load({.model = model_, .context = 512});
  Drafting drafting = no_drafting();
  Inputs inputs;
  inputs.traces = {trace};
  const RequestRun run = run_request(engine, read_requests(inputs).at(0), drafting, {});
  ASSERT_EQ(run.turns.size(), 2U);
  EXPECT_EQ(run.turns[0].output.size(), 3U);
  EXPECT_EQ(run.turns[1].output.size(), 1U);
  EXPECT_EQ(run.turns[1].kept, 8U);
}

TEST_F(LlamaTool, RecordsTheLikeliestTokensOfEachRow) {
  for (const char* kind : {"attention", "recurrent"}) {
    ModelText text;
    text.kind = kind;
    text.eos = 1;  // some turns end by themselves
    model_ = model(text);
    const auto record = [&](const char* name, const std::vector<std::string>& options) {
      std::vector<std::string> arguments = {"--prompts", prompts(),  "--max-tokens",
                                            "20",        "--record", (folder_ / (std::string(kind) + name)).string()};
      arguments.insert(arguments.end(), options.begin(), options.end());
      EXPECT_EQ(run(arguments), exit_done) << error();
      return replay::read_trace(arguments[5]).sessions;
    };
    const auto plain = record("plain", {});
    const auto ranked = record("ranked", {"--top-k", "8"});
    const auto all = record("all", {"--top-k=1000"});  // more than the vocabulary of 300
    ASSERT_EQ(ranked.size(), plain.size());
    for (std::size_t s = 0; s < plain.size(); ++s) {
      ASSERT_EQ(ranked[s].turns.size(), plain[s].turns.size());
      for (std::size_t t = 0; t < plain[s].turns.size(); ++t) {
        const replay::Turn& turn = ranked[s].turns[t];
        EXPECT_FALSE(plain[s].turns[t].top_k);
        EXPECT_EQ(turn.output, plain[s].turns[t].output);
        ASSERT_TRUE(turn.top_k);
        ASSERT_EQ(turn.top_k->size(), turn.output.size());
        for (std::size_t i = 0; i < turn.output.size(); ++i) {
          const TokenSpan row = (*turn.top_k)[i];
          ASSERT_EQ(row.size(), 8U);
          EXPECT_EQ(row[0], turn.output[i]) << "the likeliest token is the pick";
          const TokenSpan whole = (*all[s].turns[t].top_k)[i];
          ASSERT_EQ(whole.size(), 300U);
          EXPECT_TRUE(std::equal(row.begin(), row.end(), whole.begin()));
          EXPECT_EQ(std::set<Token>(whole.begin(), whole.end()).size(), 300U);
        }
      }
    }
  }
}

TEST_F(LlamaTool, CutsTheTopKRowsOfATurnThatIsShortened) {
  Engine engine = Engine::load({.model = model_, .context = 512});
  const Request request{"a", "c", "", "", true, {{"", {5, 6, 7}, 12, {}}, {"", {8}, 12, {}}}};
  Drafting drafting = no_drafting();
  Watch watch;
  watch.top_k = 3;
  watch.on_turn = [](const TurnRun&) { return std::size_t{5}; };
  const RequestRun run = run_request(engine, request, drafting, {}, watch);
  ASSERT_EQ(run.turns.size(), 2U);
  for (const TurnRun& turn : run.turns) {
    ASSERT_EQ(turn.output.size(), 5U);
    ASSERT_TRUE(turn.top_k);
    ASSERT_EQ(turn.top_k->size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ((*turn.top_k)[i][0], turn.output[i]);
  }
  EXPECT_FALSE(run_request(engine, request, drafting, {}).turns[0].top_k);
}

TEST_F(LlamaTool, SaysWhatTheEngineFailedAt) {
  llama_stand_in::settings().failing_decode = 4;
  EXPECT_EQ(run({"--prompt", "abc", "--max-tokens", "20"}), exit_failed);
  EXPECT_THAT(error(), AllOf(HasSubstr("session prompt, turn 1"), HasSubstr("llama_decode failed")));
}

}  // namespace
}  // namespace reprise::llama::llama_tool_test
