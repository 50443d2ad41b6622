// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <vector>

#include "support/archetypes.hpp"
#include "support/fails.hpp"
#include "support/witness.hpp"

// Every function of a session can be instantiated, with any control.
template class reprise::Session<reprise::archetype::Strategy, reprise::archetype::Control>;

namespace reprise::session_test {
namespace {

using std::chrono::nanoseconds;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr Token lowest = std::numeric_limits<Token>::min();

/// Always drafts the same tokens, and throws where the flags say so.
struct FixedDraft {
  std::vector<Token> draft;
  bool throw_in_begin = false;
  bool throw_in_observe = false;
  bool throw_in_truncate = false;
  bool throw_in_feedback = false;
  int asked = 0;

  static void maybe(bool now) {
    if (now) throw std::runtime_error("strategy");
  }
  void begin(TokenSpan) { maybe(throw_in_begin); }
  void observe(TokenSpan, std::size_t, Origin) { maybe(throw_in_observe); }
  void feedback(TokenSpan, const Outcome&) { maybe(throw_in_feedback); }
  void truncate(TokenSpan, std::size_t) { maybe(throw_in_truncate); }
  void propose(TokenSpan, Draft& out) {
    ++asked;
    for (const Token token : draft) out.extend({.token = token});
  }
};

template <class T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  EXPECT_FALSE(result.error().message.empty());
  return result.error().code;
}

struct SessionTest : ::testing::Test {
  Limits limits;
  const std::vector<Token> prompt = {10, -20, lowest};
  Session<FixedDraft> session{FixedDraft{{1, 2, 3, 4}}};

