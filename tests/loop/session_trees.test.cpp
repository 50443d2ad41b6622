// SPDX-License-Identifier: Apache-2.0
// Sessions that send trees, ask a control and pad; session.test.cpp has the other tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/session.hpp"
#include "support/archetypes.hpp"
#include "support/fails.hpp"
#include "support/strategies.hpp"
#include "support/witness.hpp"

namespace reprise::session_trees_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Listening;

// 1 and 2 follow the anchor, 3 and 4 follow 1, 5 follows 2, 6 follows 3.
const std::vector<DraftNode> tree = {{.token = 1},
                                     {.token = 2},
                                     {.token = 3, .parent = 0},
                                     {.token = 4, .parent = 0},
                                     {.token = 5, .parent = 1},
                                     {.token = 6, .parent = 2}};

/// Returns preset answers, and keeps the arguments of its calls.
struct Told {
  DraftBudget answer = {};
  DraftChoice choice = {unlimited, 0, Cut::none};
  mutable PassLimits room = {};
  mutable std::vector<NodeIndex> sendable = {};
  PassReport report = {};
  Cut cut = Cut::none;
  int begins = 0;
  int learned = 0;
  bool throw_in_learn = false;

  void begin() { ++begins; }
  [[nodiscard]] DraftBudget budget(const DraftBudget&, const PassLimits&) const { return answer; }
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex> nodes, const PassLimits& offered) const {
    room = offered;
    sendable.assign(nodes.begin(), nodes.end());
    return choice;
  }
  void learn(const Outcome& outcome, const PassReport& told) {
    if (throw_in_learn) throw std::runtime_error("control");
    ++learned;
    report = told;
    cut = outcome.cut;
  }
};

struct TreeSession : ::testing::Test {
  Limits limits;
  const std::vector<Token> prompt = {10, 20};
  Session<Listening, Told> session{Listening{{tree}}, Told{}, 16};

  void begin(Capabilities capabilities = {.max_leaves = 8}) { ASSERT_TRUE(session.begin(prompt, capabilities)); }
  Pass pass() {
    session.propose(limits);
    const auto planned = session.plan();
    EXPECT_TRUE(planned);
    return *planned;
  }
  /// A round in which the target's first pick rejects the draft. Returns the cut that the strategy was given.
  Cut cut() {
    const Pass planned = pass();
    EXPECT_TRUE(session.resolve(planned.ticket, std::array<Token, 1>{99}));
    EXPECT_TRUE(session.commit(planned.ticket));
    return session.strategy().heard.cut;
  }
};

static_assert(std::is_same_v<decltype(Session(PromptLookupDrafter{})), Session<PromptLookupDrafter<>, SendAll>>);
static_assert(std::is_same_v<decltype(Session(PromptLookupDrafter{}, 16)), Session<PromptLookupDrafter<>, SendAll>>);
static_assert(std::is_same_v<decltype(Session(NoDrafter{}, Told{})), Session<NoDrafter, Told>>);
static_assert(
    std::is_same_v<decltype(Session(NoDrafter{}, archetype::Control{}, 16)), Session<NoDrafter, archetype::Control>>);

TEST_F(TreeSession, ReadsNoMoreOfAWalkedPathThanItHas) {
  begin();
  const Pass planned = pass();
  const std::array<std::size_t, 1> rows = {0};
  const std::array<Token, 1> tokens = {1};  // the draft holds it, but the engine stopped there
  const auto decision = session.resolve(planned.ticket, Accepted{rows, tokens});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->tokens.size(), 1U);
  EXPECT_EQ(decision->accepted, 1U);
  EXPECT_THAT(decision->rows, ElementsAre(0));
}
TEST_F(TreeSession, SendsAChainUnlessEngineCallerAndRoundAllowATree) {
  begin({});
  EXPECT_THAT(pass().batch, ElementsAre(20, 1, 3, 6));
  EXPECT_EQ(session.strategy().asked.shape, DraftShape::chain);
  EXPECT_EQ(session.strategy().asked.max_leaves, 1U);
  begin();
  limits.draft.shape = DraftShape::chain;
  EXPECT_THAT(pass().batch, ElementsAre(20, 1, 3, 6));
  EXPECT_EQ(session.strategy().asked.shape, DraftShape::chain);
  limits = {};
  session.propose(limits, DraftShape::chain);
  EXPECT_THAT(session.plan()->batch, ElementsAre(20, 1, 3, 6));
  EXPECT_EQ(session.strategy().asked.shape, DraftShape::chain);
  EXPECT_EQ(pass().drafted, 6U);
  EXPECT_EQ(session.strategy().asked.shape, DraftShape::tree);
  EXPECT_EQ(session.strategy().asked.max_leaves, 8U);
  limits.draft.max_leaves = 2;
  EXPECT_THAT(pass().batch, ElementsAre(20, 1, 2, 3, 5, 6));
  EXPECT_EQ(session.strategy().asked.max_leaves, 2U);
}

