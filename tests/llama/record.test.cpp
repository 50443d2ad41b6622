// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include "common/input_error.hpp"
#include "common/json.hpp"
#include "support/folder_test.hpp"

namespace reprise::llama::record_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tokens = std::vector<Token>;

constexpr Token eos = 2;

/// Answers each turn of a session with the tokens of a script, as run_request() would.
class Script {
 public:
  std::map<std::string, std::vector<Tokens>> answers;
  std::size_t rewritten_turn = 1000;
  std::size_t fitting_turns = 1000;
  std::size_t runs = 0;
  std::size_t generated = 0;

  RequestRun operator()(const Request& request, const Watch& watch) {
    ++runs;
    RequestRun run;
    std::size_t context = 0;
    for (std::size_t i = 0; i < request.turns.size(); ++i) {
      if (i >= fitting_turns) {
        run.context_full = true;
        break;
      }
      TurnRun& turn = run.turns.emplace_back();
      turn.rewritten = i == rewritten_turn;
      turn.kept = turn.rewritten ? context / 2 : context;
      turn.prompt = request.turns[i].tokens;
      watch.on_prompt(turn);
      turn.finish = FinishReason::max_tokens;
      for (const Token token : answers.at(request.id).at(i)) {
        if (turn.output.size() == request.turns[i].max_tokens) break;
        turn.output.push_back(token);
        ++generated;
        if (token == eos) {
          turn.finish = FinishReason::eos;
          break;
        }
        if (watch.on_tokens(TokenSpan(turn.output).last(1))) continue;
        turn.finish = FinishReason::caller;
        break;
      }
      turn.output.resize(watch.on_turn(turn));
      context += turn.prompt.size() + turn.output.size();
    }
    return run;
  }
};

Request request(const std::string& id, const std::vector<Tokens>& prompts, std::size_t max_tokens) {
  Request request{id, "test", "prompts.jsonl:1", "", true, {}};
  for (const Tokens& prompt : prompts) request.turns.push_back({"", prompt, max_tokens});
  return request;
}

