// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "reprise/core/control.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "support/fails.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

// The session beyond chains of picks: restored states, offers to planners, top-k rows, constraints.
namespace reprise::session_checkpoints_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Listening;
using testing::ScriptedOptions;
using testing::ScriptedVerifier;

/// Sends every node, and keeps the arguments of its calls.
struct Watching : SendAll {
  PassReport report;
  mutable PassLimits room;
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& asked) const {
    room = asked;
    return SendAll::choose(draft, sendable, asked);
  }
  void learn(const Outcome&, const PassReport& told) noexcept { report = told; }
};

using Watched = Session<Listening, Watching>;

Capabilities restoring() {
  Capabilities can;
  can.rollback = Rollback::snapshot;
  return can;
}
std::vector<DraftNode> chain(std::initializer_list<Token> tokens) {
  std::vector<DraftNode> nodes;
  for (const Token token : tokens)
    nodes.push_back({.token = token, .parent = static_cast<NodeIndex>(nodes.size()) - 1});
  return nodes;
}
/// A round with these picks.
Decision round(Watched& session, const Limits& limits, const std::vector<DraftNode>& draft,
               const std::vector<Token>& picks) {
  session.strategy().nodes = draft;
  session.propose(limits);
  const auto pass = session.plan();
  EXPECT_TRUE(pass);
  const auto decision = session.resolve(pass->ticket, picks);
  EXPECT_TRUE(decision);
  EXPECT_TRUE(session.commit(pass->ticket));
  return *decision;
}

struct Checkpoints : ::testing::Test {
  Watched session{Listening{}, 8};
  Limits limits;
  void SetUp() override { ASSERT_TRUE(session.begin(std::vector<Token>{1, 2, 3}, restoring())); }
};

TEST_F(Checkpoints, MakeWhatWasAcceptedPendingWhereARowIsGivenBack) {
  const Decision decision = round(session, limits, chain({4, 5, 9}), {4, 5, 6});
  EXPECT_TRUE(decision.restore);
  EXPECT_EQ(decision.tokens.size(), 3U);
  EXPECT_EQ(session.cached(), 2U);
  EXPECT_THAT(session.pending(), ElementsAre(3, 4, 5, 6));
  EXPECT_TRUE(session.control().report.replayed);
  session.strategy().nodes = chain({7});
  session.propose(limits);
  const auto pass = session.plan();
  EXPECT_THAT(pass->batch, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_EQ(pass->pending, 4U);
}
TEST_F(Checkpoints, KeepAPassOfWhichAllIsAccepted) {
  const Decision decision = round(session, limits, chain({4, 5}), {4, 5, 6});
  EXPECT_FALSE(decision.restore);
  EXPECT_EQ(session.cached(), 5U);
  EXPECT_THAT(session.pending(), ElementsAre(6));
  EXPECT_FALSE(session.control().report.replayed);
}
TEST_F(Checkpoints, TellControlThatRowsAreRunAgain) {
  session.strategy().nodes = chain({4});
  session.propose(limits);
  ASSERT_TRUE(session.plan());
  EXPECT_TRUE(session.control().room.replayed);
  Watched other(Listening{{chain({4})}}, 8);
  ASSERT_TRUE(other.begin(std::vector<Token>{1}));
  other.propose(limits);
  ASSERT_TRUE(other.plan());
  EXPECT_FALSE(other.control().room.replayed);
}
TEST(SessionCheckpoints, GoWithoutADraftWhereTooMuchIsToBeRunAgain) {
  Capabilities can = restoring();
  can.max_replay = 2;
  Watched session(Listening{}, 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}, can));
  round(session, limits, chain({9}), {2});
  round(session, limits, chain({9}), {3});
  EXPECT_EQ(session.pending().size(), 3U);
  round(session, limits, chain({4, 5}), {4});
  EXPECT_EQ(session.statistics().count(Cut::rollback), 1U);
  EXPECT_EQ(session.pending().size(), 1U);
  round(session, limits, chain({5}), {5, 6});
  EXPECT_EQ(session.statistics().count(Cut::rollback), 1U);
}
TEST(SessionCheckpoints, AreRefusedWithoutTheFunctionsForThem) {
  struct Bare {
    Token pick = 0;
    std::vector<Token> verify(TokenSpan, std::size_t) { return {1}; }
    void commit(std::size_t) {}
    [[nodiscard]] Capabilities capabilities() const { return restoring(); }
  };
  Bare bare;
  Watched session(Listening{}, 8);
  const Limits limits;
  EXPECT_THAT(generate(session, bare, std::vector<Token>{1}, limits), testing::fails(ErrorCode::invalid_argument));
}

