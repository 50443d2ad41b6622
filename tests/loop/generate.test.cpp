// SPDX-License-Identifier: Apache-2.0
#include "reprise/loop/generate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/fails.hpp"
#include "support/oracle_strategy.hpp"
#include "support/scripted_verifier.hpp"

namespace reprise::generate_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::OracleOptions;
using testing::OracleStrategy;
using testing::ScriptedOptions;
using testing::ScriptedVerifier;

/// Counts upwards: the token after t is t + 1.
ScriptedOptions counting() {
  ScriptedOptions options;
  options.order = 1;
  options.table = [](TokenSpan end) { return end.back() + 1; };
  return options;
}

struct Generate : ::testing::Test {
  const std::vector<Token> prompt = {0, 1, 2};
  std::vector<Token> truth = [] {
    std::vector<Token> all(200);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Token>(i);
    return all;
  }();
  Limits limits = [] {
    Limits ten;
    ten.max_tokens = 10;
    return ten;
  }();
  std::vector<Token> streamed;
  std::vector<std::size_t> chunks;

  Session<OracleStrategy> session{OracleStrategy(truth, OracleOptions{.length = 4, .vocabulary = 100})};
  auto stream() {
    return [this](TokenSpan tokens) {
      streamed.insert(streamed.end(), tokens.begin(), tokens.end());
      chunks.push_back(tokens.size());
    };
  }
};

/// Counts upwards, but returns at most `most` picks.
struct FewPicks {
  std::size_t most;
  std::vector<Token> picks = {};

  const std::vector<Token>& verify(TokenSpan batch, std::size_t drafted) {
    picks.clear();
    for (const Token token : batch.last(drafted + 1)) picks.push_back(token + 1);
    picks.resize(std::min(picks.size(), most));
    return picks;
  }
  void commit(std::size_t) {}
};

TEST_F(Generate, RefusesAnEmptyPromptAndOneLongerThanTheLimit) {
  ScriptedVerifier engine(counting());
  EXPECT_EQ(generate(session, engine, {}, limits).error().code, ErrorCode::empty_context);
  limits.max_context = 2;
  EXPECT_EQ(generate(session, engine, prompt, limits).error().code, ErrorCode::context_too_long);
  EXPECT_EQ(engine.counters().verifies, 0U);
}

TEST_F(Generate, AsksTheVerifierWhatItCanDo) {
  ScriptedOptions options = counting();
  options.capabilities.max_context = 6;
  options.capabilities.max_rows = 2;
  ScriptedVerifier engine(options, prompt);
  const auto generation = generate(session, engine, prompt, limits);
  EXPECT_EQ(generation->finish, FinishReason::context_full);
  EXPECT_THAT(generation->tokens, ElementsAre(3, 4, 5));
  EXPECT_TRUE(engine.violations().empty());
}

TEST_F(Generate, RefusesPicksThatEndBeforeTheFirstDisagreement) {
  for (const std::size_t most : {1U, 2U, 4U}) {
    FewPicks engine{most};
    const auto generation = generate(session, engine, prompt, limits);
    ASSERT_FALSE(generation) << most;
    EXPECT_EQ(generation.error().code, ErrorCode::bad_picks);
    EXPECT_EQ(generation.error().value, most);
    EXPECT_THAT(std::string(generation.error().message), ::testing::HasSubstr("ends before the first disagreement"));
    EXPECT_TRUE(session.output().empty()) << "the session is as before the round";
  }
  FewPicks engine{1};
  limits.max_tokens = 1;
  EXPECT_TRUE(generate(session, engine, prompt, limits)) << "the generation ends with the only pick";
  limits.max_tokens = 10;
  limits.draft.max_nodes = 0;
  EXPECT_TRUE(generate(session, engine, prompt, limits)) << "nothing is drafted";
}

TEST_F(Generate, RefusesAnEngineWithoutPicks) {
  FewPicks engine{0};
  EXPECT_EQ(generate(session, engine, prompt, limits).error().code, ErrorCode::bad_picks);
  EXPECT_TRUE(session.output().empty());
}

