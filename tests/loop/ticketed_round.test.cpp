// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/detail/ticketed_round.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace reprise::ticketed_round_test {
namespace {

using ::testing::ElementsAre;

struct TicketedRoundTest : ::testing::Test {
  Sequence sequence;
  TicketedRound round;
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
    const auto limit = round.limit(sequence, unlimited, Cut::budget);
    if (!limit) return limit.error();
    if (!round.plan(sequence, round.clamp({nodes, 0, Cut::none}, *limit, {}), *limit, in_step))
      return Sequence::no_memory();
    return round.pass(sequence);
  }
  Result<Decision> resolve(Ticket ticket, const std::vector<Token>& picks) {
    return round.resolve(sequence, ticket, picks, NeverStop{});
  }
  ErrorCode refusal_of_plan() { return plan(0).error().code; }
};

TEST_F(TicketedRoundTest, CommitsWhatWasDecidedAndCloses) {
  begin();
  propose({3, 4, 5});
  const auto pass = plan(2);
  ASSERT_TRUE(pass);
  EXPECT_THAT(pass->batch, ElementsAre(2, 3, 4));
  const auto decision = resolve(pass->ticket, {3, 9});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->accepted, 1U);
  EXPECT_THAT(decision->rows, ElementsAre(0, 1));
  EXPECT_THAT(sequence.context(), ElementsAre(1, 2)) << "nothing changes before the commit";

  ASSERT_TRUE(round.resolved(pass->ticket));
  const PassReport report = round.report(sequence, {});
  EXPECT_EQ(report.plain.rows, 1U);
  EXPECT_EQ(report.sent.rows, 3U);
  EXPECT_EQ(report.committed, 2U);
  EXPECT_FALSE(report.replayed);
  EXPECT_FALSE(report.last);
  ASSERT_TRUE(round.report_top_k(pass->ticket, 1, std::vector<Token>{9, 8}));
  const Outcome outcome = round.commit(sequence, {});
  EXPECT_THAT(sequence.context(), ElementsAre(1, 2, 3, 9));
  ASSERT_EQ(outcome.top_k.size(), 2U);
  EXPECT_EQ(outcome.top_k[1].token, 8);
  EXPECT_THAT(outcome.accepted, ElementsAre(0));
  EXPECT_FALSE(round.resolved(pass->ticket));
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed);
}
TEST_F(TicketedRoundTest, RefusesToPlanWithoutASequenceARoundOrAnEnd) {
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_begun);
  begin();
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed);
  propose({3});
  sequence.finish();
  EXPECT_EQ(refusal_of_plan(), ErrorCode::finished);
}
TEST_F(TicketedRoundTest, ClosesWherePendingTokensDoNotFit) {
  begin({.max_rows = 4});
  ASSERT_TRUE(sequence.append(std::vector<Token>{3, 4}, 1));
  propose({5});
  limits.max_rows = 2;
  EXPECT_EQ(refusal_of_plan(), ErrorCode::too_many_pending);
  limits.max_rows = 4;
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed);
}
TEST_F(TicketedRoundTest, KnowsOnlyTheNewestTicket) {
  begin();
  propose({3, 4});
  const auto old = plan(2);
  const auto pass = plan(1);
  ASSERT_TRUE(old && pass);
  EXPECT_EQ(resolve(old->ticket, {3}).error().code, ErrorCode::bad_ticket);
  EXPECT_FALSE(round.cancel(old->ticket));
  ASSERT_TRUE(resolve(pass->ticket, {3}));
  EXPECT_EQ(resolve(pass->ticket, {3}).error().code, ErrorCode::bad_ticket) << "once";
  EXPECT_TRUE(round.report_top_k(pass->ticket, 0, {}));
  EXPECT_TRUE(round.cancel(pass->ticket));
  EXPECT_FALSE(round.report_top_k(pass->ticket, 0, {}));
}
TEST_F(TicketedRoundTest, ReportsARejectionOfASnapshotEngineAsAReplay) {
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot})
    for (const Token pick : {3, 7}) {
      begin({.rollback = rollback});
      propose({3});
      const auto pass = plan(1);
      ASSERT_TRUE(pass && resolve(pass->ticket, {pick, 4}));
      EXPECT_EQ(round.report(sequence, {}).replayed, rollback == Rollback::snapshot && pick == 7);
    }
}
TEST_F(TicketedRoundTest, OpensWithoutTheDraftBefore) {
  begin();
  propose({3, 4});
  round.open(limits);
  EXPECT_TRUE(round.draft().empty());
}
TEST_F(TicketedRoundTest, KeepsTheDraftOfAPassThatIsGivenUp) {
  begin();
  propose({3, 4});
  const auto pass = plan(2);
  ASSERT_TRUE(pass);
  round.give_pass_up();
  EXPECT_FALSE(resolve(pass->ticket, {3}));
  EXPECT_EQ(round.draft().size(), 2U);
  EXPECT_TRUE(plan(1));
  round.close();
  round.give_pass_up();
  EXPECT_EQ(refusal_of_plan(), ErrorCode::not_proposed) << "there was none to give up";
}
TEST_F(TicketedRoundTest, RefusesPicksThatDecideNothing) {
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
TEST_F(TicketedRoundTest, TakesAnAcceptedPathOnlyWithTheOpenTicket) {
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
TEST_F(TicketedRoundTest, SaysWhyNothingWasDrafted) {
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
  TicketedRound without_nodes;
  ASSERT_TRUE(without_nodes.reserve(0, {}, 1));
  std::swap(round, without_nodes);
  EXPECT_EQ(cut_of(true, false), Cut::budget) << "the session's";
}
TEST_F(TicketedRoundTest, SaysThatTokensWereTooUnlikelyInTheirRoundOnly) {
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

}  // namespace
}  // namespace reprise::ticketed_round_test