  void begin(Capabilities capabilities = {}) { ASSERT_TRUE(session.begin(prompt, capabilities)); }
  Result<Pass> next_pass() {
    session.propose(limits);
    return session.plan();
  }
  /// One whole round in which the target picks `picks`.
  Decision round(const std::vector<Token>& picks) {
    auto pass = next_pass();
    EXPECT_TRUE(pass);
    auto decision = session.resolve(pass->ticket, TokenSpan(picks));
    EXPECT_TRUE(decision);
    EXPECT_TRUE(session.commit(pass->ticket));
    return *decision;
  }
};

// ------------------------------------------------------------------------------------------------ begin
TEST_F(SessionTest, RefusesEnginesThatCannotRollBack) {
  EXPECT_EQ(code_of(session.begin(prompt, {.rollback = Rollback::none})), ErrorCode::invalid_argument);
  for (const Rollback rollback : {Rollback::trim, Rollback::snapshot, Rollback::per_row})
    EXPECT_TRUE(session.begin(prompt, {.rollback = rollback}));
  EXPECT_EQ(code_of(session.begin(prompt, {.max_rows = 0})), ErrorCode::invalid_argument);
}

TEST_F(SessionTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(code_of(session.begin({})), ErrorCode::empty_context);
  const auto refused = session.begin(prompt, {.max_context = 2});
  EXPECT_EQ(code_of(refused), ErrorCode::context_too_long);
  EXPECT_EQ(refused.error().value, 3U);
  EXPECT_EQ(refused.error().limit, 2U);
  EXPECT_EQ(code_of(session.begin(prompt, {}, 3)), ErrorCode::cached_out_of_range) << "the cache holds the anchor";
  EXPECT_EQ(code_of(session.begin(prompt, {.max_rows = 2}, 0)), ErrorCode::too_many_pending);
  begin({.max_context = 4});
  EXPECT_EQ(code_of(session.append(std::array<Token, 2>{1, 2})), ErrorCode::context_too_long);
  EXPECT_EQ(code_of(session.append(std::array<Token, 1>{1}, Origin::prompt, 4)), ErrorCode::cached_out_of_range);
  EXPECT_THAT(session.context(), ElementsAreArray(prompt));
}

// ----------------------------------------------------------------------------------- the order of calls
TEST_F(SessionTest, AnswersEveryCallBeforeBeginWithAValue) {
  EXPECT_TRUE(session.propose(limits).empty());
  EXPECT_EQ(code_of(session.plan()), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.offer()), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.append(prompt)), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.truncate(1)), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.set_cached(0)), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.fork()), ErrorCode::not_begun);
  EXPECT_EQ(code_of(session.commit(Ticket{})), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.cancel(Ticket{})), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.resolve(Ticket{}, TokenSpan(prompt))), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.shorten(Ticket{}, 0)), ErrorCode::bad_ticket);
}
TEST_F(SessionTest, PlansOnlyAfterAProposal) {
  begin();
  EXPECT_EQ(code_of(session.offer()), ErrorCode::not_proposed);
  EXPECT_EQ(code_of(session.plan()), ErrorCode::not_proposed);
  round({5});
  EXPECT_EQ(code_of(session.plan()), ErrorCode::not_proposed);
}
TEST_F(SessionTest, TakesATicketOnce) {
  begin();
  const auto pass = next_pass();
  const std::array<Token, 1> picks = {7};
  EXPECT_EQ(code_of(session.commit(pass->ticket)), ErrorCode::bad_ticket);  // not resolved yet
  ASSERT_TRUE(session.shorten(pass->ticket, 1));
  ASSERT_TRUE(session.resolve(pass->ticket, picks));
  EXPECT_EQ(code_of(session.resolve(pass->ticket, picks)), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.shorten(pass->ticket, 0)), ErrorCode::bad_ticket);
  ASSERT_TRUE(session.commit(pass->ticket));
  EXPECT_EQ(code_of(session.commit(pass->ticket)), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.cancel(pass->ticket)), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.resolve(pass->ticket, picks)), ErrorCode::bad_ticket);
  EXPECT_EQ(session.statistics().passes, 1U);
  EXPECT_THAT(session.output(), ElementsAre(7));
}
TEST_F(SessionTest, VoidsATicketWhenTheSequenceChanges) {
  begin();
  Ticket ticket = next_pass()->ticket;
  ASSERT_TRUE(session.truncate(3));
  EXPECT_EQ(code_of(session.resolve(ticket, TokenSpan(prompt))), ErrorCode::bad_ticket);
  ticket = next_pass()->ticket;
  ASSERT_TRUE(session.append(prompt));
  EXPECT_EQ(code_of(session.cancel(ticket)), ErrorCode::bad_ticket);
  ticket = next_pass()->ticket;
  ASSERT_TRUE(session.begin(prompt));
  EXPECT_EQ(code_of(session.commit(ticket)), ErrorCode::bad_ticket);
  ticket = next_pass()->ticket;
  ASSERT_TRUE(session.abandon(ticket));
  EXPECT_EQ(code_of(session.cancel(ticket)), ErrorCode::bad_ticket);
}
/// Counts the passes that it is told will not run.
struct Cancellable : SendAll {
  int cancelled = 0;
  void cancel() { ++cancelled; }
};
TEST_F(SessionTest, TellsControlThatAPlannedPassWillNotRun) {
  Session<FixedDraft, Cancellable> planned{FixedDraft{{1, 2}}};
  ASSERT_TRUE(planned.begin(prompt));
  const auto cancels = [&](auto&& call) {
    planned.propose(limits);
    const auto pass = planned.plan();
    EXPECT_TRUE(pass);
    const int before = planned.control().cancelled;
    call(*pass);
    return planned.control().cancelled > before;
  };
  EXPECT_TRUE(cancels([&](const Pass&) { planned.propose(limits); }));
  EXPECT_TRUE(cancels([&](const Pass& pass) { EXPECT_TRUE(planned.cancel(pass.ticket)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.append(std::array<Token, 1>{5})); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.truncate(3)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.rebase(prompt)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.set_cached(1)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.reserve(100)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { EXPECT_TRUE(planned.begin(prompt)); }));
  EXPECT_TRUE(cancels([&](const Pass&) { planned.finish(); }));
}

TEST_F(SessionTest, DecidesTheSameFromLazyPicksSpansAndAnAcceptedPath) {
  const std::vector<Token> picks = {1, 2, 3, 8};
  const std::array<std::size_t, 4> rows = {0, 1, 2, 3};
  struct Lazy {
    const std::vector<Token>& from;
    Token operator[](std::size_t i) const { return from.at(i); }
  };
  for (int way = 0; way < 3; ++way) {
    begin();
    const auto pass = next_pass();
    const auto decision = way == 0   ? session.resolve(pass->ticket, Lazy{picks})
                          : way == 1 ? session.resolve(pass->ticket, TokenSpan(picks))
                                     : session.resolve(pass->ticket, Accepted{rows, picks});
    ASSERT_TRUE(decision);
    EXPECT_EQ(decision->accepted, 3U);
    EXPECT_EQ(decision->keep, 4U);
    ASSERT_EQ(decision->tokens.size(), 4U);
    EXPECT_EQ(decision->tokens[3].row, 3U);
    EXPECT_FALSE(decision->tokens[3].drafted);
  }
}

TEST_F(SessionTest, RefusesAPathThatIsNotOfThePass) {
  begin();
  const auto old = next_pass();
  const auto pass = session.plan(1);
  ASSERT_TRUE(old && pass);
  const std::vector<std::size_t> rows = {0, 1};
  const std::vector<std::size_t> beyond = {0, 5};
  const std::vector<Token> tokens = {1, 7};
  EXPECT_EQ(code_of(session.resolve(old->ticket, Accepted{rows, tokens})), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.resolve(pass->ticket, Accepted{beyond, tokens})), ErrorCode::bad_picks);
  EXPECT_EQ(code_of(session.resolve(pass->ticket, TokenSpan())), ErrorCode::bad_picks) << "no picks";
  ASSERT_TRUE(session.resolve(pass->ticket, Accepted{rows, tokens})) << "the pass is still open";
  EXPECT_EQ(code_of(session.resolve(pass->ticket, Accepted{rows, tokens})), ErrorCode::bad_ticket) << "once";
}

