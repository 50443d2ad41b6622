// SPDX-License-Identifier: Apache-2.0
#include "groups/groups.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "groups/tool.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::groups::groups_test {
namespace {

namespace fs = std::filesystem;

/// Prompts with answers that share phrases with each other, but not within themselves.
replay::Trace trace(std::size_t prompts, std::size_t answers) {
  replay::Trace made;
  testing::Random random(1);
  for (std::size_t prompt = 0; prompt < prompts; ++prompt) {
    const auto first = static_cast<Token>(10'000 * (prompt + 1));
    for (std::size_t answer = 0; answer < answers; ++answer) {
      replay::Turn turn{{first, first + 1, first + 2, first + 3, first + 4}, {}};
      const std::size_t length = 200 + random.below(100);
      for (auto phrase = static_cast<Token>(random.below(10)); turn.output.size() < length; phrase += 1)
        for (Token i = 0; i < 12; ++i) turn.output.push_back(first + 100 + 12 * ((7 * phrase) % 50) + i);
      std::string id = "p";
      id += std::to_string(prompt) + "/" + std::to_string(answer);
      made.sessions.push_back({std::move(id), "test", {std::move(turn)}});
    }
  }
  return made;
}

struct Runs {
  explicit Runs(std::size_t prompts = 3, std::size_t answers = 4)
      : traces{trace(prompts, answers)}, groups(groups_of(traces, answers)) {}
  Counts operator()(Order order, Sharing sharing, double least_remaining = 0) const {
    return run(groups, {.answers = groups[0].size(),
                        .order = order,
                        .sharing = sharing,
                        .curve = &curve,
                        .least_remaining = least_remaining});
  }
  std::vector<replay::Trace> traces;
  std::vector<Group> groups;
  replay::CostCurve curve = replay::CostCurve::parse("linear:0.02");
};

TEST(Groups, AreConsecutiveSessionsWithTheSamePrompt) {
  std::vector<replay::Trace> traces = {trace(2, 5)};
  traces[0].sessions[1].turns.push_back({{1}, {2, 3}});  // a conversation
  traces[0].sessions[2].turns[0].output.resize(1);       // nothing to draft
  std::vector<std::size_t> sizes;
  for (const Group& group : groups_of(traces, 4)) sizes.push_back(group.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 4, 1}));
}

TEST(Groups, WithoutDraftsTheTimeIsThatOfTheLongestAnswers) {
  const Runs runs;
  std::size_t longest = 0;
  std::size_t tokens = 0;
  for (const Group& group : runs.groups) {
    std::size_t most = 0;
    for (const auto* answer : group) {
      most = std::max(most, answer->turns[0].output.size() - 1);
      tokens += answer->turns[0].output.size() - 1;
    }
    longest += most;
  }
  const Counts batch = runs(Order::batch, Sharing::plain);
  EXPECT_EQ(batch.passes, longest);
  EXPECT_EQ(batch.tokens, tokens);
  EXPECT_NEAR(batch.cost, 0.98 * static_cast<double>(longest) + 0.02 * static_cast<double>(tokens), 1e-6);
  const Counts single = runs(Order::single, Sharing::plain);
  EXPECT_EQ(single.passes, tokens);
  EXPECT_NEAR(single.cost, static_cast<double>(tokens), 1e-6);
  EXPECT_LT(runs(Order::stream, Sharing::plain).passes, longest) << "no place waits for the others";
}

TEST(Groups, EachKindOfSharingAddsToTheOneBefore) {
  const Runs runs;
  for (const Order order : {Order::batch, Order::stream}) {
    const double none = runs(order, Sharing::none).cost;
    EXPECT_GT(none, 1.02 * runs(order, Sharing::running).cost);
    EXPECT_GT(runs(order, Sharing::ended).cost, 1.02 * runs(order, Sharing::running).cost);
  }
  EXPECT_GT(runs(Order::single, Sharing::none).cost, 1.2 * runs(Order::single, Sharing::ended).cost);
}

TEST(Groups, EveryMethodDecodesAllTokens) {
  const Runs runs;
  const std::uint64_t tokens = runs(Order::single, Sharing::plain).tokens;
  for (const Order order : {Order::single, Order::batch, Order::stream})
    for (const Sharing sharing : {Sharing::plain, Sharing::none, Sharing::ended, Sharing::running})
      EXPECT_EQ(runs(order, sharing).tokens, tokens);
}

TEST(Groups, ShortAnswersDraftLessIfOnlyTheLongestMay) {
  const Runs runs;
  EXPECT_LT(runs(Order::batch, Sharing::running, 0.9).drafted, runs(Order::batch, Sharing::running).drafted);
}

// ---- the tool ----------------------------------------------------------------------------------------------------

TEST(GroupsTool, DrawsATableThatDoesNotDependOnThreads) {
  const auto table = [](const std::string& threads) {
    const fs::path bench = fs::path(REPRISE_SOURCE_DIR) / "bench";
    const std::vector<std::string> arguments = {threads, (bench / "groups" / "t-0.7.jsonl").generic_string()};
    std::ostringstream out;
    std::ostringstream error;
    EXPECT_EQ(run_tool(arguments, {out, error, {bench / "profiles"}}), exit_done) << error.str();
    return out.str();
  };
  const std::string one = table("--threads=1");
  EXPECT_NE(one.find("stream  all"), std::string::npos) << one;
  EXPECT_EQ(table("--threads=2"), one);
}

}  // namespace
}  // namespace reprise::groups::groups_test
