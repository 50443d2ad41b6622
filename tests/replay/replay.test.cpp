// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "replay/strategies.hpp"
#include "reprise/testing/hostile_strategy.hpp"
#include "reprise/testing/random.hpp"

namespace reprise::replay {
namespace {

using Tokens = std::vector<Token>;

const std::vector<CostCurve> half = {CostCurve::parse("linear:0"), CostCurve::parse("linear:0.5")};

Counts replayed(const TraceSession& session, const std::string& spec) {
  return replay_session(session, make_runs(spec).front().strategy, half);
}

/// Drafts the same tokens whatever came before, as many as it may.
struct Parrot {
  Tokens tokens;
  std::size_t most = 0;  ///< the largest budget it was given
  void begin(TokenSpan) {}
  void observe(TokenSpan, Origin) {}
  void propose(const DraftBudget& budget, Draft& draft) {
    for (std::size_t i = 0; i < budget.max_nodes; ++i)
      if (!draft.extend({.token = tokens[i % tokens.size()]})) break;
  }
  void feedback(const Outcome&) {}
  void truncate(std::size_t) {}
  [[nodiscard]] std::size_t memory_bytes() const { return 1234; }
};

TEST(Replay, CountsWhatCanBeWorkedOutByHand) {
  // pld:n=1,k=2 copies exactly 2 tokens from behind the first occurrence of the last token, if 2 follow it and it is
  // not next to the end.
  //
  // Turn 1: context 1 2 3 4 | 9 (free), to come: 2 3 4 5 1 2 3.          context, then draft -> commits
  //   pass 1: ...9            no earlier 9, no draft                      -> 2          (0 drafted)
  //   pass 2: 1 2 3 4 9 2     the 2 at place 1, copy 3 4: both right      -> 3 4 5      (2 drafted, 2 accepted)
  //   pass 3: ...5            no draft                                    -> 1
  //   pass 4: ...1            the 1 at place 0, copy 2 3: both right; the
  //                           recording ends with the second of them      -> 2 3        (2 drafted, 2 accepted)
  // Turn 2: context as above + prompt 7 + 1 (free), to come: 2.
  //   pass 5: ...1            copy 2 3: the first is right and the last;
  //                           the second lies past the end, but was sent  -> 2          (2 drafted, 1 accepted)
  // Together: 7 + 1 tokens, 5 passes, 6 drafted, 5 accepted.
  const TraceSession session{"s", "c", {{{1, 2, 3, 4}, {9, 2, 3, 4, 5, 1, 2, 3}}, {{7}, {1, 2}}}};
  const Counts counts = replayed(session, "pld:n=1,k=2");
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.sessions, 1U);
  EXPECT_EQ(counts.turns, 2U);
  EXPECT_EQ(counts.tokens, 8U);
  EXPECT_EQ(counts.passes, 5U);
  EXPECT_EQ(counts.drafted, 6U);
  EXPECT_EQ(counts.accepted, 5U);
  ASSERT_EQ(counts.cost.size(), 2U);
  EXPECT_DOUBLE_EQ(counts.cost[0], 5);
  EXPECT_DOUBLE_EQ(counts.cost[1], 5 + 0.5 * 6);
  EXPECT_EQ(counts.time.proposals, 5U);
  EXPECT_GT(counts.peak_bytes, 0U);
}

TEST(Replay, IsPlainDecodingWithoutADraft) {
  const TraceSession session{"s", "c", {{{1}, {2, 3, 4}}, {{5}, {6}}, {{7}, {}}, {{}, {8, 9}}}};
  const Counts counts = replayed(session, "none");
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.turns, 4U);
  EXPECT_EQ(counts.tokens, 3U);
  EXPECT_EQ(counts.passes, 3U);
  EXPECT_EQ(counts.drafted, 0U);
  EXPECT_DOUBLE_EQ(counts.cost[1], 3);
}