TEST(SessionOffer, NamesTheNodesThatFitAndChangesNothing) {
  Watched session(Listening{{chain({4, 5, 6, 7})}}, 8);
  Limits limits;
  limits.max_rows = 3;
  ASSERT_TRUE(session.begin(std::vector<Token>{1, 2, 3}));
  session.propose(limits);
  const auto offer = session.offer();
  ASSERT_TRUE(offer);
  EXPECT_EQ(offer->draft.size(), 4U);
  EXPECT_THAT(offer->sendable, ElementsAre(0, 1));
  EXPECT_EQ(offer->pending, 1U);
  const auto pass = session.plan(1, Cut::throttled);
  ASSERT_TRUE(pass);
  EXPECT_EQ(pass->drafted, 1U);
  ASSERT_TRUE(session.resolve(pass->ticket, std::vector<Token>{4, 5}));
  ASSERT_TRUE(session.commit(pass->ticket));
  EXPECT_EQ(session.statistics().count(Cut::throttled), 1U);
}
TEST(SessionOffer, MakesTheTicketVoidBecauseItWritesTheRowsAnew) {
  // One node and a pad row after the anchor. The second node of the draft holds the same token as the pad row.
  struct OneAndAPad : SendAll {
    [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const noexcept {
      return {1, 1, Cut::unlikely};
    }
  };
  Session<Listening, OneAndAPad> session(Listening{{chain({4, 5})}}, OneAndAPad(), 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}, {.allowed_widths = {3}, .pad_token = 5, .max_leaves = 2}));
  session.propose(limits);
  const auto pass = session.plan();
  ASSERT_TRUE(pass);
  ASSERT_THAT(pass->parents, ElementsAre(anchor_parent, anchor_parent));
  ASSERT_TRUE(session.offer());
  EXPECT_EQ(session.resolve(pass->ticket, std::vector<Token>{4, 5, 9}).error().code, ErrorCode::bad_ticket)
      << "9 was picked after [1, 5], not after [1, 4, 5]";
  const auto again = session.plan();
  ASSERT_TRUE(again);
  const auto decision = session.resolve(again->ticket, std::vector<Token>{4, 5, 9});
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->tokens.size(), 2U);
}

TEST(SessionReveal, TellsTheStrategyBehindWhichNodeACandidateStands) {
  std::vector<DraftNode> nodes = chain({4, 9});
  Watched session(Listening{{nodes}, 2}, 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}));
  session.propose(limits);
  const auto pass = session.plan();
  EXPECT_TRUE(session.report_top_k(pass->ticket, 2, std::vector<Token>{30, 31}));
  ASSERT_TRUE(session.resolve(pass->ticket, std::vector<Token>{4, 5, 6}));
  EXPECT_TRUE(session.report_top_k(pass->ticket, 0, std::vector<Token>{4}));
  EXPECT_TRUE(session.report_top_k(pass->ticket, 7, std::vector<Token>{8}));  // no such row: left out
  ASSERT_TRUE(session.commit(pass->ticket));
  const std::vector<Outcome::RankedToken>& told = session.strategy().heard.top_k;
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].after, 1);
  EXPECT_EQ(told[1].token, 31);
  EXPECT_EQ(told[1].rank, 1);
  EXPECT_EQ(told[2].after, anchor_parent);
  EXPECT_EQ(session.report_top_k(pass->ticket, 0, std::vector<Token>{4}).error().code, ErrorCode::bad_ticket);
}
TEST(SessionReveal, ComesFromTheEngineAsOftenAsIsWanted) {
  for (const std::size_t wanted : {0U, 2U, 9U}) {
    ScriptedOptions options;
    options.revealed = 5;
    Watched session(Listening{{chain({4, 5})}, wanted}, 8);
    ScriptedVerifier engine(options, std::vector<Token>{1, 2});
    Limits limits;
    limits.max_tokens = 3;
    ASSERT_TRUE(generate(session, engine, std::vector<Token>{1, 2}, limits));
    EXPECT_EQ(session.strategy().heard.top_k.size() % std::max<std::size_t>(1, std::min<std::size_t>(wanted, 5)), 0U);
    EXPECT_EQ(session.strategy().heard.top_k.empty(), wanted == 0);
    EXPECT_THAT(engine.violations(), IsEmpty());
  }
}