// ------------------------------------------------------------------------------- turns, forks and losses
TEST_F(SessionTest, AppendsAPartOfItsOwnContext) {
  begin();
  round({1, 2, 9});
  std::vector<Token> expected(session.context().begin(), session.context().end());
  while (expected.size() < 5000) {  // so that the context is reallocated on the way
    const TokenSpan part = expected.size() < 20 ? session.output() : session.context().subspan(1);
    const std::vector<Token> copied(part.begin(), part.end());
    expected.insert(expected.end(), copied.begin(), copied.end());
    ASSERT_TRUE(session.append(part));
    ASSERT_THAT(session.context(), ElementsAreArray(expected));
    round({7, 8});
    expected.insert(expected.end(), {7});
  }
  ASSERT_TRUE(session.begin(session.context().subspan(4999)));
  EXPECT_THAT(session.context(), ElementsAreArray(TokenSpan(expected).subspan(4999)));
}
TEST_F(SessionTest, CutsTokensAndTheirStatisticsTogether) {
  limits.eos = {9};
  begin();
  round({1, 2, 9});
  EXPECT_EQ(session.finish_reason(), FinishReason::eos);
  EXPECT_THAT(session.output(), ElementsAre(1, 2));
  ASSERT_TRUE(session.truncate(4));
  EXPECT_FALSE(session.finished());
  EXPECT_THAT(session.output(), ElementsAre(1));
  EXPECT_EQ(session.cached(), 3U);
  EXPECT_EQ(session.statistics().tokens, 1U);
  EXPECT_EQ(session.statistics().passes, 1U);
  EXPECT_EQ(session.statistics().drafted, 4U);
  ASSERT_TRUE(session.truncate(1));
  EXPECT_TRUE(session.output().empty());
  EXPECT_EQ(session.cached(), 0U);
  EXPECT_EQ(session.statistics().tokens, 0U);
}
TEST_F(SessionTest, RefusesToTruncateToNothingOrBeyondTheEnd) {
  begin();
  EXPECT_EQ(code_of(session.truncate(0)), ErrorCode::size_out_of_range);
  EXPECT_EQ(code_of(session.truncate(4)), ErrorCode::size_out_of_range);
  EXPECT_TRUE(session.truncate(3));
}
TEST_F(SessionTest, FollowsACacheThatIsLostOrFilled) {
  begin({.max_rows = 4});
  round({1, 2, 9});
  EXPECT_EQ(code_of(session.set_cached(0)), ErrorCode::too_many_pending);
  EXPECT_EQ(code_of(session.set_cached(6)), ErrorCode::cached_out_of_range);
  ASSERT_TRUE(session.set_cached(4));
  EXPECT_THAT(session.pending(), ElementsAre(2, 9));
  ASSERT_TRUE(session.set_cached(3));
  EXPECT_THAT(next_pass()->batch, ElementsAre(1, 2, 9, 1));
  ASSERT_TRUE(session.set_cached(5));  // prefilled after all
  EXPECT_THAT(session.pending(), ElementsAre(9));
}
TEST_F(SessionTest, EndsOnBehalfOfTheCallerUntilTheNextTurn) {
  begin();
  const auto pass = next_pass();
  session.finish();
  EXPECT_EQ(session.finish_reason(), FinishReason::caller);
  EXPECT_EQ(code_of(session.commit(pass->ticket)), ErrorCode::bad_ticket);
  session.propose(limits);
  EXPECT_EQ(code_of(session.plan()), ErrorCode::finished);
  ASSERT_TRUE(session.append(prompt));
  EXPECT_FALSE(session.finished());
}
TEST_F(SessionTest, HandsOutSettledTokensOnce) {
  limits.stop_sequences = {{5, 6, 7}};
  begin();
  round({4});
  round({5});
  EXPECT_THAT(session.take_settled(limits), ElementsAre(4));
  EXPECT_TRUE(session.take_settled(limits).empty());
  round({8});
  EXPECT_THAT(session.take_settled(limits), ElementsAre(5, 8));
  EXPECT_EQ(session.taken(), 3U);
  ASSERT_TRUE(session.truncate(prompt.size() + 1));
  round({9});
  EXPECT_THAT(session.take_settled(limits), ElementsAre(9));
  ASSERT_TRUE(session.append(prompt));
  EXPECT_EQ(session.taken(), 0U);
}
TEST_F(SessionTest, GoesOnAfterItReservedMoreThanThereIs) {
  begin();
  EXPECT_EQ(code_of(session.reserve(unlimited)), ErrorCode::out_of_memory);
  round({1, 9});
  EXPECT_THAT(session.output(), ElementsAre(1, 9));
}
TEST_F(SessionTest, CountsAReasonThatIsNoCutAsTheBudget) {
  begin();
  session.propose(limits);
  const auto pass = session.plan(1, static_cast<Cut>(cut_count));
  ASSERT_TRUE(pass && session.resolve(pass->ticket, std::array<Token, 1>{9}) && session.commit(pass->ticket));
  EXPECT_EQ(session.statistics().count(Cut::budget), 1U);
}
TEST_F(SessionTest, SendsNoDraftWhenALimitIsLoweredWithinTheRound) {
  begin({.max_context = 20});
  session.propose(limits);
  limits.max_tokens = 0;
  limits.max_context = 3;
  const auto pass = session.plan();
  ASSERT_TRUE(pass);
  EXPECT_EQ(pass->drafted, 0U);
}
TEST_F(SessionTest, StaysFinishedByTheCallerWhenALimitIsRaised) {
  begin();
  limits.max_tokens = 0;
  session.propose(limits);
  EXPECT_EQ(session.finish_reason(), FinishReason::max_tokens);
  session.finish();
  limits.max_tokens = 5;
  session.propose(limits);
  EXPECT_EQ(session.finish_reason(), FinishReason::caller);
  ASSERT_TRUE(session.truncate(2));
  EXPECT_FALSE(session.finished());
}
TEST_F(SessionTest, CountsWhatCommittedRoundsDid) {
  begin();
  session.add_drafting_time(nanoseconds(40));
  round({1, 2, 8});
  session.add_drafting_time(nanoseconds(2));
  const auto pass = next_pass();
  ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 1>{8}));
  ASSERT_TRUE(session.commit(pass->ticket, nanoseconds(100)));
  ASSERT_TRUE(next_pass());  // never committed
  const Statistics& counted = session.statistics();
  EXPECT_EQ(counted.passes, 2U);
  EXPECT_EQ(counted.tokens, 4U);
  EXPECT_EQ(counted.from(DraftSource::unknown), (Statistics::Sent{8, 2}));
  EXPECT_EQ(counted.at_depth(1), (Statistics::Sent{2, 1}));
  EXPECT_EQ(counted.at_depth(3), (Statistics::Sent{2, 0}));
  EXPECT_EQ(counted.pass_time, (Statistics::Time{1, 100}));
  EXPECT_EQ(counted.drafting_time, (Statistics::Time{2, 42}));
}
TEST_F(SessionTest, CountsTheBytesItHolds) {
  const std::size_t before = session.memory_bytes();
  begin();
  EXPECT_GE(session.memory_bytes(), before + 3 * sizeof(Token));
}