// ---------------------------------------------------------------------------------------------- control
TEST_F(TreeSession, AsksTheStrategyForNoMoreThanControlWants) {
  begin();
  session.control().answer.max_nodes = 2;
  session.control().answer.min_path_probability = Probability::ratio(1, 4);
  EXPECT_EQ(session.propose(limits).size(), 2U);
  EXPECT_EQ(session.strategy().asked.max_nodes, 2U);
  EXPECT_EQ(session.strategy().asked.min_path_probability, Probability::ratio(1, 4));
  session.control().answer.max_nodes = unlimited;
  session.propose(limits);
  EXPECT_EQ(session.strategy().asked.max_nodes, 16U);
  session.control().answer.max_nodes = 0;
  const int before = session.strategy().proposals;
  EXPECT_EQ(cut(), Cut::throttled);
  EXPECT_EQ(session.strategy().proposals, before) << "not even asked";
  session.control().choice.cut = Cut::unlikely;
  EXPECT_EQ(cut(), Cut::unlikely);
  limits.draft.max_nodes = 0;
  EXPECT_EQ(cut(), Cut::budget);
}
TEST_F(TreeSession, ShowsControlWhatCanBeSentAndTheRoom) {
  begin({.max_rows = 5, .max_leaves = 2});
  pass();
  EXPECT_THAT(session.control().sendable, ElementsAre(0, 1, 2, 3, 4)) << "of the draft, which has no third path";
  EXPECT_EQ(session.control().room.nodes, 4U);
  EXPECT_EQ(session.control().room.plain.rows, 1U);
  EXPECT_EQ(session.control().room.plain.context, 2U);
  EXPECT_THAT(session.control().room.widths, IsEmpty());
  EXPECT_FALSE(session.control().room.padded);
}
TEST_F(TreeSession, SendsWhatControlChoosesAndCountsItsReason) {
  begin();
  session.control().choice = {3, 0, Cut::unlikely};
  EXPECT_THAT(pass().batch, ElementsAre(20, 1, 2, 3));
  EXPECT_EQ(cut(), Cut::unlikely);
  session.control().choice = {2, 0, Cut::none};
  EXPECT_EQ(cut(), Cut::budget) << "control gave no reason";
  session.control().choice = {0, 0, Cut::throttled};
  EXPECT_EQ(cut(), Cut::throttled);
  limits.max_rows = 3;
  session.control().choice = {2, 0, Cut::unlikely};
  EXPECT_EQ(cut(), Cut::rows) << "no more would have fitted";
  session.control().choice = {unlimited, unlimited, static_cast<Cut>(255)};
  EXPECT_EQ(cut(), Cut::rows);
}
TEST_F(TreeSession, TellsControlWhatAPassGaveBeforeTheStrategyHears) {
  begin();
  EXPECT_EQ(session.control().begins, 1);
  const Pass planned = pass();
  ASSERT_TRUE(session.resolve(planned.ticket, std::array<Token, 3>{2, 0, 9}));
  ASSERT_TRUE(session.commit(planned.ticket, std::chrono::microseconds(3)));
  const PassReport& report = session.control().report;
  EXPECT_EQ(session.control().learned, 1);
  EXPECT_EQ(report.plain.rows, 1U);
  EXPECT_EQ(report.plain.context, 2U);
  EXPECT_EQ(report.sent.rows, 7U);
  EXPECT_EQ(report.sent.context, 2U);
  EXPECT_EQ(report.committed, 2U);
  EXPECT_EQ(report.time, std::chrono::nanoseconds(3000));
  cut();
  EXPECT_FALSE(session.control().report.time.has_value());
}
TEST_F(TreeSession, DoesNotAskAStrategyThatDidNotHearBecauseControlThrew) {
  begin();
  session.control().throw_in_learn = true;
  const Pass planned = pass();
  ASSERT_TRUE(session.resolve(planned.ticket, std::array<Token, 1>{9}));
  EXPECT_THROW(static_cast<void>(session.commit(planned.ticket)), std::runtime_error);
  EXPECT_THAT(session.output(), ElementsAre(9));
  session.control().throw_in_learn = false;
  EXPECT_EQ(pass().drafted, 0U);
  cut();
  EXPECT_EQ(session.control().cut, Cut::strategy_threw) << "control is told all the same";
}
TEST_F(TreeSession, ForksItsControl) {
  begin();
  auto other = session.fork();
  ASSERT_TRUE(other);
  session.control().choice.nodes = 1;
  EXPECT_EQ(pass().drafted, 1U);
  other->propose(limits);
  EXPECT_EQ(other->plan()->drafted, 6U);
}
TEST_F(TreeSession, FallsBackToAnAllowedWidthWhenControlDoesNot) {
  begin({.allowed_widths = {2, 4}, .max_leaves = 8});
  EXPECT_EQ(pass().drafted, 3U);
  EXPECT_EQ(cut(), Cut::width);
  session.control().choice = {2, 7, Cut::unlikely};  // and padding is not allowed
  EXPECT_EQ(pass().drafted, 1U);
}