/// Keeps the rows of the prompt, and can throw.
struct RowReader : Listening {
  std::vector<std::vector<Token>> contexts = {};
  std::vector<std::vector<Token>> rows = {};
  bool throws = false;
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    if (throws) throw std::runtime_error("learn_row");
    contexts.emplace_back(context.begin(), context.end());
    rows.emplace_back(likeliest.begin(), likeliest.end());
  }
};
static_assert(RowLearner<RowReader> && !RowLearner<Listening>);

TEST(SessionPromptRows, ArePassedOnWithTheTokensBefore) {
  Session<RowReader, Watching> session(RowReader{}, 8);
  EXPECT_EQ(session.report_prompt_row(0, std::vector<Token>{5}).error().code, ErrorCode::not_begun);
  ASSERT_TRUE(session.begin(std::vector<Token>{1, 2, 3}));
  EXPECT_TRUE(session.report_prompt_row(1, std::vector<Token>{5, 6}));
  EXPECT_TRUE(session.report_prompt_row(0, std::vector<Token>{-1}));
  EXPECT_TRUE(session.report_prompt_row(2, {}));
  EXPECT_THAT(session.strategy().contexts, ElementsAre(ElementsAre(1, 2), ElementsAre(1), ElementsAre(1, 2, 3)));
  EXPECT_THAT(session.strategy().rows, ElementsAre(ElementsAre(5, 6), ElementsAre(-1), IsEmpty()));
  const auto refused = session.report_prompt_row(3, std::vector<Token>{5});
  EXPECT_EQ(refused.error().code, ErrorCode::size_out_of_range);
  EXPECT_EQ(refused.error().value, 3U);
  EXPECT_EQ(refused.error().limit, 2U);
  EXPECT_EQ(session.strategy().rows.size(), 3U);
}
TEST(SessionPromptRows, LeaveAnOpenRoundOpen) {
  Session<RowReader, Watching> session(RowReader{{{chain({4})}}}, 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}));
  session.propose(limits);
  EXPECT_TRUE(session.report_prompt_row(0, std::vector<Token>{5}));
  const auto pass = session.plan();
  ASSERT_TRUE(session.resolve(pass->ticket, std::vector<Token>{4, 5}));
  EXPECT_TRUE(session.report_prompt_row(0, std::vector<Token>{5}));
  EXPECT_EQ(session.report_prompt_row(1, std::vector<Token>{5}).error().code, ErrorCode::size_out_of_range);
  EXPECT_TRUE(session.commit(pass->ticket));
  EXPECT_TRUE(session.report_prompt_row(1, std::vector<Token>{5})) << "the output is committed now";
}
TEST(SessionPromptRows, AreNotPassedToAStrategyThatHasThrown) {
  Session<RowReader, Watching> session(RowReader{}, 8);
  ASSERT_TRUE(session.begin(std::vector<Token>{1, 2}));
  session.strategy().throws = true;
  EXPECT_THROW(static_cast<void>(session.report_prompt_row(0, std::vector<Token>{5})), std::runtime_error);
  session.strategy().throws = false;
  EXPECT_TRUE(session.report_prompt_row(0, std::vector<Token>{5}));
  EXPECT_THAT(session.strategy().rows, IsEmpty());
  ASSERT_TRUE(session.begin(std::vector<Token>{1, 2}));
  EXPECT_TRUE(session.report_prompt_row(0, std::vector<Token>{5}));
  EXPECT_EQ(session.strategy().rows.size(), 1U);
}

