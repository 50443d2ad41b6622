// SPDX-License-Identifier: Apache-2.0
// Session::rebase(): a context that was compacted, or lost a block in the middle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/speculator.hpp"
#include "support/choices.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

namespace reprise::session_rebase_test {
namespace {

using testing::Choices;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::ScriptedOptions;
using testing::ScriptedVerifier;

/// Records the sizes that it begins with, and drafts two tokens.
struct Beginning : testing::Following {
  std::shared_ptr<std::vector<std::string>> log = std::make_shared<std::vector<std::string>>();

  Beginning() { nodes = {{.token = 1}, {.token = 2, .parent = 0}}; }
  void begin(TokenSpan context) {
    log->push_back("begin " + std::to_string(context.size()));
    Following::begin(context);
  }
};
struct Rebasable : Beginning {
  bool throws = false;
  void rebase(TokenSpan before, TokenSpan context) {
    if (throws) throw std::runtime_error("rebase");
    EXPECT_THAT(before, ElementsAreArray(told)) << "the context as it was";
    log->push_back("rebase " + std::to_string(context.size()));
    Following::begin(context);
  }
};
static_assert(RebasableStrategy<Rebasable> && !RebasableStrategy<Beginning>);

/// Sends every node and counts the sequences.
struct Counting : SendAll {
  int begins = 0;
  void begin() { ++begins; }
};

template <class T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result.error().code;
}

template <class Strategy>
struct RebaseOf : ::testing::Test {
  Limits limits;
  const std::vector<Token> prompt = {10, 20, 30, 40};
  const std::vector<Token> compacted = {10, 40, 50};
  Session<Strategy, Counting> session;