// ---------------------------------------------------------------------------------------------- padding
TEST_F(TreeSession, PadsATreeWithChildrenOfTheAnchor) {
  begin({.allowed_widths = {4}, .pad_token = -1, .max_leaves = 8});
  session.control().choice = {2, 1, Cut::unlikely};
  const Pass planned = pass();
  EXPECT_TRUE(session.control().room.padded);
  EXPECT_THAT(planned.batch, ElementsAre(20, 1, 2, -1));
  EXPECT_THAT(planned.parents, ElementsAre(-1, -1, -1));
  EXPECT_THAT(planned.depths, ElementsAre(1, 1, 1));
  EXPECT_THAT(planned.nodes, ElementsAre(0, 1, 6));
  EXPECT_EQ(planned.drafted, 3U);
  EXPECT_EQ(planned.padding, 1U);
  EXPECT_EQ(planned.shape.sequences, 1U);
  EXPECT_EQ(planned.shape.rows, 4U);
  EXPECT_EQ(planned.shape.context, 2U);
  ASSERT_TRUE(session.resolve(planned.ticket, std::array<Token, 4>{-1, 0, 0, 9}));
  ASSERT_TRUE(session.commit(planned.ticket));
  EXPECT_THAT(session.output(), ElementsAre(-1, 9)) << "a pad row that is picked is committed like any other";
  EXPECT_EQ(session.statistics().padding, 1U);
  EXPECT_EQ(session.statistics().drafted, 3U);
  EXPECT_EQ(session.statistics().accepted, 1U);
  EXPECT_THAT(session.strategy().heard.sent, ElementsAre(0, 1, 6));
  EXPECT_EQ(session.strategy().heard.draft.size(), 7U);
}
TEST_F(TreeSession, PadsNoFurtherThanEngineAndLimitsAllow) {
  session.control().choice = {2, 3, Cut::none};
  const Capabilities padded = {.allowed_widths = {3, 6}, .pad_token = -1};
  Capabilities can = padded;
  can.max_depth = 4;
  begin(can);
  EXPECT_EQ(pass().drafted, 2U) << "a chain of 5 would be too deep";
  can = padded;
  can.max_rows = 5;
  begin(can);
  EXPECT_EQ(pass().drafted, 2U);
  can = padded;
  can.max_rollback = 4;
  begin(can);
  EXPECT_EQ(pass().drafted, 2U);
  can = padded;
  can.max_context = 7;
  begin(can);
  EXPECT_EQ(pass().drafted, 2U);
  can = padded;
  can.max_leaves = 4;
  begin(can);
  EXPECT_EQ(pass().drafted, 0U) << "five leaves: not the pass that control has weighed";
  can.max_leaves = 5;
  begin(can);
  EXPECT_EQ(pass().drafted, 5U);
  limits.draft.max_depth = 0;
  EXPECT_EQ(pass().drafted, 0U);
  limits = {};
  session.propose(limits);
  EXPECT_EQ(session.plan(3)->drafted, 2U) << "plan() bounds pad rows too";
}
TEST_F(TreeSession, CountsTheBytesOfItsStrategy) {
  Session lookup{PromptLookupDrafter<>()};
  ASSERT_TRUE(lookup.begin(std::vector<Token>(1000, 1)));
  EXPECT_GT(lookup.memory_bytes(), lookup.strategy().memory_bytes());
  EXPECT_LT(lookup.memory_bytes(), 2 * lookup.strategy().memory_bytes());
}
TEST_F(TreeSession, RefusesDraftsThatNoMemoryHolds) {
  Session<NoDrafter> huge{NoDrafter{}, unlimited - 1};
  EXPECT_THAT(huge.begin(prompt), testing::fails(ErrorCode::out_of_memory));
}

}  // namespace
}  // namespace reprise::session_trees_test
