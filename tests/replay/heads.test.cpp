// SPDX-License-Identifier: Apache-2.0
#include "replay/heads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/replay_tool.hpp"
#include "reprise_testing/random.hpp"
#include "support/refusal.hpp"

namespace reprise::replay::heads_test {
namespace {

using Lengths = std::vector<std::uint8_t>;

/// A bundled trace with the accepted lengths of a head that does not exist: each of its tokens is right with
/// `percent`%, and its draft has at most ten tokens.
Trace with_head(const std::string& name, std::size_t percent, std::size_t sessions = 6) {
  Trace trace = read_trace(REPRISE_SOURCE_DIR "/bench/traces/" + name + ".jsonl", sessions);
  testing::Random random(7);
  for (TraceSession& session : trace.sessions)
    for (Turn& turn : session.turns) {
      Lengths& lengths = turn.head.emplace();
      for (std::size_t i = 0; i < turn.output.size(); ++i) {
        std::uint8_t right = 0;
        while (right < 10 && random.chance(percent)) ++right;
        lengths.push_back(right);
      }
    }
  return trace;
}

std::vector<HeadRow> replayed(const Trace& trace, const std::vector<double>& head_costs,
                              const std::vector<CostCurve>& curves, const ReplaySettings& settings = {},
                              std::size_t threads = 1, const std::string& strategy = "ngram") {
  const std::vector<StrategyRun> runs = make_runs(strategy);
  const Assignment assignment{{&trace, 1}, runs, {}, curves, settings, false, threads};
  tools::Progress progress(nullptr, 0);
  return replay_heads(assignment, head_costs, progress);
}
const std::vector<CostCurve> fiftieth = {CostCurve::parse("linear:0.02")};

TEST(Heads, CountsWhatCanBeWorkedOutByHand) {
  // The output repeats nothing, so no lookup drafts, and a head of three tokens is right twice. Its draft costs nothing
  // and its rows cost nothing, so it always drafts two tokens, the longest accepted draft.
  const Trace trace{"t", {{"s", "c", {{{1, 2}, {3, 4, 5, 6, 7, 8, 9}, {}, Lengths{0, 2, 0, 0, 2, 0, 0}}}}}};
  const HeadRow row = replayed(trace, {0.5}, {CostCurve::parse("linear:0")}).front();
  EXPECT_EQ(row[HeadWay::lookup].passes, 6U);
  EXPECT_DOUBLE_EQ(row[HeadWay::lookup].cost, 6);
  // Passes of the head alone: 4 5 and the model's 6; 7 8 and the model's 9.
  EXPECT_EQ(row[HeadWay::head].passes, 2U);
  EXPECT_EQ(row[HeadWay::head].head_passes, 2U);
  EXPECT_EQ(row[HeadWay::head].tokens, 6U);
  EXPECT_DOUBLE_EQ(row[HeadWay::head].cost, 2 + 2 * 0.5);
  EXPECT_EQ(row[HeadWay::hindsight].passes, 2U);
  EXPECT_DOUBLE_EQ(row[HeadWay::hindsight].speedup(), 2);
}

TEST(Heads, LeaveTheLookupAsItIsWithoutThem) {
  const Trace trace = with_head("code-edit", 60, 1);  // of several sessions, the control remembers the speed
  for (const bool trees : {false, true}) {
    ReplaySettings settings;
    settings.trees = trees;
    settings.top_k = false;  // beside a head, no rankings are shown
    const std::vector<StrategyRun> runs = make_runs("ngram");
    const std::vector<ControlSpec> controls = {{ControlKind::cost, 0}};
    tools::Progress progress(nullptr, 0);
    const Row usual = replay_all({{&trace, 1}, runs, controls, fiftieth, settings}, progress).front();
    const HeadSums lookup = replayed(trace, {0.1}, fiftieth, settings).front()[HeadWay::lookup];
    EXPECT_EQ(lookup.passes, usual.counts.passes);
    EXPECT_DOUBLE_EQ(lookup.cost, usual.charge().cost);
  }
}

TEST(Heads, GainMoreTogetherThanTheBetterOneAlone) {
  for (const bool trees : {false, true}) {
    ReplaySettings settings;
    settings.trees = trees;
    settings.kept = Kept::calibration;
    const Trace trace = with_head("chat", 60);
    for (const HeadRow& row : replayed(trace, {0.05, 0.3}, fiftieth, settings)) {
      const double alone = std::max(row[HeadWay::lookup].speedup(), row[HeadWay::head].speedup());
      EXPECT_GT(row[HeadWay::choice].speedup(), 1.05 * alone);
      EXPECT_GT(row[HeadWay::hindsight].speedup(), 1.1 * alone);
      EXPECT_EQ(row[HeadWay::tree].tokens, trees ? row[HeadWay::lookup].tokens : 0);
      if (trees) {
        EXPECT_GT(row[HeadWay::tree].speedup(), 0.99 * row[HeadWay::choice].speedup());
      }
      for (const HeadWay way : {HeadWay::head, HeadWay::choice, HeadWay::hindsight})
        EXPECT_EQ(row[way].tokens, row[HeadWay::lookup].tokens);
      EXPECT_EQ(row[HeadWay::lookup].head_passes, 0U);
    }
  }
}

TEST(Heads, CostLittleIfTheyAreNeverRight) {
  Trace trace = with_head("chat", 0, 20);
  trace.sessions[0].turns[0].head->back() = 10;  // a head of ten tokens
  for (const auto known : {CostKnown::told, CostKnown::carried}) {
    ReplaySettings settings;
    settings.cost_known = known;
    const HeadRow row = replayed(trace, {0.3}, fiftieth, settings).front();
    EXPECT_GT(row[HeadWay::tree].speedup(), 0.98 * row[HeadWay::lookup].speedup());
    EXPECT_LT(row[HeadWay::tree].head_passes, row[HeadWay::tree].passes / 20);
    EXPECT_LT(row[HeadWay::head].speedup(), 0.8);
  }
}

TEST(Heads, DoNotDependOnThreads) {
  const Trace trace = with_head("json", 70, 3);
  const std::vector<CostCurve> curves = {CostCurve::parse("linear:0"), CostCurve::parse("linear:0.1")};
  const auto one = replayed(trace, {0.05, 0.3}, curves);
  const auto many = replayed(trace, {0.05, 0.3}, curves, {}, 4);
  ASSERT_EQ(one.size(), 4U);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].curve, i / 2);
    EXPECT_EQ(one[i].head_cost, i % 2 == 0 ? 0.05 : 0.3);
    for (std::size_t way = 0; way < one[i].ways.size(); ++way) {
      EXPECT_EQ(one[i].ways[way].passes, many[i].ways[way].passes);
      EXPECT_EQ(one[i].ways[way].cost, many[i].ways[way].cost);
    }
  }
  EXPECT_EQ(one[0][HeadWay::lookup].cost, one[1][HeadWay::lookup].cost);
}

