// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/open_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <utility>
#include <vector>

namespace reprise::open_round_test {
namespace {

using detail::Constraint;
using detail::OpenRound;
using detail::Sequence;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct OpenRoundTest : ::testing::Test {
  Sequence sequence;
  OpenRound round;
  Limits limits;

  void begin(const Capabilities& can = {}) {
    ASSERT_TRUE(sequence.begin(std::vector<Token>{1, 2}, can, {}));
    ASSERT_TRUE(round.reserve(8, can, 1));
  }
  void propose(const std::vector<Token>& tokens, bool gated = false) {
    round.open(limits);
    Draft draft = round.blank({});
    for (const Token token : tokens) ASSERT_TRUE(draft.extend({.token = token}));
    round.propose(draft, 1, gated);
  }
  Result<Pass> plan(std::size_t nodes, bool in_step = true) {
    const auto room = round.fit(sequence, unlimited, Cut::budget);
    if (!room) return room.error();
    if (!round.plan(sequence, {nodes, 0, Cut::none}, *room, in_step)) return Sequence::no_memory();
    return round.pass(sequence);
  }
  Result<Decision> resolve(Ticket ticket, const std::vector<Token>& picks) {
    return round.resolve(sequence, ticket, picks, NeverStop{});
  }
  ErrorCode refusal_of_plan() { return plan(0).error().code; }
};

TEST_F(OpenRoundTest, ClosesWherePendingTokensDoNotFit) {
  begin({.max_rows = 4});
  ASSERT_TRUE(sequence.append(std::vector<Token>{3, 4}, 1));
  propose({5});
  limits.max_rows = 2;
  EXPECT_EQ(refusal_of_plan(), ErrorCode::too_many_pending);
  limits.max_rows = 4;
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed);
}
TEST_F(OpenRoundTest, KnowsOnlyTheNewestTicket) {
  begin();
  propose({3, 4});
  const auto old = plan(2);
  const auto pass = plan(1);
  ASSERT_TRUE(old && pass);
  EXPECT_EQ(resolve(old->ticket, {3}).error().code, ErrorCode::bad_ticket);
  EXPECT_FALSE(round.is_open(old->ticket));
  ASSERT_TRUE(resolve(pass->ticket, {3}));
  EXPECT_EQ(resolve(pass->ticket, {3}).error().code, ErrorCode::bad_ticket) << "once";
  EXPECT_TRUE(round.report_top_k(pass->ticket, 0, {}));
  EXPECT_TRUE(round.is_open(pass->ticket));
  round.close();
  EXPECT_FALSE(round.is_open(pass->ticket));
  EXPECT_FALSE(round.report_top_k(pass->ticket, 0, {}));
}
TEST_F(OpenRoundTest, ReportsARejectionOfASnapshotEngineAsAReplay) {
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot})
    for (const Token pick : {3, 7}) {
      begin({.rollback = rollback});
      propose({3});
      const auto pass = plan(1);
      ASSERT_TRUE(pass && resolve(pass->ticket, {pick, 4}));
      const PassReport report = round.report(sequence, {});
      EXPECT_EQ(report.replayed, rollback == Rollback::snapshot && pick == 7);
      EXPECT_EQ(report.plain.sequences + report.sent.sequences, 2U);
    }
}
TEST_F(OpenRoundTest, OpensWithoutTheDraftBefore) {
  begin();
  propose({3, 4});
  round.close();
  round.open(limits);
  EXPECT_TRUE(round.draft().empty());
}
TEST_F(OpenRoundTest, KeepsTheDraftOfAPassThatIsGivenUp) {
  begin();
  propose({3, 4});
  const auto pass = plan(2);
  ASSERT_TRUE(pass);
  EXPECT_TRUE(round.fit(sequence, unlimited, Cut::budget));
  EXPECT_FALSE(resolve(pass->ticket, {3}));
  EXPECT_EQ(round.draft().size(), 2U);
  const auto next = plan(1);
  ASSERT_TRUE(next);
  round.constrain([](TokenSpan path) { return path.size(); });
  EXPECT_FALSE(resolve(next->ticket, {3}));
  EXPECT_TRUE(plan(1));
  round.close();
  round.constrain([](TokenSpan path) { return path.size(); });
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed) << "there was none to give up";
}
TEST_F(OpenRoundTest, EachPlanHasTheNodesThatFitNow) {
  const auto tokens_of = [](const Result<Pass>& pass) {
    return pass ? std::vector<Token>(pass->batch.begin() + 1, pass->batch.end()) : std::vector<Token>();
  };
  begin({.allowed_widths = {1, 2, 3, 4}, .pad_token = 0});
  propose({3, 4, 5});
  const auto room = round.fit(sequence, unlimited, Cut::budget);
  ASSERT_TRUE(room && round.plan(sequence, {1, 2, Cut::none}, *room, true));
  EXPECT_THAT(tokens_of(round.pass(sequence)), ElementsAre(3, 0, 0));
  EXPECT_THAT(tokens_of(plan(3)), ElementsAre(3, 4, 5)) << "after padding";
  limits.draft.max_depth = 2;
  EXPECT_THAT(tokens_of(plan(3)), ElementsAre(3, 4));
  limits.draft.max_depth = unlimited;
  round.constrain([](TokenSpan) { return std::size_t{1}; });
  EXPECT_THAT(tokens_of(plan(3)), ElementsAre(3));
  round.close();
  propose({6, 7});
  EXPECT_THAT(tokens_of(plan(3)), ElementsAre(6, 7));
  round.close();
  round.open(limits);
  EXPECT_THAT(tokens_of(plan(3)), IsEmpty()) << "without a draft";
}
TEST_F(OpenRoundTest, RefusesPicksThatDecideNothing) {
  begin();
  propose({3});
  const auto pass = plan(1);
  ASSERT_TRUE(pass);
  EXPECT_EQ(resolve(pass->ticket, {}).error().code, ErrorCode::bad_picks);
  const std::vector<std::size_t> rows = {0, 5};
  const std::vector<Token> tokens = {3, 4};
  EXPECT_EQ(round.resolve(sequence, pass->ticket, Accepted{rows, tokens}, NeverStop{}).error().code,
            ErrorCode::bad_picks);
  EXPECT_TRUE(resolve(pass->ticket, {3})) << "the pass is still open";
}
TEST_F(OpenRoundTest, TakesAnAcceptedPathOnlyWithTheOpenTicket) {
  begin();
  propose({3});
  const auto old = plan(1);
  const auto pass = plan(1);
  ASSERT_TRUE(old && pass);
  const std::vector<std::size_t> rows = {0, 1};
  const std::vector<Token> tokens = {3, 4};
  EXPECT_EQ(round.resolve(sequence, old->ticket, Accepted{rows, tokens}, NeverStop{}).error().code,
            ErrorCode::bad_ticket);
  ASSERT_TRUE(round.resolve(sequence, pass->ticket, Accepted{rows, tokens}, NeverStop{}));
  EXPECT_EQ(round.resolve(sequence, pass->ticket, Accepted{rows, tokens}, NeverStop{}).error().code,
            ErrorCode::bad_ticket)
      << "once";
}
TEST_F(OpenRoundTest, SaysWhyNothingWasDrafted) {
  const auto cut_of = [&](bool gated, bool in_step) {
    propose({}, gated);
    const auto pass = plan(0, in_step);
    EXPECT_TRUE(pass && resolve(pass->ticket, {3}));
    return round.commit(sequence, {}).cut;
  };
  begin();
  EXPECT_EQ(cut_of(false, true), Cut::no_match);
  EXPECT_EQ(cut_of(true, true), Cut::throttled);
  EXPECT_EQ(cut_of(true, false), Cut::strategy_threw);
  limits.draft.max_nodes = 0;
  EXPECT_EQ(cut_of(true, false), Cut::budget);
  limits.draft.max_nodes = 4;
  OpenRound without_nodes;
  ASSERT_TRUE(without_nodes.reserve(0, {}, 1));
  std::swap(round, without_nodes);
  EXPECT_EQ(cut_of(true, false), Cut::budget) << "the session's";
}
TEST_F(OpenRoundTest, SaysThatTokensWereTooUnlikelyInTheirRoundOnly) {
  const auto cut = [&] {
    const auto pass = plan(0);
    EXPECT_TRUE(pass && resolve(pass->ticket, {3}));
    return round.commit(sequence, {}).cut;
  };
  begin();
  round.open(limits);
  Draft draft = round.blank({});
  draft.leave_out();
  round.propose(draft, 1, false);
  EXPECT_EQ(cut(), Cut::unlikely);
  round.open(limits);  // a round without a draft
  EXPECT_EQ(cut(), Cut::no_match);
}