// --------------------------------------------------------------------------------- strategies that throw
TEST_F(SessionTest, DoesNotAskAStrategyThatLostStepUntilTheNextBegin) {
  begin();
  session.strategy().throw_in_observe = true;
  const auto pass = next_pass();
  ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 2>{1, 9}));
  EXPECT_THROW(static_cast<void>(session.commit(pass->ticket)), std::runtime_error);
  EXPECT_THAT(session.output(), ElementsAre(1, 9));  // the engine has committed, and so has the session
  EXPECT_EQ(session.cached(), 4U);
  session.strategy().throw_in_observe = false;
  const int asked = session.strategy().asked;
  round({7});
  EXPECT_EQ(session.strategy().asked, asked);
  EXPECT_THAT(session.output(), ElementsAre(1, 9, 7));
  EXPECT_EQ(session.statistics().count(Cut::strategy_threw), 1U);
  begin();
  EXPECT_EQ(next_pass()->drafted, 4U);
}
TEST_F(SessionTest, StaysUsableWhenTheStrategyThrowsElsewhere) {
  session.strategy().throw_in_begin = true;
  EXPECT_THROW(static_cast<void>(session.begin(prompt)), std::runtime_error);
  round({5});
  EXPECT_THAT(session.output(), ElementsAre(5));
  session.strategy().throw_in_begin = false;
  begin();
  session.strategy().throw_in_truncate = true;
  EXPECT_THROW(static_cast<void>(session.truncate(2)), std::runtime_error);
  round({5});
  EXPECT_THAT(session.context(), ElementsAre(10, -20, 5));
  begin();
  session.strategy().throw_in_feedback = true;
  const auto pass = next_pass();
  ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 1>{6}));
  EXPECT_THROW(static_cast<void>(session.commit(pass->ticket)), std::runtime_error);
  EXPECT_THAT(session.output(), ElementsAre(6));
  EXPECT_EQ(next_pass()->drafted, 0U);
}
TEST_F(SessionTest, IsAsBeforeWhenThePredicateThrows) {
  begin();
  const auto pass = next_pass();
  const auto predicate = [](TokenSpan, Token) -> StopDecision { throw std::runtime_error("predicate"); };
  EXPECT_THROW(static_cast<void>(session.resolve(pass->ticket, TokenSpan(prompt), predicate)), std::runtime_error);
  EXPECT_THAT(session.context(), ElementsAreArray(prompt));
  EXPECT_TRUE(session.resolve(pass->ticket, TokenSpan(prompt)));
}