TEST(Heads, StandBesideALookupThatRemembers) {
  Trace trace = with_head("chat", 30, 3);
  trace.sessions.push_back(trace.sessions.front());
  ReplaySettings settings;
  const auto passes = [&](Kept kept) {
    settings.kept = kept;
    return replayed(trace, {0.3}, fiftieth, settings).front()[HeadWay::choice].passes;
  };
  EXPECT_LT(passes(Kept::past), passes(Kept::session));
}

TEST(Heads, AreRefusedWithoutARecording) {
  Trace trace = with_head("chat", 30, 2);
  EXPECT_EQ(testing::refusal([&] { return replayed(trace, {0.3}, fiftieth, {}, 1, "hf"); }),
            "--head-cost: replays a head beside the strategy ngram, and hf is the first one given; leave out "
            "--strategy, or give ngram first");
  trace.path = "t.jsonl";
  trace.sessions[0].turns[0].head.reset();
  EXPECT_EQ(replayed(trace, {0.3}, fiftieth).front().sessions, 1U);
  trace.sessions[1].turns[0].head.reset();
  EXPECT_EQ(testing::refusal([&] { return replayed(trace, {0.3}, fiftieth); }),
            "--head-cost: t.jsonl: no session has the field head in each turn; docs/formats.md describes it");
}

}  // namespace
}  // namespace reprise::replay::heads_test