TEST(SessionConstrain, LeavesOutWhatIsRefusedAndSaysWhy) {
  Watched session(Listening{{chain({4, 5, 6})}}, 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}));
  session.propose(limits);
  session.constrain([](TokenSpan path) { return std::min<std::size_t>(path.size(), 1); });
  const auto pass = session.plan();
  EXPECT_EQ(pass->drafted, 1U);
  ASSERT_TRUE(session.resolve(pass->ticket, std::vector<Token>{4, 5}));
  ASSERT_TRUE(session.commit(pass->ticket));
  EXPECT_EQ(session.statistics().count(Cut::constraint), 1U);
  session.constrain([](TokenSpan) { return ADD_FAILURE(), std::size_t{0}; });
  EXPECT_EQ(session.plan().error().code, ErrorCode::not_proposed) << "the round is over";
  session.propose(limits);  // nothing of the next draft is refused
  EXPECT_EQ(session.plan()->drafted, 3U);
}
TEST(SessionConstrain, DoesNotLookAtASampledDraft) {
  Watched session(Listening{{chain({4, 5}), DraftKind::sampled}}, 8);
  const Limits limits;
  ASSERT_TRUE(session.begin(std::vector<Token>{1}));
  session.propose(limits);
  session.constrain([](TokenSpan) { return ADD_FAILURE(), std::size_t{0}; });
  EXPECT_EQ(session.plan()->drafted, 2U);
}

/// An engine whose state folds all tokens. Its picks are drawn when they are read, and the k-th pick throws.
class FoldingEngine {
 public:
  struct LazyPicks {
    FoldingEngine* engine;
    Token operator[](std::size_t) const { return engine->pick(); }
  };
  explicit FoldingEngine(int failing_pick) : failing_pick_(failing_pick) {}

  void snapshot() {
    if (open_) state_ = saved_;
    open_ = false;
    saved_ = state_;
  }
  LazyPicks verify(TokenSpan batch, std::size_t) {
    for (const Token token : batch) state_ = state_ * 31 + static_cast<unsigned>(token) + 7;
    open_ = true;
    return {this};
  }
  void commit(std::size_t) { open_ = false; }
  void restore(std::size_t) {
    state_ = saved_;
    open_ = false;
  }
  [[nodiscard]] Capabilities capabilities() const { return {.rollback = Rollback::snapshot}; }

 private:
  Token pick() {
    if (--failing_pick_ == 0) throw std::runtime_error("a sampler failed");
    return static_cast<Token>(state_ >> 5 & 15);
  }

  unsigned state_ = 1;
  unsigned saved_ = 1;
  int failing_pick_;
  bool open_ = false;
};

TEST(LazyCheckpoints, APassWithoutDraftWhosePickFailsIsGivenBackToo) {
  const std::vector<Token> prompt = {3};
  const Limits limits{.max_tokens = 10};
  Session<archetype::Strategy> plain;
  FoldingEngine sound(0);
  const auto wanted = generate(plain, sound, prompt, limits);
  ASSERT_TRUE(wanted);

  Session<archetype::Strategy> session;
  FoldingEngine engine(4);
  EXPECT_THROW(static_cast<void>(generate(session, engine, prompt, limits)), std::runtime_error);
  const auto went_on = generate(session, engine, limits);
  ASSERT_TRUE(went_on);
  EXPECT_TRUE(std::equal(went_on->tokens.begin(), went_on->tokens.end(), wanted->tokens.begin(), wanted->tokens.end()));
}