/// Rounds with two pending tokens, 7 and 8, a depth limit of 2, and the pad token -5.
struct BuiltPass : OpenRoundTest {
  Capabilities can{.allowed_widths = {1}, .pad_token = -5};

  void propose(const std::vector<DraftNode>& nodes, std::size_t leaves, DraftKind kind = DraftKind::ordered) {
    ASSERT_TRUE(sequence.begin(std::vector<Token>{6, 7, 8}, can, 1));
    ASSERT_TRUE(round.reserve(8, can, 1));
    limits.draft.max_depth = 2;
    round.close();
    round.open(limits);
    Draft draft = round.blank({.max_leaves = leaves});
    draft.clear(kind);
    for (const DraftNode& node : nodes) draft.push(node);
    round.propose(draft, leaves, false);
  }
  /// Plans a pass with as many pad rows as the choice says, whatever the depth limit of a chain.
  Pass plan(const DraftChoice& choice, std::span<const std::size_t> widths = {}) {
    auto room = round.fit(sequence, unlimited, Cut::budget);
    EXPECT_TRUE(room);
    room->nodes = unlimited;
    room->widths = widths;
    EXPECT_TRUE(round.plan(sequence, choice, *room, true));
    return round.pass(sequence);
  }
  bool fits(std::size_t nodes, std::size_t padding) {
    return plan({nodes, padding, Cut::none}).drafted == nodes + padding;
  }
  Outcome commit(Ticket ticket, const std::vector<Token>& picks = {99}) {
    EXPECT_TRUE(resolve(ticket, picks));
    return round.commit(sequence, {});
  }
};
// The last node is deeper than the rounds of these tests allow.
const std::vector<DraftNode> tree = {{.token = 1}, {.token = 2}, {.token = 3, .parent = 0}, {.token = 4, .parent = 2}};
// The path of these nodes that a chain keeps.
const std::vector<DraftNode> path = {{.token = 1}, {.token = 3, .parent = 0}, {.token = 4, .parent = 1}};