  void round(const std::vector<Token>& picks) {
    session.propose(limits);
    const auto pass = session.plan();
    ASSERT_TRUE(pass);
    ASSERT_TRUE(session.resolve(pass->ticket, TokenSpan(picks)));
    ASSERT_TRUE(session.commit(pass->ticket));
  }
};
using Rebase = RebaseOf<Rebasable>;
using RebaseByBeginning = RebaseOf<Beginning>;

TEST_F(Rebase, TellsAStrategyThatCanWhatTheContextIsNow) {
  ASSERT_TRUE(session.begin(prompt));
  round({1, 9});
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_THAT(*session.strategy().log, ElementsAre("begin 4", "rebase 3"));
  round({1, 2, 7});
  EXPECT_THAT(session.strategy().told, ElementsAre(10, 40, 50, 1, 2, 7));
  ASSERT_TRUE(session.truncate(2));
  EXPECT_THAT(session.strategy().told, ElementsAre(10, 40));
}
TEST_F(RebaseByBeginning, BeginsAStrategyAnewThatCannot) {
  ASSERT_TRUE(session.begin(prompt));
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_THAT(*session.strategy().log, ElementsAre("begin 4", "begin 3"));
  EXPECT_THAT(session.strategy().told, ElementsAreArray(compacted));
}
TEST_F(Rebase, KeepsCapabilitiesControlAndStatistics) {
  ASSERT_TRUE(session.begin(prompt, {.max_rows = 2, .max_context = 6}));
  round({1, 9});
  const Statistics counted = session.statistics();
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_EQ(session.statistics(), counted);
  EXPECT_EQ(session.control().begins, 1);
  EXPECT_EQ(session.capabilities().max_rows, 2U);
  round({1, 9});
  EXPECT_EQ(session.statistics().passes, 2U);
  EXPECT_EQ(session.statistics().tokens, 4U);
  EXPECT_EQ(session.statistics().drafted, 2U);
  ASSERT_TRUE(session.rebase(prompt));
  ASSERT_TRUE(session.truncate(2));
  EXPECT_EQ(session.statistics().tokens, 4U) << "tokens of outputs before the rebase are not cut";
}
TEST_F(Rebase, BeginsANewOutputAlsoAfterTheEnd) {
  limits.eos = {9};
  ASSERT_TRUE(session.begin(prompt));
  round({1, 9});
  ASSERT_TRUE(session.finished());
  static_cast<void>(session.take_settled(limits));
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_FALSE(session.finished());
  EXPECT_THAT(session.context(), ElementsAreArray(compacted));
  EXPECT_TRUE(session.output().empty());
  EXPECT_EQ(session.taken(), 0U);
  limits.max_tokens = 2;
  round({1, 5});
  EXPECT_THAT(session.take_settled(limits), ElementsAre(1, 5));
  EXPECT_EQ(session.finish_reason(), FinishReason::max_tokens);
}
TEST_F(Rebase, TakesWhatIsNotInTheCacheForPending) {
  ASSERT_TRUE(session.begin(prompt));
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_EQ(session.cached(), 2U);
  ASSERT_TRUE(session.rebase(compacted, 1));  // the common prefix with `prompt`
  EXPECT_THAT(session.pending(), ElementsAre(40, 50));
  session.propose(limits);
  EXPECT_THAT(session.plan()->batch, ElementsAre(40, 50, 1, 2));
}
TEST_F(Rebase, AnswersHowManyLeadingTokensBothContextsShare) {
  const auto shared = [&](const std::vector<Token>& context) {
    EXPECT_TRUE(session.begin(prompt));
    return session.rebase(context).value();
  };
  EXPECT_EQ(shared({10, 40, 50}), 1U);
  EXPECT_EQ(shared({11, 20, 30, 40}), 0U);
  EXPECT_EQ(shared({10, 20, 31, 40}), 2U) << "what agrees again after a difference does not count";
  EXPECT_EQ(shared({10, 20}), 2U) << "the new context is a part of the old one";
  EXPECT_EQ(shared({10, 20, 30, 40, 50, 60}), 4U) << "and the other way round";
  EXPECT_EQ(shared(prompt), 4U);
  round({1, 2, 7});
  EXPECT_EQ(session.rebase(std::vector<Token>{10, 20, 30, 40, 1, 2, 8}).value(), 6U) << "output counts too";
  EXPECT_EQ(session.rebase(session.context().first(3)).value(), 3U) << "a part of its own context";
  EXPECT_EQ(session.rebase(session.context().last(2)).value(), 0U);
  EXPECT_THAT(session.strategy().told, ElementsAre(20, 30));
}
TEST_F(Rebase, GivesAnOpenRoundUp) {
  ASSERT_TRUE(session.begin(prompt));
  session.propose(limits);
  const auto pass = session.plan();
  ASSERT_TRUE(session.rebase(compacted));
  EXPECT_EQ(code_of(session.resolve(pass->ticket, std::array<Token, 1>{5})), ErrorCode::bad_ticket);
  EXPECT_EQ(code_of(session.plan()), ErrorCode::not_proposed);
}
TEST_F(Rebase, RefusesWhatBeginRefusesAndChangesNothing) {
  EXPECT_EQ(code_of(session.rebase(compacted)), ErrorCode::not_begun);
  ASSERT_TRUE(session.begin(prompt, {.max_rows = 2, .max_context = 6}));
  session.propose(limits);
  const auto pass = session.plan();
  EXPECT_EQ(code_of(session.rebase({})), ErrorCode::empty_context);
  EXPECT_EQ(code_of(session.rebase(std::vector<Token>(7))), ErrorCode::context_too_long);
  EXPECT_EQ(code_of(session.rebase(compacted, 3)), ErrorCode::cached_out_of_range);
  EXPECT_EQ(code_of(session.rebase(compacted, 0)), ErrorCode::too_many_pending);
  EXPECT_THAT(session.context(), ElementsAreArray(prompt));
  EXPECT_THAT(*session.strategy().log, ElementsAre("begin 4"));
  EXPECT_TRUE(session.resolve(pass->ticket, std::array<Token, 1>{5})) << "the round is still open";
}
TEST_F(Rebase, DoesNotAskAStrategyThatThrewUntilItBeginsAnew) {
  ASSERT_TRUE(session.begin(prompt));
  session.strategy().throws = true;
  EXPECT_THROW(static_cast<void>(session.rebase(compacted)), std::runtime_error);
  EXPECT_THAT(session.context(), ElementsAreArray(compacted));
  EXPECT_TRUE(session.propose(limits).empty());
  // After a throw the session does not let it rebase again: its state may be wrong.
  ASSERT_TRUE(session.rebase(prompt));
  EXPECT_THAT(*session.strategy().log, ElementsAre("begin 4", "begin 4"));
  EXPECT_EQ(session.propose(limits).size(), 2U);
}

// --------------------------------------------------------------------------------------- with real drafters

std::vector<Token> decode_plainly(const ScriptedOptions& options, const std::vector<Token>& context,
                                  std::size_t count) {
  ScriptedVerifier engine(options, context);
  Session<archetype::Strategy> plain;
  Limits limits;
  limits.max_tokens = count;
  const auto generated = generate(plain, engine, context, limits);
  EXPECT_TRUE(generated);
  return {generated->tokens.begin(), generated->tokens.end()};
}

/// Repeatedly decodes and then changes the context somewhere. Every output must equal plain decoding.
template <class Session>
void check_lossless(Session& session, std::uint64_t seed) {
  Choices random(seed);
  ScriptedOptions options;
  options.seed = seed;
  options.vocabulary = 6;
  options.order = 3;
  std::vector<Token> context(random.between(1, 30));
  for (Token& token : context) token = static_cast<Token>(random.below(6));
  ScriptedVerifier engine(options, context);
  ASSERT_TRUE(session.begin(context));
  for (int turn = 0; turn < 12; ++turn) {
    Limits limits;
    limits.max_tokens = random.between(1, 40);
    limits.draft.max_nodes = random.below(12);
    const auto generated = generate(session, engine, limits);
    ASSERT_TRUE(generated);
    ASSERT_THAT(generated->tokens, ElementsAreArray(decode_plainly(options, context, limits.max_tokens)));
    context.assign(session.context().begin(), session.context().end());

    const std::size_t begin = random.below(context.size());
    const std::size_t end = random.between(begin, context.size() - 1);
    std::vector<Token> changed(context.begin(), context.begin() + static_cast<std::ptrdiff_t>(begin));
    for (std::size_t i = random.below(5); i > 0; --i) changed.push_back(static_cast<Token>(random.below(6)));
    changed.insert(changed.end(), context.begin() + static_cast<std::ptrdiff_t>(end), context.end());
    // The cache is valid up to the first difference. Some of the later tokens may be pending.
    const std::size_t cached = random.between(std::min(begin, changed.size() - 1), changed.size() - 1);
    engine.truncate(std::min({begin, cached, engine.cache().size()}));
    engine.prefill(TokenSpan(changed).first(cached).subspan(std::min(engine.cache().size(), cached)));
    ASSERT_TRUE(session.rebase(changed, cached));
    context = changed;
  }
  EXPECT_THAT(engine.violations(), ElementsAre());
}

TEST(RebaseProperty, TheOutputIsThatOfPlainDecoding) {
  for (std::uint64_t seed = 0; seed < 200 && !::testing::Test::HasFailure(); ++seed) {
    Speculator speculator(CostCurve::linear(0.01));
    check_lossless(speculator, seed);
    Session<PromptLookupDrafter<>> begins_anew;
    check_lossless(begins_anew, seed);
  }
}
}  // namespace
}  // namespace reprise::session_rebase_test