TEST(Session, EndedBeforeItsBeginningStillHasToBegin) {
  Session<FixedDraft> session{FixedDraft{{1, 2}}};
  session.finish();
  EXPECT_FALSE(session.finished());
  const Limits limits;
  session.propose(limits);
  EXPECT_EQ(code_of(session.plan()), ErrorCode::not_begun);
}

TEST(Session, TellsTheStrategyEveryTokenOnce) {
  Session<testing::Witness<FixedDraft>> session{testing::Witness(FixedDraft{{1, 2}})};
  const std::array<Token, 2> prompt = {3, 4};
  Limits limits;
  ASSERT_TRUE(session.begin(prompt));
  session.propose(limits);
  const auto pass = session.plan();
  ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 2>{1, 9}));
  ASSERT_TRUE(session.commit(pass->ticket));
  ASSERT_TRUE(session.append(prompt));
  EXPECT_THAT(session.strategy().seen(), ElementsAre(3, 4, 1, 9, 3, 4));
  EXPECT_EQ(session.strategy().breached(), "");
  EXPECT_EQ(session.strategy().feedbacks(), 1U);
}

struct NeverForks : SendAll {
  [[nodiscard]] bool may_fork() const noexcept { return false; }
};
TEST(SessionFork, IsMadeOnlyIfControlAllowsIt) {
  Session<archetype::Strategy, NeverForks> session;
  ASSERT_TRUE(session.begin(std::vector<Token>{1, 2}));
  EXPECT_THAT(session.fork(), testing::fails(ErrorCode::too_many_pending));
  Session<archetype::Strategy> other;
  ASSERT_TRUE(other.begin(std::vector<Token>{1, 2}));
  EXPECT_TRUE(other.fork());
}
TEST_F(SessionTest, IsAsBeforeARoundThatIsCancelled) {
  begin();
  for (int i = 0; i < 2; ++i) {
    const auto pass = next_pass();
    EXPECT_THAT(pass->batch, ElementsAre(lowest, 1, 2, 3, 4));
    if (i == 1) {
      ASSERT_TRUE(session.resolve(pass->ticket, std::array<Token, 2>{1, 9}));
    }
    ASSERT_TRUE(session.cancel(pass->ticket));
    EXPECT_EQ(session.statistics(), Statistics{});
    EXPECT_THAT(session.context(), ElementsAreArray(prompt));
  }
  round({1, 9});
  EXPECT_THAT(session.output(), ElementsAre(1, 9));
}