TEST_F(BuiltPass, HasPendingTokensDraftAndPadding) {
  propose(tree, 4);
  const Pass pass = plan({2, 1, Cut::none});
  EXPECT_THAT(round.sendable().first(2), ElementsAre(0, 1));
  EXPECT_THAT(pass.batch, ElementsAre(7, 8, 1, 2, -5));
  EXPECT_THAT(pass.parents, ElementsAre(-1, -1, -1));
  EXPECT_THAT(pass.depths, ElementsAre(1, 1, 1));
  EXPECT_THAT(pass.nodes, ElementsAre(0, 1, 4));
  EXPECT_EQ(pass.drafted, 3U);
  EXPECT_EQ(pass.padding, 1U);
  EXPECT_EQ(pass.pending, 2U);
  EXPECT_EQ(pass.shape.rows, 5U);
  EXPECT_EQ(pass.shape.context, 3U);
}
TEST_F(BuiltPass, SendsOnlyNodesThatAreNotTooDeep) {
  propose(tree, 4);
  ASSERT_TRUE(round.fit(sequence, unlimited, Cut::budget));
  EXPECT_THAT(round.sendable(), ElementsAre(0, 1, 2));
  propose(path, 1);
  ASSERT_TRUE(round.fit(sequence, unlimited, Cut::budget));
  EXPECT_THAT(round.sendable(), ElementsAre(0, 1));
}
TEST_F(BuiltPass, PadsAChainByGoingOnWithIt) {
  propose(path, 1);
  const Pass padded = plan({2, 3, Cut::none});
  EXPECT_THAT(padded.batch, ElementsAre(7, 8, 1, 3, -5, -5, -5));
  EXPECT_THAT(padded.parents, ElementsAre(-1, 0, 1, 2, 3));
  EXPECT_THAT(padded.depths, ElementsAre(1, 2, 3, 4, 5));
  // The same draft, planned again without padding, then with padding only.
  EXPECT_THAT(plan({1, 0, Cut::none}).batch, ElementsAre(7, 8, 1));
  const Pass padding = plan({0, 2, Cut::none});
  EXPECT_THAT(padding.batch, ElementsAre(7, 8, -5, -5));
  EXPECT_THAT(padding.parents, ElementsAre(-1, 0));
  EXPECT_THAT(padding.depths, ElementsAre(1, 2));
  const Outcome outcome = commit(padding.ticket);
  EXPECT_EQ(outcome.draft[3].parent, anchor_parent);
  EXPECT_EQ(outcome.draft[4].parent, 3);
}
TEST_F(BuiltPass, IsShortenedFromItsLastRowOn) {
  propose(path, 1);
  static_cast<void>(plan({2, 3, Cut::none}));
  const auto shortened = [&](std::size_t drafted) {
    round.shorten(drafted);
    return round.pass(sequence);
  };
  EXPECT_EQ(shortened(5).drafted, 5U) << "as many as it has";
  EXPECT_EQ(shortened(9).drafted, 5U) << "more than it has";
  const Pass padded = shortened(3);
  EXPECT_THAT(padded.batch, ElementsAre(7, 8, 1, 3, -5));
  EXPECT_EQ(padded.padding, 1U);
  const Pass cut_off = shortened(1);
  EXPECT_THAT(cut_off.batch, ElementsAre(7, 8, 1));
  EXPECT_EQ(cut_off.padding, 0U);
  EXPECT_EQ(cut_off.drafted, 1U);
  for (const std::size_t drafted : {2U, 1U}) {
    propose({path[0], path[1]}, 1);
    static_cast<void>(plan({2, 3, Cut::none}));
    EXPECT_EQ(commit(shortened(drafted).ticket).cut, drafted == 2 ? Cut::none : Cut::budget) << drafted;
  }
}
TEST_F(BuiltPass, SendsASampledDraftAsAChain) {
  propose(path, 4, DraftKind::sampled);
  const Pass pass = plan({2, 1, Cut::none});
  EXPECT_THAT(pass.parents, ElementsAre(-1, 0, 1)) << "the pad row goes on with it";
}
TEST_F(BuiltPass, HasPadRowsForThePathsThatAreLeft) {
  propose(tree, 4);
  EXPECT_TRUE(fits(0, 4) && !fits(0, 5));
  EXPECT_TRUE(fits(1, 3) && !fits(1, 4));
  EXPECT_TRUE(fits(2, 2) && !fits(2, 3));
  EXPECT_TRUE(fits(3, 2) && !fits(3, 3)) << "the third goes on with a path";
  propose(tree, 100);
  EXPECT_TRUE(fits(3, 8) && !fits(3, 9)) << "as many as there may be nodes";
  propose(path, 1);
  EXPECT_TRUE(fits(2, 8) && !fits(2, 9));
  can.pad_token.reset();
  propose(tree, 4);
  EXPECT_FALSE(fits(0, 1));
}
TEST_F(BuiltPass, SendsNothingWhereThereCannotBeAsManyPadRows) {
  propose(tree, 4);
  const std::array<std::size_t, 2> widths = {3, 10};
  EXPECT_EQ(plan({.nodes = 3, .padding = 5}, widths).drafted, 0U) << "there are paths for two";
  EXPECT_EQ(plan({.nodes = 1}, widths).drafted, 1U);
  const Pass pass = plan({.nodes = 3, .padding = 5}, widths);
  EXPECT_EQ(commit(pass.ticket).cut, Cut::width);
  propose(tree, 2);
  const std::array<std::size_t, 1> five = {5};
  EXPECT_EQ(plan({.nodes = 2, .padding = 1}, five).drafted, 0U) << "not even for one";
}
TEST_F(BuiltPass, KeepsThePendingRowsAndThePath) {
  propose(tree, 4);
  const auto refuse = [](TokenSpan, Token) { return StopDecision::stop_before; };
  const auto refused = round.resolve(sequence, plan({3}).ticket, std::vector<Token>{1}, refuse);
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->rows, ElementsAre(0)) << "a refused pick gives the anchor back";
  const auto none = resolve(plan({3}).ticket, {99});
  ASSERT_TRUE(none);
  EXPECT_THAT(none->rows, ElementsAre(0, 1));
  const Pass pass = plan({3});
  const std::vector<Token> picks = {1, 3, 0, 99};
  const auto decision = resolve(pass.ticket, picks);
  ASSERT_TRUE(decision);
  EXPECT_THAT(decision->rows, ElementsAre(0, 1, 2, 4));
  EXPECT_EQ(decision->keep, 4U);
  EXPECT_EQ(decision->tokens.size(), 3U);
  const Outcome outcome = round.commit(sequence, {});
  EXPECT_THAT(outcome.sent, ElementsAre(0, 1, 2));
  EXPECT_THAT(outcome.accepted, ElementsAre(0, 2));
  EXPECT_EQ(outcome.draft.size(), 4U);
}
TEST_F(BuiltPass, NamesTheNodesOfTheAcceptedRows) {
  // The third node is too deep, so the later rows have other numbers than their nodes.
  propose({{.token = 1}, {.token = 2, .parent = 0}, {.token = 3, .parent = 1}, {.token = 4}, {.token = 5, .parent = 3}},
          4);
  const Outcome outcome = commit(plan({4}).ticket, {4, 0, 0, 5, 99});
  EXPECT_THAT(outcome.sent, ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(outcome.accepted, ElementsAre(3, 4));
}
TEST_F(BuiltPass, ShowsPadRowsAsNodesBehindTheDraft) {
  propose(path, 1);
  const Outcome outcome = commit(plan({1, 2, Cut::none}).ticket);
  ASSERT_EQ(outcome.draft.size(), 5U);
  EXPECT_THAT(outcome.sent, ElementsAre(0, 3, 4));
  EXPECT_EQ(outcome.draft[3].parent, 0);
  EXPECT_EQ(outcome.draft[4].parent, 3);
  EXPECT_EQ(outcome.draft[4].token, -5);
  EXPECT_EQ(outcome.draft[4].source, DraftSource::padding);
  EXPECT_EQ(outcome.draft[4].path_probability, Probability::zero());
  EXPECT_THAT(outcome.accepted, IsEmpty());
  propose(path, 1);
  EXPECT_EQ(commit(plan({2, 2, Cut::none}).ticket).draft[3].parent, 1);
}
TEST_F(BuiltPass, StoresTheLikeliestTokensOfItsRows) {
  propose(tree, 4);
  const Pass pass = plan({2});
  const std::vector<Token> tokens = {5, 6};
  for (const std::size_t row : {0U, 2U, 3U})
    EXPECT_TRUE(round.report_top_k(pass.ticket, row, tokens));  // 3: after the last
  const auto rows = commit(pass.ticket).top_k;
  ASSERT_EQ(rows.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rows[i].after, i < 2 ? anchor_parent : 1);
    EXPECT_EQ(rows[i].rank, i % 2);
    EXPECT_EQ(rows[i].token, tokens[i % 2]);
  }
  propose(tree, 4);
  EXPECT_TRUE(round.report_top_k(plan({2}).ticket, 1, tokens));
  const Pass next = plan({2});
  EXPECT_TRUE(round.report_top_k(next.ticket, 1, std::vector<Token>(1025, 5)));
  EXPECT_EQ(commit(next.ticket).top_k.size(), 1024U) << "those of the earlier pass are gone";
}