TEST(Replay, DoesNotCutDraftsAtTheEndOfTheRecording) {
  // 40 tokens of 5 to come, the draft is always 32 of them: 33 committed, then the remaining 7 of which all are
  // drafted. Both passes send 32.
  const TraceSession session{"s", "c", {{{1}, Tokens(41, 5)}}};
  const Counts counts = replay_session(session, Parrot{{5}}, half);
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.tokens, 40U);
  EXPECT_EQ(counts.passes, 2U);
  EXPECT_EQ(counts.drafted, 64U);
  EXPECT_EQ(counts.accepted, 32U + 7U);
  EXPECT_EQ(counts.peak_bytes, 1234U);
}

TEST(Replay, TakesSessionsThatBeginWithNothing) {
  const Counts counts = replayed({"s", "c", {{{}, {}}, {{}, {1, 2, 3}}, {{}, {4}}}}, "hf");
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.turns, 3U);
  EXPECT_EQ(counts.tokens, 2U);
  EXPECT_EQ(replayed({"s", "c", {{{}, {}}}}, "hf").turns, 1U);
}

TEST(Replay, TakesTokensOfAnyValue) {
  const TraceSession session{"s", "c", {{{INT32_MIN, -1, INT32_MAX}, {0, -1, INT32_MAX, INT32_MIN, -1, INT32_MAX}}}};
  EXPECT_TRUE(replayed(session, "ngram").lossless());
}

TEST(Replay, StaysLosslessUnderEveryStrategy) {
  testing::Random random(3);
  for (int i = 0; i < 200; ++i) {
    TraceSession session{"s", "c", {}};
    for (std::size_t turns = random.below(4) + 1; turns > 0; --turns) {
      Turn turn;
      for (std::size_t n = random.below(20); n > 0; --n) turn.prompt.push_back(static_cast<Token>(random.below(4)));
      for (std::size_t n = random.below(40); n > 0; --n) turn.output.push_back(static_cast<Token>(random.below(4)));
      session.turns.push_back(turn);
    }
    for (const StrategyInfo& info : strategies()) {
      const Counts counts = replayed(session, std::string(info.name));
      ASSERT_TRUE(counts.lossless()) << info.name << ": " << counts.fault;
      ASSERT_LE(counts.accepted, counts.drafted);
      ASSERT_EQ(counts.tokens >= counts.passes, true);
    }
    const Counts counts = replay_session(session, testing::HostileStrategy(random.next()), half);
    ASSERT_TRUE(counts.lossless()) << counts.fault;
  }
}

TEST(FirstDifference, IsTheSizeOfTheOutputWhereThereIsNone) {
  EXPECT_EQ(first_difference(Tokens{}, Tokens{1}), 0U);
  EXPECT_EQ(first_difference(Tokens{1, 2}, Tokens{1, 2, 3}), 2U);
  EXPECT_EQ(first_difference(Tokens{1, 9}, Tokens{1, 2, 3}), 1U);
  EXPECT_EQ(first_difference(Tokens{1, 2, 3}, Tokens{1, 2}), 2U);
}

TEST(Counts, AddUpAndKeepTheFirstFault) {
  Counts a;
  a.tokens = 1;
  a.cost = {1.5};
  a.peak_bytes = 7;
  a.time = {10, 5, 1, 5};
  Counts b = a;
  b.fault = "here";
  b.peak_bytes = 3;
  b.time = {20, 8, 2, 7};
  a += b;
  EXPECT_EQ(a.tokens, 2U);
  EXPECT_DOUBLE_EQ(a.cost[0], 3.0);
  EXPECT_EQ(a.peak_bytes, 7U) << "of one session, not of all";
  EXPECT_EQ(a.time.total_ns, 30U);
  EXPECT_EQ(a.time.proposals, 3U);
  EXPECT_EQ(a.time.max_propose_ns, 7U);
  EXPECT_FALSE(a.lossless());
}

}  // namespace
}  // namespace reprise::replay