TEST_F(SessionTest, GivesAnOpenRoundUpWhenItReserves) {
  begin();
  const auto pass = next_pass();
  ASSERT_TRUE(session.reserve(100'000));
  EXPECT_EQ(code_of(session.resolve(pass->ticket, std::array<Token, 1>{1})), ErrorCode::bad_ticket);
  round({1, 9});
  EXPECT_THAT(session.output(), ElementsAre(1, 9));
}

TEST_F(SessionTest, BeginsANewOutputBehindAppendedTokens) {
  begin();
  round({1, 2, 9});
  const std::array<Token, 2> turn = {30, 31};
  ASSERT_TRUE(session.append(turn));
  EXPECT_TRUE(session.output().empty());
  EXPECT_EQ(session.statistics(), Statistics{});
  EXPECT_EQ(session.cached(), 7U);
  round({5});
  EXPECT_THAT(session.output(), ElementsAre(5));
}

TEST_F(SessionTest, HoldsBackWhatAStopSequenceMayTakeBack) {
  limits.stop_sequences = {{5, 6, 7}};
  begin();
  round({4});
  round({5});
  EXPECT_THAT(session.settled_output(limits), ElementsAre(4));
  round({6});
  EXPECT_THAT(session.settled_output(limits), ElementsAre(4));
  EXPECT_THAT(session.output(), ElementsAre(4, 5, 6));
  round({8});
  EXPECT_THAT(session.settled_output(limits), ElementsAre(4, 5, 6, 8));
}

TEST_F(SessionTest, BeginsAgainFromItsOwnContext) {
  begin();
  round({1, 9});
  ASSERT_TRUE(session.begin(session.context().subspan(1)));
  EXPECT_THAT(session.context(), ElementsAre(prompt[1], prompt[2], 1, 9));
}

}  // namespace
}  // namespace reprise::session_test
