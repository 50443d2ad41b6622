// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "replay/strategies.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise_methods/lookahead_drafter.hpp"
#include "reprise_methods/token_recycling_drafter.hpp"
#include "reprise_testing/random.hpp"
#include "support/hostile_strategy.hpp"
#include "support/strategies.hpp"

namespace reprise::replay::replay_test {
namespace {

using Tokens = std::vector<Token>;

const std::vector<CostCurve> half = {CostCurve::parse("linear:0"), CostCurve::parse("linear:0.5")};

Counts replayed(const TraceSession& session, const std::string& spec, const std::string& control = "all",
                const ReplaySettings& settings = {}) {
  const ControlSpec asked = parse_control(control).front();
  return replay_session(session, make_runs(spec).front().strategy,
                        {asked, asked.kind == ControlKind::cost ? std::span(half).last(1) : std::span(half), settings});
}
std::uint64_t cut(const Counts& counts, Cut why) { return counts.cuts[static_cast<std::size_t>(why)]; }

/// Always drafts the same tokens, as many as the budget allows.
struct Parrot : archetype::Strategy {
  Tokens tokens;
  explicit Parrot(Tokens repeated) : tokens(std::move(repeated)) {}
  void propose(TokenSpan, Draft& draft) {
    for (std::size_t i = 0; i < draft.budget().max_nodes; ++i)
      if (!draft.extend({.token = tokens[i % tokens.size()]})) break;
  }
  [[nodiscard]] std::size_t memory_bytes() const { return 1234; }
};

TEST(Replay, CountsWhatCanBeWorkedOutByHand) {
  // pld:n=1,k=2 copies exactly 2 tokens after the first occurrence of the last token. That occurrence needs 2 tokens
  // after it and must not touch the end.
  //
  // Turn 1: context 1 2 3 4 | 9 (free), coming: 2 3 4 5 1 2 3.          context, then draft -> commits
  // * pass 1: ...9            no earlier 9, no draft                      -> 2          (0 drafted)
  // * pass 2: 1 2 3 4 9 2     the 2 at place 1, copy 3 4: both right      -> 3 4 5      (2 drafted, 2 accepted)
  // * pass 3: ...5            no draft                                    -> 1
  // * pass 4: ...1            the 1 at place 0, copy 2 3: both right; the
  //                           recording ends with the second of them      -> 2 3        (2 drafted, 2 accepted)
  //
  // Turn 2: context as above + prompt 7 + 1 (free), coming: 2.
  // * pass 5: ...1            copy 2 3: the first is right and the last;
  //                           the second is past the end, but was sent    -> 2          (2 drafted, 1 accepted)
  //
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
  ASSERT_EQ(counts.charges.size(), 2U);
  EXPECT_DOUBLE_EQ(counts.charges[0].cost, 5);
  EXPECT_DOUBLE_EQ(counts.charges[1].cost, 5 + 0.5 * 6);
  EXPECT_EQ(counts.charges[0].worst_loss, 0);
  EXPECT_DOUBLE_EQ(counts.charges[1].worst_loss, 1) << "the last pass cost 2 and gave 1 token";
  EXPECT_EQ(cut(counts, Cut::no_match), 2U);
  EXPECT_EQ(cut(counts, Cut::none), 3U);
  // The claims were certain, and 3 4, 2 3 and 2 were right. The pick after the 2 is past the end and was never read.
  EXPECT_EQ(counts.reliability.total().tests, 5U);
  EXPECT_EQ(counts.reliability.total().hits, 5U);
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
  EXPECT_DOUBLE_EQ(counts.charges[1].cost, 3);
  EXPECT_EQ(counts.reliability.total().tests, 0U);
}

TEST(Replay, DoesNotCutDraftsAtTheEndOfTheRecording) {
  // 40 tokens 5 are coming, and the draft is always 32 of them. The first pass commits 33; the second sends 32 again,
  // of which 7 remain.
  const TraceSession session{"s", "c", {{{1}, Tokens(41, 5)}}};
  const Counts counts = replay_session(session, Parrot{{5}}, {.curves = half});
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.tokens, 40U);
  EXPECT_EQ(counts.passes, 2U);
  EXPECT_EQ(counts.drafted, 64U);
  EXPECT_EQ(counts.accepted, 32U + 7U);
  EXPECT_EQ(counts.peak_bytes, 1234U);
}

TEST(Replay, StaysLosslessUnderEveryStrategy) {
  testing::Random random(3);
  const std::vector<ControlSpec> controls = {
      {ControlKind::all, 0}, {ControlKind::best, 3}, {ControlKind::hindsight, 0}, {ControlKind::cost, 0}};
  const auto weighed = std::span(half).last(1);
  for (int i = 0; i < 200; ++i) {
    ReplaySettings settings;
    settings.max_nodes = random.below(32) + 1;
    settings.trees = random.chance(70);
    if (random.chance(50)) settings.cost_known = CostKnown::learned;
    const bool calibrated = random.chance(50);
    TraceSession session{"s", "c", {}};
    for (std::size_t turns = random.below(4) + 1; turns > 0; --turns) {
      Turn turn;
      for (std::size_t n = random.below(20); n > 0; --n) turn.prompt.push_back(static_cast<Token>(random.below(4)));
      for (std::size_t n = random.below(40); n > 0; --n) turn.output.push_back(static_cast<Token>(random.below(4)));
      session.turns.push_back(turn);
    }
    for (const StrategyInfo& info : strategies()) {
      const Counts counts = replay_session(session, make_runs(info.name).front().strategy,
                                           {controls[random.below(4)], weighed, settings, calibrated});
      ASSERT_TRUE(counts.lossless()) << info.name << ": " << counts.fault;
      ASSERT_LE(counts.accepted, counts.drafted);
      ASSERT_EQ(counts.tokens >= counts.passes, true);
    }
    const Counts counts = replay_session(session, testing::HostileStrategy(random.next()),
                                         {controls[random.below(4)], weighed, settings, calibrated});
    ASSERT_TRUE(counts.lossless()) << counts.fault;
  }
}

/// Always drafts a tree of two levels: 1 and 2 after the anchor, and 3 and 4 after each of these.
struct Bush : testing::Dictated {
  Bush()
      : Dictated{{testing::node(1, anchor_parent, 60), testing::node(2, anchor_parent, 40), testing::node(3, 0, 30),
                  testing::node(4, 0, 30), testing::node(3, 1, 20), testing::node(4, 1, 20)}} {}
};

TEST(Replay, FollowsTheRecordingThroughATree) {
  // Coming: 2 4 9, 1 3 9, 7, and 2 at the end. Every pass sends 6.
  // * pass 1: 2 4 agree, 9 is the pick      -> 3 tokens, 2 accepted
  // * pass 2: 1 3 agree, 9 is the pick      -> 3 tokens, 2 accepted
  // * pass 3: nothing agrees                -> 7
  // * pass 4: 2 agrees, and the turn ends   -> 1 token, 1 accepted
  const TraceSession session{"s", "c", {{{5}, {5, 2, 4, 9, 1, 3, 9, 7, 2}}}};
  const Counts tree = replay_session(session, Bush(), {.curves = half});
  EXPECT_TRUE(tree.lossless()) << tree.fault;
  EXPECT_EQ(tree.tokens, 8U);
  EXPECT_EQ(tree.passes, 4U);
  EXPECT_EQ(tree.drafted, 24U);
  EXPECT_EQ(tree.accepted, 5U);
  EXPECT_DOUBLE_EQ(tree.charges[1].cost, 4 + 0.5 * 24);
  // The first two passes test both children of the anchor and both children after the right one; the others only the
  // former.
  EXPECT_EQ(tree.reliability.total().tests, 2U * 4 + 2 * 2);
  EXPECT_EQ(tree.reliability.total().hits, 5U);

  // As a chain the draft is 1 3 only. It agrees once in full, and nowhere else.
  ReplaySettings chains;
  chains.trees = false;
  const Counts chain = replay_session(session, Bush(), {.settings = chains});
  EXPECT_TRUE(chain.lossless()) << chain.fault;
  EXPECT_EQ(chain.accepted, 2U);
  EXPECT_EQ(chain.passes, 6U);
  EXPECT_EQ(chain.drafted, 12U);
}

TEST(Replay, SendsTheBestNodesOnlyWhenAskedTo) {
  const TraceSession session{"s", "c", {{{5}, {5, 2, 4, 9, 1, 3, 9, 7, 2}}}};
  const auto best = [&](std::size_t nodes) {
    return replay_session(session, Bush(), {.control = {ControlKind::best, nodes}});
  };
  EXPECT_EQ(best(0).drafted, 0U);
  EXPECT_EQ(best(0).passes, 8U);
  EXPECT_EQ(cut(best(0), Cut::budget), 8U);
  // 1 and 2 are sent. The passes commit 2 4, 9, 1 3, 9, 7 and 2.
  EXPECT_EQ(best(2).accepted, 3U);
  EXPECT_EQ(best(2).passes, 6U);
  EXPECT_EQ(best(2).drafted, 12U);
  EXPECT_EQ(best(6).drafted, 24U);
  EXPECT_EQ(cut(best(6), Cut::none), 4U);
  EXPECT_EQ(best(32).drafted, 24U);
}

TEST(Replay, SendsInHindsightWhatTheRecordingAgreesWith) {
  // 2 is the second node, and 4 after it the last; 3 after 1 is the third; nothing agrees with 7; then 2.
  const TraceSession session{"s", "c", {{{5}, {5, 2, 4, 9, 1, 3, 9, 7, 2}}}};
  const Counts counts = replay_session(session, Bush(), {.control = {ControlKind::hindsight, 0}});
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  EXPECT_EQ(counts.passes, 4U);
  EXPECT_EQ(counts.accepted, 5U);
  EXPECT_EQ(counts.drafted, 6U + 3 + 0 + 2);
}

TEST(Replay, SendsOnlyWidthsThatAreAllowed) {
  // The session of CountsWhatCanBeWorkedOutByHand, where 2 tokens are sent in 3 rows.
  const TraceSession session{"s", "c", {{{1, 2, 3, 4}, {9, 2, 3, 4, 5, 1, 2, 3}}, {{7}, {1, 2}}}};
  ReplaySettings settings;
  settings.widths.add(2);
  const Counts narrow = replayed(session, "pld:n=1,k=2", "all", settings);
  EXPECT_TRUE(narrow.lossless()) << narrow.fault;
  EXPECT_GT(narrow.passes, 5U);
  EXPECT_GT(narrow.drafted, 0U);
  EXPECT_LE(narrow.drafted, narrow.passes);
  EXPECT_GT(cut(narrow, Cut::width), 0U);

  // Control fills passes up to the width with pad rows.
  struct Watcher : PassWatcher {
    std::size_t pads = 0;
    std::vector<std::size_t> rows;
    void began(const TraceSession&) override {}
    void tested(const Outcome& outcome) override {
      for (const DraftNode& node : outcome.draft) pads += node.source == DraftSource::padding ? 1 : 0;
    }
    void passed(const Passed& pass) override { rows.push_back(pass.shape.rows); }
  } watcher;
  settings.widths = {};
  settings.widths.add(24);
  TraceSession repeats{"s", "c", {{{1, 2, 3}, {}}}};
  for (int i = 0; i < 200; ++i) repeats.turns[0].output.push_back(4 + i % 10);
  const std::vector<CostCurve> free = {CostCurve::parse("linear:0")};
  const Counts wide = replay_session(repeats, make_runs("ngram").front().strategy,
                                     {{ControlKind::cost, 0}, free, settings, true, &watcher});
  EXPECT_TRUE(wide.lossless()) << wide.fault;
  EXPECT_GT(watcher.pads, 0U);
  EXPECT_EQ(std::count(watcher.rows.begin(), watcher.rows.end(), 1U) +
                std::count(watcher.rows.begin(), watcher.rows.end(), 24U),
            std::ssize(watcher.rows));
}

TEST(Replay, TellsControlTheCurveOrTheTimes) {
  // The strategy is always right, and each drafted token costs half a plain pass: drafting pays.
  const TraceSession session{"s", "c", {{{1}, Tokens(2000, 5)}}};
  const auto replay = [&](const ReplaySettings& settings) {
    return replay_session(session, Parrot{{5}}, {{ControlKind::cost, 0}, std::span(half).last(1), settings});
  };
  const Counts told = replay({});
  ASSERT_TRUE(told.lossless()) << told.fault;
  EXPECT_LT(told.charges.front().cost, 1999);
  EXPECT_GT(told.control_ns, 0U);
  ReplaySettings settings;
  settings.cost_known = CostKnown::learned;
  const Counts learned = replay(settings);
  ASSERT_TRUE(learned.lossless()) << learned.fault;
  EXPECT_LT(learned.charges.front().cost, 1999 + 10);
  EXPECT_EQ(replay(settings).charges.front().cost, learned.charges.front().cost) << "the same times every time";
}

/// The rows of `outcome` as (node of the row, token) in the order of their report.
std::vector<std::pair<NodeIndex, Token>> shown_rows(const testing::KeptOutcome& outcome) {
  std::vector<std::pair<NodeIndex, Token>> all;
  for (const Outcome::RankedToken& token : outcome.top_k) all.emplace_back(token.after, token.token);
  return all;
}
using Shown = std::vector<std::pair<NodeIndex, Token>>;

/// Turn with rows of three tokens: the output token i, 100 + i and 200 + i.
Turn ranked_turn(Tokens prompt, const Tokens& output) {
  Turn turn{std::move(prompt), output, TopKRows()};
  for (std::size_t i = 0; i < output.size(); ++i) {
    const auto number = static_cast<Token>(i);
    turn.top_k->add_row(Tokens{output[i], 100 + number, 200 + number});
  }
  return turn;
}

testing::Curious curious(testing::Nodes nodes, std::size_t wanted) {
  testing::Curious strategy;
  strategy.nodes = std::move(nodes);
  strategy.wanted = wanted;
  return strategy;
}

TEST(Replay, ShowsTheRowsThatPickedTheCommittedTokensOfAChain) {
  // The draft is always 2 3. The first turn has no rows. Turn 2, with 5 as the free token:
  // * pass 2: 2 3 agree, 9 is the pick: rows 1, 2 and 3 of the output
  // * pass 3: nothing agrees, 7 is the pick: row 4
  // * pass 4: 2 3 agree, and the turn ends with the second of them: rows 5 and 6
  const testing::Curious strategy = curious({testing::node(2, anchor_parent, 60), testing::node(3, 0, 50)}, 2);
  const TraceSession session{"s", "c", {{{1}, {4, 6}}, ranked_turn({8}, {5, 2, 3, 9, 7, 2, 3})}};
  const Counts counts = replay_session(session, AnyStrategy(strategy), {});
  ASSERT_TRUE(counts.lossless()) << counts.fault;
  const auto& outcomes = strategy.told->outcomes;
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(shown_rows(outcomes[0]), Shown());
  EXPECT_EQ(shown_rows(outcomes[1]),
            (Shown{{anchor_parent, 2}, {anchor_parent, 101}, {0, 3}, {0, 102}, {1, 9}, {1, 103}}));
  EXPECT_EQ(shown_rows(outcomes[2]), (Shown{{anchor_parent, 7}, {anchor_parent, 104}}));
  EXPECT_EQ(shown_rows(outcomes[3]), (Shown{{anchor_parent, 2}, {anchor_parent, 105}, {0, 3}, {0, 106}}));
  EXPECT_EQ(outcomes[1].top_k[1].rank, 1U);
  EXPECT_EQ(counts.top_k_rows, 6U);
}

TEST(Replay, ShowsTheRowsOfTheAcceptedPathOfATreeAndNoOthers) {
  // * pass 1: 2 4 agree, 9 is the pick: the rows after the anchor, node 1 and node 5
  // * pass 2: 1 3 agree, and the turn ends: the rows after the anchor and node 0
  const testing::Curious strategy = curious(Bush().nodes, 100);
  const TraceSession session{"s", "c", {ranked_turn({5}, {5, 2, 4, 9, 1, 3})}};
  const Counts counts = replay_session(session, AnyStrategy(strategy), {});
  ASSERT_TRUE(counts.lossless()) << counts.fault;
  const auto& outcomes = strategy.told->outcomes;
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(shown_rows(outcomes[0]), (Shown{{anchor_parent, 2},
                                            {anchor_parent, 101},
                                            {anchor_parent, 201},
                                            {1, 4},
                                            {1, 102},
                                            {1, 202},
                                            {5, 9},
                                            {5, 103},
                                            {5, 203}}));
  EXPECT_EQ(shown_rows(outcomes[1]),
            (Shown{{anchor_parent, 1}, {anchor_parent, 104}, {anchor_parent, 204}, {0, 3}, {0, 105}, {0, 205}}));
  EXPECT_EQ(counts.top_k_rows, 5U);
}

TEST(Replay, DraftsFromTheRowsThatItIsShown) {
  // After 7 comes 8 at first, and 9 from then on. The first row after 7 has both.
  TraceSession with{"s", "c", {{{1}, {5, 7, 8, 5, 7, 9}, TopKRows()}}};
  for (const Token token : with.turns[0].output) with.turns[0].top_k->add_row(Tokens{token, 9});
  TraceSession without = with;
  without.turns[0].top_k.reset();
  const Counts plain = replay_session(without, AnyStrategy(TokenRecyclingDrafter()), {});
  const Counts ranked = replay_session(with, AnyStrategy(TokenRecyclingDrafter()), {});
  ASSERT_TRUE(plain.lossless() && ranked.lossless()) << plain.fault << ranked.fault;
  // Both copy the 7 after 5. Only the rows propose 9.
  EXPECT_EQ(plain.accepted, 1U);
  EXPECT_EQ(ranked.accepted, 2U);
  ReplaySettings off;
  off.top_k = false;
  EXPECT_EQ(replay_session(with, AnyStrategy(TokenRecyclingDrafter()), {.settings = off}).drafted, plain.drafted);
}

TEST(Replay, TakesRowsThatLie) {
  testing::Random random(5);
  const std::vector<Token> odd = {INT32_MIN, -1, INT32_MAX, 1'000'000, 0, 1, 2, 3};
  for (int i = 0; i < 200; ++i) {
    TraceSession session{"s", "c", {}};
    for (std::size_t turns = random.below(3) + 1; turns > 0; --turns) {
      Turn turn{{1}, {}, TopKRows()};
      for (std::size_t n = random.below(40); n > 0; --n) {
        turn.output.push_back(static_cast<Token>(random.below(4)));
        Tokens row(random.chance(5) ? 3000 : random.below(12));
        for (Token& token : row) token = odd[random.below(odd.size())];
        turn.top_k->add_row(row);
      }
      session.turns.push_back(std::move(turn));
    }
    const testing::Curious deep = curious(Bush().nodes, 5000);
    for (const AnyStrategy& strategy : {AnyStrategy(TokenRecyclingDrafter()), AnyStrategy(LookaheadDrafter()),
                                        AnyStrategy(NgramDrafter<>()), AnyStrategy(deep)}) {
      const Counts counts = replay_session(session, strategy, {.calibrated = random.chance(50)});
      ASSERT_TRUE(counts.lossless()) << counts.fault;
    }
  }
}

}  // namespace
}  // namespace reprise::replay::replay_test
