// SPDX-License-Identifier: Apache-2.0
#include "server/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "reprise_testing/random.hpp"
#include "server/options.hpp"
#include "server/tool.hpp"
#include "support/folder_test.hpp"

namespace reprise::server::server_test {
namespace {

namespace fs = std::filesystem;

/// Sessions of two turns that often repeat themselves.
std::vector<replay::TraceSession> sessions(std::size_t count) {
  std::vector<replay::TraceSession> made;
  testing::Random random(1);
  for (std::size_t i = 0; i < count; ++i) {
    std::string id = "s";
    id += std::to_string(i);
    replay::TraceSession session{std::move(id), "test", {}};
    std::vector<Token> phrase;
    for (int j = 0; j < 12; ++j) phrase.push_back(static_cast<Token>(random.below(50)));
    for (int turn = 0; turn < 2; ++turn) {
      std::vector<Token> output;
      for (int j = 0; j < 4; ++j) {
        output.insert(output.end(), phrase.begin(), phrase.end());
        output.push_back(static_cast<Token>(random.below(50)));
      }
      session.turns.push_back({{1, 2, 3}, std::move(output)});
    }
    made.push_back(std::move(session));
  }
  return made;
}

ServerCounts run(std::size_t sequences, Method method, const std::string& curve = "linear:0.01", bool learned = false) {
  const auto made = sessions(40);
  std::vector<const replay::TraceSession*> queue;
  for (const auto& session : made) queue.push_back(&session);
  const auto parsed = replay::CostCurve::parse(curve);
  return serve(queue, {.sequences = sequences, .method = method, .curve = &parsed, .learned = learned});
}

constexpr Method none{Method::Kind::none, 0};
constexpr Method four{Method::Kind::fixed, 4};
constexpr Method planner{Method::Kind::planner, 0};

TEST(Server, WithoutDraftsEverySequenceGetsATokenInEachPass) {
  const ServerCounts counts = run(8, none);
  EXPECT_EQ(counts.fault, "");
  EXPECT_EQ(counts.sessions, 40U);
  EXPECT_EQ(counts.tokens, 8 * counts.passes);
  EXPECT_EQ(counts.drafted, 0U);
  EXPECT_NEAR(counts.cost, 1.07 * static_cast<double>(counts.passes), 1e-6) << "a pass of 8 rows";
}

TEST(Server, FixedDraftsAreAsLongAsAsked) {
  const ServerCounts counts = run(8, four);
  EXPECT_EQ(counts.fault, "");
  EXPECT_GT(counts.accepted, 0U);
  EXPECT_LE(counts.drafted, 4 * 8 * counts.passes);
  EXPECT_GT(counts.tokens, 8 * counts.passes);
  EXPECT_LE(counts.tokens, 8 * counts.passes + counts.accepted) << "a turn may end with an accepted token";
}

TEST(Server, ThePlannerIsBelowNeitherAtAnyLoad) {
  for (const std::string curve : {"linear:0", "linear:0.02", "linear:1"})
    for (const std::size_t sequences : {1U, 3U, 8U, 20U}) {
      const double planned = run(sequences, planner, curve).throughput();
      EXPECT_GE(planned, run(sequences, none, curve).throughput() * 0.999) << curve << " " << sequences;
      EXPECT_GE(planned, run(sequences, four, curve).throughput() * 0.999) << curve << " " << sequences;
    }
}

TEST(Server, ThePlannerCanLearnTheCurve) {
  const ServerCounts told = run(4, planner);
  const ServerCounts learned = run(4, planner, "linear:0.01", true);
  EXPECT_NE(told.drafted, learned.drafted) << "the setting has an effect";
  EXPECT_GT(learned.throughput(), told.throughput() * 0.9);
}

// ---- the tool ----------------------------------------------------------------------------------------------------

struct Answer {
  int status = 0;
  std::string out;
  std::string error;
};
Answer tool(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream error;
  const fs::path bench = fs::path(REPRISE_SOURCE_DIR) / "bench";
  const int status = run_tool(arguments, {out, error, {bench / "traces"}, {bench / "profiles"}, false});
  return {status, out.str(), error.str()};
}
std::string bundled(const std::string& name) {
  return (fs::path(REPRISE_SOURCE_DIR) / "bench" / "traces" / name).generic_string();
}

/// The output without the last column of the table, which has planning times.
std::string untimed(const std::string& out) {
  std::istringstream lines(out);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    kept += line.substr(0, line.find_last_not_of(' ', line.rfind(' ')) + 1) + "\n";
  return kept;
}

TEST(ServerTool, DrawsATableThatDoesNotDependOnThreads) {
  const Answer answer = tool({"--sequences", "1,16", bundled("chat.jsonl")});
  EXPECT_EQ(answer.status, exit_done) << answer.error;
  EXPECT_EQ(untimed(tool({"--threads=2", "--sequences", "1,16", bundled("chat.jsonl")}).out), untimed(answer.out));
}

TEST(ServerTool, EachSettingHasAnEffect) {
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--sequences=4", "--fixed=2", bundled("chat.jsonl")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return untimed(tool(arguments).out);
  };
  const std::string usual = with({});
  for (const char* option :
       {"--curve=linear:0.1", "--curve-known=learned", "--max-nodes=3", "--shape=chain", "--seed=2"})
    EXPECT_NE(with({option}), usual) << option;
  EXPECT_NE(with({"--curve-known=learned", "--noise=0.1"}), with({"--curve-known=learned"}));
}

}  // namespace
}  // namespace reprise::server::server_test