Tokens fresh(Token first, std::size_t count) {
  Tokens tokens(count);
  for (Token& token : tokens) token = first++;
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Recording : public testing::FolderTest {
 protected:
  RecordCounts run(const std::vector<Request>& requests) {
    TraceWriter writer = TraceWriter::open(path);
    return record(requests, writer, std::ref(script), progress);
  }
  std::vector<replay::TraceSession> sessions() const { return replay::read_trace(path).sessions; }
  /// Returns the "finish" of all turns of a line.
  std::vector<std::string> finishes(std::size_t line) const {
    std::ifstream in(path);
    std::string text;
    for (std::size_t i = 0; i <= line; ++i) std::getline(in, text);
    tools::Json json;
    EXPECT_FALSE(tools::parse_json(text, json));
    std::vector<std::string> all;
    for (const tools::Json& turn : *json.find("turns")->array()) all.push_back(*turn.find("finish")->string());
    return all;
  }

  const std::string path = FolderTest::path("t.jsonl");
  Script script;
  tools::Progress progress{nullptr, 80};
};

TEST_F(Recording, HasWhatWasPutInAndWhatCameOut) {
  script.answers["a"] = {{5, 6, eos, 7}, {8, 9, 10, 11}};
  const RecordCounts counts = run({request("a", {{1, 2}, {3}}, 3)});
  ASSERT_EQ(sessions().size(), 1U);
  const replay::TraceSession session = sessions()[0];
  EXPECT_EQ(session.id, "a");
  EXPECT_EQ(session.category, "test");
  ASSERT_EQ(session.turns.size(), 2U);
  EXPECT_THAT(session.turns[0].prompt, ElementsAre(1, 2));
  EXPECT_THAT(session.turns[0].output, ElementsAre(5, 6, eos));
  EXPECT_THAT(session.turns[1].prompt, ElementsAre(3));
  EXPECT_THAT(session.turns[1].output, ElementsAre(8, 9, 10));
  EXPECT_THAT(finishes(0), ElementsAre("eos", "length"));
  EXPECT_EQ(counts.tokens, 6U);
  EXPECT_THAT(counts.finishes, ElementsAre(1, 1, 0));
  EXPECT_THAT(counts.shortened, ElementsAre());
}

TEST_F(Recording, ALoopIsCutAndTheNextTurnFollowsWhatIsLeft) {
  const Tokens block = fresh(100, 60);
  script.answers["a"] = {fresh(10, 20) + block + block + block + block, {7, 8, 9}};
  script.answers["b"] = {{7, eos}};
  const RecordCounts counts = run({request("a", {{1}, {3}}, 1000), request("b", {{1}}, 1000)});
  ASSERT_EQ(sessions().size(), 2U);
  ASSERT_EQ(sessions()[0].turns.size(), 2U);
  EXPECT_EQ(sessions()[0].turns[0].output, fresh(10, 20) + block);
  EXPECT_THAT(sessions()[0].turns[1].output, ElementsAre(7, 8, 9));
  EXPECT_THAT(finishes(0), ElementsAre("loop", "length"));
  EXPECT_EQ(counts.cut, 20U + 48 + 2 * 60 - 80);
  EXPECT_THAT(counts.shortened, ElementsAre());
  EXPECT_THAT(finishes(1), ElementsAre("eos"));
}

TEST_F(Recording, ACopyOfTheContextIsNoLoop) {
  const Tokens block = fresh(100, 60);
  const Tokens file = block + fresh(300, 5) + block + fresh(400, 5) + block;
  // A copy of the prompt, and of an answer two turns before.
  script.answers["a"] = {file, {7}, file};
  run({request("a", {file, {1}, {3}}, 1000)});
  EXPECT_THAT(finishes(0), ElementsAre("length", "length", "length"));
}

TEST_F(Recording, GoesOnWhereItWasInterrupted) {
  script.answers = {{"a", {{5, eos}}}, {"b", {{6, eos}}}, {"c", {{7, eos}}}};
  const std::vector<Request> all = {request("a", {{1}}, 9), request("b", {{1}}, 9), request("c", {{1}}, 9)};
  run(all);
  const auto whole = sessions();
  EXPECT_EQ(run(all).skipped, 3U);
  EXPECT_EQ(script.runs, 3U);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
  const RecordCounts counts = run(all);
  EXPECT_EQ(counts.skipped, 2U);
  EXPECT_EQ(counts.sessions, 1U);
  EXPECT_EQ(script.runs, 4U);
  ASSERT_EQ(sessions().size(), 3U);
  EXPECT_EQ(sessions()[2].turns[0].output, whole[2].turns[0].output);
}

TEST_F(Recording, ATraceOnlyGrows) {
  script.answers = {{"a", {{5, eos}, {6, eos}, {7, eos}}}};
  script.rewritten_turn = 1;
  EXPECT_THAT(run({request("a", {{1}, {2}, {3}}, 9)}).shortened,
              ElementsAre(HasSubstr("after 1 of 3 turns: its chat template writes earlier turns differently")));
  EXPECT_EQ(sessions()[0].turns.size(), 1U);
}

TEST_F(Recording, TurnsThatDoNotFitAreLeftOut) {
  script.answers = {{"a", {{5, eos}, {6, eos}}}, {"b", {{5, eos}, {6, eos}}}};
  script.fitting_turns = 1;
  run({request("a", {{1}, {2}}, 9)});
  EXPECT_EQ(sessions()[0].turns.size(), 1U);
  script.fitting_turns = 0;
  const RecordCounts counts = run({request("b", {{1}, {2}}, 9)});
  EXPECT_EQ(counts.sessions, 0U);
  EXPECT_EQ(sessions().size(), 1U);
  EXPECT_THAT(counts.shortened, ElementsAre(HasSubstr("session b ends after 0 of 2 turns: the context is full")));
}

TEST_F(Recording, TheCountsAreALine) {
  std::ostringstream out;
  write_counts(out, {2, 1, 3, 40, {1, 1, 1}, 9, {"session a ends early"}});
  EXPECT_EQ(out.str(),
            "2 sessions, 3 turns and 40 tokens recorded; turns that ended by eos: 1, length: 1, loop: 1; 9 tokens of "
            "loops left out; sessions that were there already: 1\nsession a ends early\n");
}

}  // namespace
}  // namespace reprise::llama::record_test