/// The same engine, with all picks drawn at once.
class EagerEngine : public FoldingEngine {
 public:
  EagerEngine() : FoldingEngine(0) {}
  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    picks_.assign(drafted + 1, FoldingEngine::verify(batch, drafted)[0]);
    return picks_;
  }

 private:
  std::vector<Token> picks_;
};

TEST(EagerCheckpoints, APassWithoutDraftWhosePickIsRefusedIsGivenBackToo) {
  const std::vector<Token> prompt = {3};
  const Limits limits{.max_tokens = 10};
  Session<archetype::Strategy> plain;
  EagerEngine sound;
  const auto wanted = generate(plain, sound, prompt, limits);
  ASSERT_TRUE(wanted);

  Session<archetype::Strategy> session;
  EagerEngine engine;
  const auto stop = [](TokenSpan output, Token) {
    return output.size() == 4 ? StopDecision::stop_before : StopDecision::proceed;
  };
  const auto stopped = generate(
      session, engine, prompt, limits, [](TokenSpan) { return true; }, stop);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->tokens.size(), 4U);
  ASSERT_TRUE(session.truncate(session.context().size()));  // clears the reason of the end
  const auto went_on = generate(session, engine, limits);
  ASSERT_TRUE(went_on);
  EXPECT_TRUE(std::equal(went_on->tokens.begin(), went_on->tokens.end(), wanted->tokens.begin(), wanted->tokens.end()));
}

/// Drafts one sampled token, and control sends none.
struct SampledListening : Listening {
  static constexpr std::array<float, 2> weights = {1, 0};
  [[nodiscard]] std::span<const float> distribution(NodeIndex) const { return weights; }
};
struct SendsNothing : SendAll {
  [[nodiscard]] DraftChoice choose(DraftView, std::span<const NodeIndex>, const PassLimits&) const noexcept {
    return {0, 0, Cut::unlikely};
  }
};
/// An engine whose picks have a size, and whose distribution of one pass has no weight.
class WeightlessEngine {
 public:
  explicit WeightlessEngine(int failing_pass) : failing_pass_(failing_pass) {}
  void snapshot() { saved_ = state_; }
  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    for (const Token token : batch) state_ = state_ * 31 + static_cast<unsigned>(token) + 7;
    --failing_pass_;
    picks_.assign(drafted + 1, static_cast<Token>(state_ & 1));
    return picks_;
  }
  void commit(std::size_t) {}
  void restore(std::size_t) { state_ = saved_; }
  [[nodiscard]] unsigned saved() const { return saved_; }
  [[nodiscard]] unsigned state() const { return state_; }
  [[nodiscard]] std::span<const float> probabilities(std::size_t) {
    weights_ = {failing_pass_ == 0 ? 0.0F : 1.0F, 0.0F};
    return weights_;
  }
  double uniform() { return 0.5; }
  [[nodiscard]] Capabilities capabilities() const { return {.rollback = Rollback::snapshot}; }

 private:
  std::vector<Token> picks_;
  std::array<float, 2> weights_ = {};
  unsigned state_ = 1;
  unsigned saved_ = 1;
  int failing_pass_;
};

TEST(SampledCheckpoints, APassWhoseSampledDraftWasCutToNothingHasASnapshotToo) {
  Session<SampledListening, SendsNothing> session(SampledListening{{{chain({0}), DraftKind::sampled}}}, SendsNothing(),
                                                  8);
  WeightlessEngine engine(3);
  const std::vector<Token> prompt = {1};
  EXPECT_THAT(generate(session, engine, prompt, Limits{.max_tokens = 10}), testing::fails(ErrorCode::verifier_failed));
  // Before the pass that failed, the engine had folded the prompt and one token: two passes.
  unsigned before = 1;
  for (const unsigned token : {1U, 0U}) before = before * 31 + token + 7;
  EXPECT_EQ(engine.saved(), before) << "the state before the pass that became void";
}

}  // namespace
}  // namespace reprise::session_checkpoints_test