TEST_F(BuiltPass, IsRefusedWhereSizesAreBeyondAnyMemory) {
  EXPECT_FALSE(round.reserve(unlimited, can, 1));
  EXPECT_FALSE(round.reserve(unlimited / 2 + 1, can, 1));
  EXPECT_FALSE(round.reserve(1, can, unlimited));
}
TEST_F(BuiltPass, ReservesNoMoreThanTheLargestNeeds) {
  constexpr std::size_t per_row = sizeof(DraftNode) + 3 * sizeof(NodeIndex) + sizeof(std::uint32_t) + sizeof(bool) +
                                  sizeof(Token) + sizeof(std::size_t) + sizeof(CommittedToken);
  constexpr std::size_t per_pending = sizeof(Token) + sizeof(std::size_t);
  constexpr std::size_t bonus = sizeof(CommittedToken);
  ASSERT_TRUE(round.reserve(0, can, 3));
  EXPECT_EQ(round.memory_bytes(), 3 * per_pending + bonus);
  ASSERT_TRUE(round.reserve(8, {}, 3));
  EXPECT_EQ(round.memory_bytes(), 8 * (per_row + sizeof(Constraint)) + 3 * per_pending + bonus);
  ASSERT_TRUE(round.reserve(8, can, 3));
  EXPECT_EQ(round.memory_bytes(), 16 * per_row + 8 * sizeof(Constraint) + 3 * per_pending + bonus);
  propose(tree, 4);
  const Pass pass = plan({3, 1, Cut::none});
  // The batch is longer than the pending tokens that reserve() was told of.
  EXPECT_GE(round.memory_bytes(), 16 * per_row + 8 * sizeof(Constraint) + 3 * per_pending + bonus);
  round.close();
  EXPECT_TRUE(round.draft().empty());
  EXPECT_FALSE(round.is_open(pass.ticket));
}

}  // namespace
}  // namespace reprise::open_round_test
