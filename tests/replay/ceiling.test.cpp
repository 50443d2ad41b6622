// SPDX-License-Identifier: Apache-2.0
#include "replay/ceiling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "replay/cost_curve.hpp"
#include "replay/strategies.hpp"
#include "replay/trace.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::replay::ceiling_test {
namespace {

const CostCurve free_rows = CostCurve::parse("linear:0");

TraceSession session(std::vector<Token> prompt, std::vector<Token> output) {
  return {"s", "c", {{std::move(prompt), std::move(output)}}};
}

/// The same from its definition: tries every place to copy from, and every way to divide the output into passes.
double least_cost(const TraceSession& recorded, const CostCurve& curve, std::size_t max_nodes) {
  std::vector<Token> text;
  double sum = 0;
  for (const Turn& turn : recorded.turns) {
    text.insert(text.end(), turn.prompt.begin(), turn.prompt.end());
    const std::size_t first = text.size() + 1;
    text.insert(text.end(), turn.output.begin(), turn.output.end());
    if (turn.output.empty()) continue;
    std::vector<double> least(text.size() + 1, 0);
    for (std::size_t at = text.size(); at-- > first;) {
      std::size_t longest = 0;
      for (std::size_t from = 0; from < at; ++from) {
        std::size_t length = 0;
        while (at + length < text.size() && text[from + length] == text[at + length]) ++length;
        longest = std::max(longest, length);
      }
      longest = std::min({longest, max_nodes, text.size() - at - 1});
      least[at] = curve.cost({1, 1, at}) + least[at + 1];
      for (std::size_t k = 1; k <= longest; ++k)
        least[at] = std::min(least[at], curve.cost({1, k + 1, at}) + least[at + k + 1]);
    }
    if (first < text.size()) sum += least[first];
  }
  return sum;
}

TEST(Ceiling, CopiesAsFarAsTheRecordingAgrees) {
  const Counts counts = ceiling(session({1, 2, 3, 4}, {9, 1, 2, 3, 4, 7}), free_rows, 32);
  EXPECT_EQ(counts.tokens, 5U);
  EXPECT_EQ(counts.passes, 1U);  // 1 2 3 4 is copied, 7 is the bonus token
  EXPECT_EQ(counts.drafted, 4U);
  EXPECT_EQ(counts.accepted, 4U);
  EXPECT_EQ(ceiling(session({1, 2, 3, 4}, {9, 1, 2, 3, 4, 7}), free_rows, 2).passes, 2U);
  EXPECT_EQ(ceiling(session({1, 2, 3, 4}, {9, 5, 6, 7}), free_rows, 32).passes, 3U);  // nothing occurred before
  EXPECT_EQ(ceiling(session({1}, {5, 5, 5, 5, 5}), free_rows, 32).passes, 1U);        // a copy that overlaps itself
}

TEST(Ceiling, IsTheLeastCostOfAllWays) {
  testing::Random random(3);
  for (std::size_t round = 0; round < 300; ++round) {
    const auto text = [&](std::size_t size) {
      std::vector<Token> tokens;
      while (tokens.size() < size) tokens.push_back(static_cast<Token>(random.below(1 + round % 5)));
      return tokens;
    };
    TraceSession recorded = session(text(random.below(12)), text(random.below(20)));
    recorded.turns.push_back({text(random.below(5)), text(random.below(20))});
    for (const char* spec : {"linear:0", "linear:0.1", "linear:0.6"}) {
      const CostCurve curve = CostCurve::parse(spec);
      const std::size_t most = 1 + random.below(8);
      const Counts counts = ceiling(recorded, curve, most);
      ASSERT_NEAR(counts.charges.front().cost, least_cost(recorded, curve, most), 1e-9) << round << ' ' << spec;
      ASSERT_EQ(counts.tokens, counts.passes + counts.accepted);
    }
  }
}

TEST(Ceiling, NoStrategyIsAbove) {
  const Trace trace = read_trace(REPRISE_SOURCE_DIR "/bench/traces/code-edit.jsonl", 3);
  for (const char* spec : {"ngram", "hf", "vllm"}) {
    const StrategyRun run = make_runs(spec).front();
    for (const ControlKind kind : {ControlKind::all, ControlKind::hindsight}) {
      const ReplaySetup setup = {{kind, 0}, std::span(&free_rows, 1), {}, run.calibrated()};
      for (const TraceSession& recorded : trace.sessions)
        EXPECT_LE(ceiling(recorded, free_rows, 32).passes, replay_session(recorded, run.strategy, setup).passes);
    }
  }
}

}  // namespace
}  // namespace reprise::replay::ceiling_test