TEST_F(Generate, ReadsPicksWithoutASizeAsFarAsItNeeds) {
  struct Indexed {
    struct Rows {
      Token first;
      Token operator[](std::size_t i) const { return first + static_cast<Token>(i); }
    };
    Rows verify(TokenSpan batch, std::size_t drafted) { return {batch[batch.size() - drafted - 1] + 1}; }
    void commit(std::size_t) {}
  } engine;
  const auto generation = generate(session, engine, prompt, limits);
  ASSERT_TRUE(generation);
  EXPECT_EQ(generation->statistics.passes, 2U);
}

TEST_F(Generate, GivesTokensFinishReasonAndStatistics) {
  ScriptedVerifier engine(counting(), prompt);
  const auto generation = generate(session, engine, prompt, limits, stream());
  ASSERT_TRUE(generation);
  EXPECT_THAT(generation->tokens, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(generation->finish, FinishReason::max_tokens);
  EXPECT_EQ(generation->statistics.tokens, 10U);
  EXPECT_EQ(generation->statistics.passes, 2U);
  EXPECT_EQ(generation->statistics.accepted, 8U);
  EXPECT_DOUBLE_EQ(generation->statistics.mean_accepted_tokens(), 5.0);
  EXPECT_THAT(chunks, ElementsAre(5, 5));
  EXPECT_TRUE(engine.violations().empty());
}
TEST_F(Generate, StreamsWhatWasHeldBackWhenALimitEndsItBeforeTheFirstPass) {
  limits.stop_sequences = {{6, 7, 8}};
  limits.max_tokens = 10;
  limits.draft.max_nodes = 3;
  ScriptedVerifier engine(counting(), prompt);
  ASSERT_TRUE(generate(session, engine, prompt, limits));
  ASSERT_TRUE(session.truncate(8));  // the output ends ... 6 7
  engine.truncate(session.cached());
  limits.max_tokens = 5;
  const auto generation = generate(session, engine, limits, stream());
  EXPECT_THAT(generation->tokens, ElementsAre(3, 4, 5, 6, 7));
  EXPECT_THAT(streamed, ElementsAre(6, 7));
}
TEST_F(Generate, LetsTheCallbackEndIt) {
  ScriptedVerifier engine(counting(), prompt);
  const auto generation = generate(session, engine, prompt, limits, [](TokenSpan) { return false; });
  EXPECT_EQ(generation->finish, FinishReason::caller);
  EXPECT_EQ(generation->tokens.size(), 5U);
  EXPECT_EQ(generate(session, engine, limits)->tokens.size(), 5U);  // ended until the next turn
}
/// Answers with a span: after each token, the next number.
struct SpanAnswers {
  std::vector<Token> picks;
  TokenSpan verify(TokenSpan batch, std::size_t drafted) {
    picks.clear();
    for (const Token token : batch.last(drafted + 1)) picks.push_back(token + 1);
    return picks;
  }
};
TEST_F(Generate, StreamsOnAfterTheCallbackHasThrown) {
  ScriptedVerifier engine(counting(), prompt);
  const auto throwing = [](TokenSpan) { throw std::runtime_error("callback"); };
  EXPECT_THROW(static_cast<void>(generate(session, engine, prompt, limits, throwing)), std::runtime_error);
  EXPECT_EQ(session.output().size(), 5U);
  ASSERT_TRUE(generate(session, engine, limits, stream()));
  EXPECT_THAT(streamed, ElementsAre(8, 9, 10, 11, 12));
}

TEST_F(Generate, StreamsEveryTokenOnceWhenAStrategyThrowsInBetween) {
  struct ThrowsOnce {
    bool thrown = false;
    void begin(TokenSpan) {}
    void observe(TokenSpan, std::size_t, Origin) {
      if (!std::exchange(thrown, true)) throw std::runtime_error("strategy");
    }
    void propose(TokenSpan, Draft&) {}
    void feedback(TokenSpan, const Outcome&) {}
    void truncate(TokenSpan, std::size_t) {}
  };
  Session<ThrowsOnce> throwing;
  ScriptedVerifier engine(counting(), prompt);
  EXPECT_THROW(static_cast<void>(generate(throwing, engine, prompt, limits, stream())), std::runtime_error);
  ASSERT_TRUE(generate(throwing, engine, limits, stream()));
  EXPECT_THAT(streamed, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
}

/// Drafts a tree in which the right child is never the first.
struct Branching {
  Token last = 0;
  void begin(TokenSpan tokens) { last = tokens.back(); }
  void observe(TokenSpan context, std::size_t, Origin) { last = context.back(); }
  void propose(TokenSpan, Draft& out) const {
    NodeIndex parent = anchor_parent;
    for (Token i = 1; i <= 3; ++i) {
      out.push({.token = last + i + 50, .parent = parent});
      out.push({.token = last + i, .parent = parent});
      parent = 2 * i - 1;
    }
  }
  void feedback(TokenSpan, const Outcome&) {}
  void truncate(TokenSpan, std::size_t) {}
};
/// Hides the engine's tree functions.
struct ChainsOnly {
  ScriptedVerifier& inner;
  auto verify(TokenSpan batch, std::size_t drafted) { return inner.verify(batch, drafted); }
  auto commit(std::size_t keep) { return inner.commit(keep); }
  [[nodiscard]] Capabilities capabilities() const { return inner.capabilities(); }
};
TEST_F(Generate, SendsOnlyChainsToAnEngineThatCannotCheckTrees) {
  ScriptedOptions options = counting();
  options.capabilities.max_leaves = 4;
  for (const bool begun : {false, true}) {
    ScriptedVerifier inner(options, prompt);
    ChainsOnly engine{inner};
    Session<Branching> branching;
    if (begun) {
      ASSERT_TRUE(branching.begin(prompt, options.capabilities));
    }
    const auto generation = begun ? generate(branching, engine, limits) : generate(branching, engine, prompt, limits);
    EXPECT_THAT(generation->tokens, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    EXPECT_EQ(branching.capabilities().max_leaves, begun ? 4U : 1U);
    EXPECT_EQ(generation->statistics.drafted, 9U) << "of each tree the first child of the anchor";
    EXPECT_THAT(inner.violations(), ::testing::IsEmpty());
  }
}
/// Keeps the time of the last pass.
struct Clocked : SendAll {
  std::optional<std::chrono::nanoseconds> time = {};
  void learn(const Outcome&, const PassReport& report) { time = report.time; }
};
TEST_F(Generate, TellsControlHowLongAPassTookWhenTheEngineSaysSo) {
  ScriptedOptions options = counting();
  options.latency = [](const PassShape& shape) { return 100 * shape.rows; };
  ScriptedVerifier engine(options, prompt);
  Session<archetype::Strategy, Clocked> clocked;
  ASSERT_TRUE(generate(clocked, engine, prompt, limits));
  EXPECT_EQ(clocked.control().time, std::chrono::nanoseconds(100));
  ScriptedVerifier inner(counting(), prompt);
  ChainsOnly untimed{inner};
  ASSERT_TRUE(generate(clocked, untimed, prompt, limits));
  EXPECT_FALSE(clocked.control().time.has_value());
}

TEST_F(Generate, PassesOnThatNoPassCanBePlanned) {
  ScriptedVerifier engine(counting(), prompt);
  ASSERT_TRUE(session.begin(prompt, {}, 0));
  limits.max_rows = 2;
  EXPECT_THAT(generate(session, engine, limits, stream()), testing::fails(ErrorCode::too_many_pending));
  EXPECT_TRUE(session.output().empty());
  limits.max_rows = 3;
  EXPECT_EQ(session.propose(limits).size(), 4U);
  EXPECT_EQ(session.plan()->drafted, 0U) << "as many rows as are pending";
}
/// Saves its state before a pass. Each of the calls `failing` fails once.
struct FailingOnce : SpanAnswers {
  std::vector<std::string> failing;
  std::vector<std::string> calls;
  Result<void> call(const std::string& name) {
    calls.push_back(name);
    if (std::erase(failing, name) != 0) return Error{ErrorCode::verifier_failed, "once"};
    return {};
  }
  TokenSpan verify(TokenSpan batch, std::size_t drafted) {
    calls.emplace_back("verify");
    return SpanAnswers::verify(batch, drafted);
  }
  Result<void> commit(std::size_t) { return call("commit"); }
  Result<void> snapshot() { return call("snapshot"); }
  Result<void> restore(std::size_t) { return call("restore"); }
  Rollback rollback = Rollback::snapshot;
  [[nodiscard]] Capabilities capabilities() const { return {.rollback = rollback}; }
};
TEST_F(Generate, RunsNoPassWhoseStateWasNotSaved) {
  FailingOnce engine;
  engine.failing = {"snapshot"};
  EXPECT_EQ(generate(session, engine, prompt, limits).error().code, ErrorCode::verifier_failed);
  EXPECT_THAT(engine.calls, ElementsAre("snapshot"));
  EXPECT_TRUE(session.output().empty());
  const auto generation = generate(session, engine, limits);
  ASSERT_TRUE(generation);
  EXPECT_THAT(generation->tokens, ElementsAre(3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
  engine.calls.clear();
  engine.rollback = Rollback::trim;
  EXPECT_TRUE(generate(session, engine, prompt, limits));
  EXPECT_THAT(engine.calls, ::testing::Not(::testing::Contains("snapshot"))) << "of an engine that trims";
}

/// Draws token 1 from its own distribution, which has no other token.
struct DrawsOne : archetype::Strategy {
  std::vector<float> drawn_from = {0, 1, 0};
  DraftKind kind = DraftKind::sampled;
  void propose(TokenSpan, Draft& draft) {
    draft.clear(kind);
    draft.extend({.token = 1});
  }
  [[nodiscard]] std::span<const float> distribution(NodeIndex) const { return drawn_from; }
};
TEST_F(Generate, DecidesByAgreementIfOnlySomeWidthsAreAllowedOrTheDraftIsNotSampled) {
  // The distribution has token 1 only, and the picks are token 2 only, so that the output shows which of them decided.
  struct Engine {
    std::vector<Token> picks;
    std::vector<float> weights = {0, 1, 0};
    Capabilities can;
    TokenSpan verify(TokenSpan, std::size_t drafted) { return picks.assign(drafted + 1, 2), picks; }
    void commit(std::size_t) {}
    [[nodiscard]] std::span<const float> probabilities(std::size_t) const { return weights; }
    double uniform() { return 0.5; }
    [[nodiscard]] Capabilities capabilities() const { return can; }
  } engine;
  static_assert(DistributionVerifier<Engine> && DistributionStrategy<DrawsOne>);
  limits.max_tokens = 4;
  for (const DraftKind kind : {DraftKind::sampled, DraftKind::ordered})
    for (const bool widths : {false, true}) {
      engine.can.allowed_widths = {};
      if (widths) engine.can.allowed_widths = {1, 2};
      Session<DrawsOne> draws;
      draws.strategy().kind = kind;
      const auto generation = generate(draws, engine, prompt, limits);
      ASSERT_TRUE(generation);
      const bool agreement = widths || kind == DraftKind::ordered;
      EXPECT_THAT(generation->tokens, ElementsAreArray(std::vector<Token>(4, agreement ? 2 : 1)));
    }
}

/// Has no draft, and wants the likeliest token of each row.
struct WantsOne : archetype::Strategy {
  [[nodiscard]] std::size_t top_k_wanted() const { return 1; }
};
TEST_F(Generate, SavesTheStateOfAPassWithoutADraftThatTopKMayMakeVoid) {
  struct Engine : SpanAnswers {
    std::size_t saved = 0;
    void commit(std::size_t) {}
    void snapshot() { ++saved; }
    void restore(std::size_t) {}
    TokenSpan top_k(std::size_t) { throw std::runtime_error("top_k"); }
    [[nodiscard]] Capabilities capabilities() const { return {.rollback = Rollback::snapshot}; }
  } engine;
  Session<WantsOne> wants;
  EXPECT_THROW(static_cast<void>(generate(wants, engine, prompt, limits)), std::runtime_error);
  EXPECT_EQ(engine.saved, 1U);
  EXPECT_TRUE(wants.output().empty());
}

}  // namespace
}  // namespace reprise::generate_test
