// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/walking_scripted_verifier.hpp"

namespace reprise::testing::scripted_verifier_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Tokens = std::vector<Token>;

ScriptedOptions counting() {
  ScriptedOptions options;
  options.order = 1;
  options.table = [](TokenSpan end) { return end.back() + 1; };
  return options;
}
const Tokens prompt = {1, 2, 3};

TEST(ScriptedVerifier, PicksFromItsOwnCache) {
  ScriptedVerifier engine(counting(), prompt);
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2));
  auto picks = *engine.verify(Tokens{3, 4, 9}, 2);
  EXPECT_EQ(picks[0], 4);
  EXPECT_EQ(picks[1], 5);
  ASSERT_TRUE(engine.commit(2));
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedVerifier, DecidesFromTheLastTokensOnly) {
  ScriptedOptions options;
  options.order = 2;
  const ScriptedVerifier engine(options);
  EXPECT_EQ(engine.greedy(Tokens{1, 2, 3}), engine.greedy(Tokens{9, 9, 2, 3}));
  bool differs = false;
  for (Token t = 0; t < 20; ++t) differs = differs || engine.greedy(Tokens{t, 3}) != engine.greedy(Tokens{2, 3});
  EXPECT_TRUE(differs);
}
TEST(ScriptedVerifier, ShowsARollbackThatIsTooShortInItsPicks) {
  ScriptedVerifier engine(counting(), prompt);
  static_cast<void>((*engine.verify(Tokens{3, 9}, 1))[0]);
  ASSERT_TRUE(engine.commit(2));  // keeps the rejected 9
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V4")));
}
TEST(ScriptedVerifier, ForgetsAPassThatWasNeverCommittedSamplerIncluded) {
  ScriptedOptions options;
  options.sampled = true;
  options.penalty = 300;
  ScriptedVerifier one(options, prompt);
  ScriptedVerifier two = one;
  for (int i = 0; i < 50; ++i) {
    auto lost = *two.verify(Tokens{one.cache().empty() ? 3 : 3, 7, 7}, 2);
    static_cast<void>(lost[0]);
    const Token a = (*one.verify(Tokens{3}, 0))[0];
    const Token b = (*two.verify(Tokens{3}, 0))[0];
    ASSERT_EQ(a, b);
    ASSERT_TRUE(one.commit(1) && two.commit(1));
    one.truncate(2, 1000);  // the cache goes back, the sampler continues
    two.truncate(2, 1000);
  }
}
TEST(ScriptedVerifier, AdvancesItsSamplerOncePerPick) {
  ScriptedOptions options;
  options.sampled = true;
  Tokens picks;
  ScriptedVerifier engine(options, prompt);
  for (int i = 0; i < 40; ++i) {
    picks.push_back((*engine.verify(Tokens{3}, 0))[0]);
    ASSERT_TRUE(engine.commit(1));
    engine.truncate(2, 1000);
  }
  EXPECT_GT(std::count_if(picks.begin(), picks.end(), [&](Token t) { return t != picks[0]; }), 0);
}
TEST(ScriptedVerifier, TruncatesItsSamplerWithTheSequence) {
  ScriptedOptions options;
  options.sampled = true;
  options.penalty = 500;
  ScriptedVerifier engine(options, prompt);
  const auto decode = [&](Token anchor, std::size_t count) {
    Tokens made;
    for (std::size_t i = 0; i < count; ++i) {
      made.push_back((*engine.verify(Tokens{anchor}, 0))[0]);
      anchor = made.back();
      static_cast<void>(engine.commit(1));
    }
    return made;
  };
  const Tokens first = decode(3, 20);
  engine.truncate(2 + 5);
  const Tokens again = decode(first[4], 15);
  EXPECT_TRUE(std::equal(again.begin(), again.end(), first.begin() + 5));
}

using Engine = ScriptedVerifier;

Tokens batch(auto... tokens) { return {tokens...}; }
/// Runs a pass, and reads its picks at these rows in this order.
void run(Engine& engine, const Tokens& batch, std::size_t drafted, auto... rows) {
  [[maybe_unused]] auto picks = engine.verify(batch, drafted);
  (static_cast<void>((*picks)[static_cast<std::size_t>(rows)]), ...);
}
void commit(Engine& engine, std::size_t keep) { static_cast<void>(engine.commit(keep)); }
void restore(Engine& engine, std::size_t accepted) { static_cast<void>(engine.restore(accepted)); }

struct Breach {
  const char* clause;
  void (*make)(Engine&);
};
struct ScriptedVerifierRecords : ::testing::TestWithParam<Breach> {};
TEST_P(ScriptedVerifierRecords, ABreachOfTheContract) {
  ScriptedOptions options = counting();
  options.capabilities.max_rows = 4;
  options.capabilities.max_depth = 2;
  options.capabilities.max_rollback = 2;
  options.capabilities.max_context = 8;
  options.capabilities.allowed_widths = {2, 3, 4};
  ScriptedVerifier engine(options, prompt);
  GetParam().make(engine);
  EXPECT_THAT(engine.violations(), Contains(HasSubstr(GetParam().clause)));
}
const std::vector<Breach> breaches = {
    {"read in order", [](Engine& e) { run(e, batch(3, 4), 1, 1); }},
    {"each once", [](Engine& e) { run(e, batch(3, 4), 1, 0, 0); }},
    {"after the first that disagrees", [](Engine& e) { run(e, batch(3, 9), 1, 0, 1); }},
    {"past the end", [](Engine& e) { run(e, batch(3, 4), 1, 0, 1, 2); }},
    {"after the token that ended", [](Engine& e) { run(e, batch(3, 4), 1, 0, 1), commit(e, 1); }},
    {"a pass that is over",
     [](Engine& e) {
       auto picks = *e.verify(Tokens{3, 4}, 1);
       run(e, batch(3, 4), 1);
       static_cast<void>(picks[0]);
     }},
    {"does not continue", [](Engine& e) { run(e, batch(3), 0, 0), commit(e, 1), run(e, batch(77), 0); }},
    {"V1", [](Engine& e) { run(e, batch(3), 1); }},
    {"V4", [](Engine& e) { commit(e, 1); }},
    {"V4", [](Engine& e) { run(e, batch(3, 4), 1, 0), commit(e, 3); }},
    {"than there were picks", [](Engine& e) { run(e, batch(3, 4), 1), commit(e, 1); }},
    {"max_rows", [](Engine& e) { run(e, batch(3, 4, 5, 6, 7), 2); }},
    {"max_depth", [](Engine& e) { run(e, batch(3, 4, 5, 6), 3); }},
    {"max_context", [](Engine& e) { e.prefill(batch(3, 4, 5, 6)), run(e, batch(7, 8), 1); }},
    {"max_rollback", [](Engine& e) { run(e, batch(3, 9, 9, 9), 3, 0), commit(e, 1); }},
    {"allowed_widths", [](Engine& e) { run(e, batch(3, 4, 5, 6, 7), 1); }}};
INSTANTIATE_TEST_SUITE_P(Breaches, ScriptedVerifierRecords, ::testing::ValuesIn(breaches));

TEST(ScriptedVerifier, FailsHalfWayAndRecovers) {
  ScriptedOptions options = counting();
  options.faults.verify_every = 2;
  options.faults.commit_every = 1;
  ScriptedVerifier engine(options, prompt);
  static_cast<void>((*engine.verify(Tokens{3, 4}, 1))[0]);
  EXPECT_THROW(static_cast<void>(engine.commit(1)), ScriptedFault);
  EXPECT_THROW(static_cast<void>(engine.verify(Tokens{3, 4}, 1)), ScriptedFault);
  EXPECT_EQ((*engine.verify(Tokens{3, 4}, 1))[0], 4);
  EXPECT_EQ(engine.counters().faults, 2U);
  EXPECT_EQ(engine.counters().verifies, 3U);
}
TEST(ScriptedVerifier, AnswersWithErrorsWhereItIsToldTo) {
  ScriptedOptions options = counting();
  options.faults = {.verify_every = 1, .as_errors = true};
  ScriptedVerifier engine(options, prompt);
  EXPECT_EQ(engine.verify(Tokens{3}, 0).error().code, ErrorCode::verifier_failed);
}
TEST(ScriptedVerifier, AddsUpVirtualTime) {
  ScriptedOptions options = counting();
  options.latency = [](const PassShape& shape) { return 100 + 10 * shape.rows + shape.context; };
  ScriptedVerifier engine(options, prompt);
  static_cast<void>(engine.verify(Tokens{3, 4, 5}, 2));
  EXPECT_EQ(engine.counters().time, 100U + 30U + 3U);
  EXPECT_EQ(engine.counters().rows, 3U);
}
TEST(ScriptedVerifier, GivesGreedyPicksAsASpanThatEndsAtTheFirstDisagreement) {
  ScriptedVerifier engine(counting(), prompt);
  static_cast<void>(engine.verify(Tokens{3, 4, 9, 10}, 3));
  EXPECT_THAT(engine.greedy_picks(), ElementsAre(4, 5));
  ASSERT_TRUE(engine.commit(2));
  EXPECT_THAT(engine.violations(), IsEmpty());
}

// 4 and 8 follow the anchor, 5 and 9 follow 4, 6 follows 5. The model counts up.
const Tokens tree_batch = {3, 8, 4, 9, 5, 6};
const std::vector<NodeIndex> tree_parents = {-1, -1, 1, 1, 3};
ScriptedVerifier tree_engine() {
  ScriptedOptions options = counting();
  options.order = 3;
  options.capabilities.max_leaves = 3;
  return {options, prompt};
}
TEST(ScriptedVerifierOfTrees, PicksFromThePathOfEachRow) {
  ScriptedVerifier engine = tree_engine();
  auto picks = *engine.verify_tree(tree_batch, 5, tree_parents);
  EXPECT_EQ(picks[0], 4);
  EXPECT_EQ(picks[2], 5);
  EXPECT_EQ(picks[4], 6);
  EXPECT_EQ(picks[5], 7);
  ASSERT_TRUE(engine.commit_rows(std::vector<std::size_t>{0, 2, 4, 5}));
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedVerifierOfTrees, GivesAllGreedyPicksOfATree) {
  ScriptedVerifier engine = tree_engine();
  static_cast<void>(engine.verify_tree(tree_batch, 5, tree_parents));
  EXPECT_THAT(engine.greedy_picks(), ElementsAre(4, 9, 5, 10, 6, 7));
  ASSERT_TRUE(engine.commit_rows(std::vector<std::size_t>{0, 2}));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedVerifierOfTrees, DecidesAsIfThePathAloneHadBeenRun) {
  ScriptedOptions options;
  options.order = 3;
  options.capabilities.max_leaves = 9;
  ScriptedVerifier whole(options, prompt);
  ScriptedVerifier chain(options, prompt);
  static_cast<void>(whole.verify_tree(tree_batch, 5, tree_parents));
  static_cast<void>(chain.verify(Tokens{3, 4, 5, 6}, 3));
  const Tokens all(whole.greedy_picks().begin(), whole.greedy_picks().end());
  EXPECT_EQ(all[0], chain.greedy(Tokens{1, 2, 3}));
  EXPECT_EQ(all[2], chain.greedy(Tokens{2, 3, 4}));
  EXPECT_EQ(all[5], chain.greedy(Tokens{4, 5, 6}));
}
TEST(ScriptedVerifierOfTrees, RefusesParentsThatAreNoTree) {
  for (const std::vector<NodeIndex>& parents :
       std::vector<std::vector<NodeIndex>>{{0}, {-2}, {-1, 1}, {}, {-1, -1, -1}}) {
    ScriptedVerifier engine = tree_engine();
    EXPECT_FALSE(engine.verify_tree(Tokens{3, 4, 5}, 2, parents));
    EXPECT_THAT(engine.violations(), Contains(HasSubstr("V6")));
  }
}
TEST(ScriptedVerifierOfTrees, RecordsAPickOffThePath) {
  ScriptedVerifier engine = tree_engine();
  auto picks = *engine.verify_tree(tree_batch, 5, tree_parents);
  static_cast<void>(picks[0]);  // the pick is 4, which row 2 holds
  static_cast<void>(picks[1]);
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V7")));
}
TEST(ScriptedVerifierOfTrees, RecordsRowsThatAreNotThePathThatWasRead) {
  for (const std::vector<std::size_t>& rows : std::vector<std::vector<std::size_t>>{{0, 1}, {0, 3}}) {
    ScriptedVerifier engine = tree_engine();
    auto picks = *engine.verify_tree(tree_batch, 5, tree_parents);
    static_cast<void>(picks[0]);
    static_cast<void>(picks[2]);
    static_cast<void>(engine.commit_rows(rows));
    EXPECT_THAT(engine.violations(), Contains(HasSubstr("V8")));
  }
}
TEST(ScriptedVerifierOfTrees, RefusesRowsThatDoNotAscend) {
  ScriptedVerifier engine = tree_engine();
  static_cast<void>((*engine.verify_tree(tree_batch, 5, tree_parents))[0]);
  EXPECT_FALSE(engine.commit_rows(std::vector<std::size_t>{0, 2, 2}));
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V4")));
}
TEST(ScriptedVerifierOfTrees, RecordsMorePathsAndLevelsThanItCan) {
  ScriptedOptions options = counting();
  options.capabilities.max_leaves = 2;
  options.capabilities.max_depth = 2;
  ScriptedVerifier engine(options, prompt);
  static_cast<void>(engine.verify_tree(tree_batch, 5, tree_parents));
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("max_leaves")));
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("max_depth")));
}
TEST(ScriptedVerifierOfTrees, ForgetsATreeThatWasNeverCommitted) {
  ScriptedVerifier engine = tree_engine();
  static_cast<void>((*engine.verify_tree(tree_batch, 5, tree_parents))[0]);
  EXPECT_EQ((*engine.verify(Tokens{3}, 0))[0], 4);
  ASSERT_TRUE(engine.commit(1));
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2, 3));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedVerifier, SaysHowLongTheLastPassTook) {
  ScriptedOptions options = counting();
  ScriptedVerifier engine(options, prompt);
  static_cast<void>(engine.verify(Tokens{3}, 0));
  EXPECT_EQ(engine.pass_time().count(), 0);
  options.latency = [](const PassShape& shape) { return 7 * shape.rows; };
  ScriptedVerifier timed(options, prompt);
  static_cast<void>(timed.verify(Tokens{3, 4}, 1));
  static_cast<void>(timed.verify(Tokens{3}, 0));
  EXPECT_EQ(timed.pass_time().count(), 7);
}

ScriptedVerifier restoring(std::size_t max_replay = 4) {
  ScriptedOptions options = counting();
  options.capabilities.rollback = Rollback::snapshot;
  options.capabilities.max_replay = max_replay;
  return {options, prompt};
}
TEST(ScriptedCheckpoints, PutTheCacheBackAndAwaitTheAcceptedTokens) {
  ScriptedVerifier engine = restoring();
  engine.snapshot();
  auto picks = *engine.verify(Tokens{3, 4, 9}, 2);
  EXPECT_EQ(picks[0], 4);
  EXPECT_EQ(picks[1], 5);
  ASSERT_TRUE(engine.restore(2));
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2));
  EXPECT_EQ((*engine.verify(Tokens{3, 4, 5}, 0))[0], 6);
  ASSERT_TRUE(engine.commit(3));
  EXPECT_THAT(engine.violations(), IsEmpty());
  EXPECT_EQ(engine.counters().restores, 1U);
}
TEST(ScriptedCheckpoints, AreKeptWholeWhereAllIsAccepted) {
  ScriptedVerifier engine = restoring();
  engine.snapshot();
  auto picks = *engine.verify(Tokens{3, 4}, 1);
  static_cast<void>(picks[0] + picks[1]);
  ASSERT_TRUE(engine.commit(2));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedCheckpoints, LeaveASamplerWhereItIs) {
  ScriptedOptions options;
  options.sampled = true;
  options.penalty = 300;
  ScriptedVerifier plain(options, prompt);
  options.capabilities.rollback = Rollback::snapshot;
  ScriptedVerifier engine(options, prompt);
  Tokens pending = {3};
  Token anchor = 3;
  for (int i = 0; i < 12; ++i) {
    const Token right = (*plain.verify(Tokens{anchor}, 0))[0];
    ASSERT_TRUE(plain.commit(1));
    engine.snapshot();
    Tokens batch = pending;
    batch.push_back(-1);
    ASSERT_EQ((*engine.verify(batch, 1))[0], right);
    ASSERT_TRUE(engine.restore(1));
    pending.push_back(anchor = right);
  }
  EXPECT_THAT(engine.violations(), IsEmpty());
}
struct ScriptedCheckpointsRecord : ::testing::TestWithParam<Breach> {};
TEST_P(ScriptedCheckpointsRecord, ABreachOfTheContract) {
  ScriptedVerifier engine = restoring(1);
  GetParam().make(engine);
  EXPECT_THAT(engine.violations(), Contains(HasSubstr(GetParam().clause)));
}
const std::vector<Breach> checkpoint_breaches = {
    {"no snapshot() before it", [](Engine& e) { run(e, batch(3, 4), 1); }},
    {"kept whole, or restored", [](Engine& e) { e.snapshot(), run(e, batch(3, 9), 1, 0), commit(e, 1); }},
    {"committed, not restored", [](Engine& e) { e.snapshot(), run(e, batch(3, 4), 1, 0, 1), restore(e, 2); }},
    {"that a snapshot() came before", [](Engine& e) { run(e, batch(3), 0, 0), restore(e, 0); }},
    {"does not continue",
     [](Engine& e) { e.snapshot(), run(e, batch(3, 9), 1, 0), restore(e, 1), run(e, batch(4), 0); }},
    {"max_replay", [](Engine& e) {
       e.snapshot(), run(e, batch(3, 9), 1, 0), restore(e, 1);
       e.snapshot(), run(e, batch(3, 4, 5), 1);
     }}};
INSTANTIATE_TEST_SUITE_P(Breaches, ScriptedCheckpointsRecord, ::testing::ValuesIn(checkpoint_breaches));

TEST(ScriptedCandidates, BeginWithTheGreedyPickAndRankEveryTokenOnce) {
  ScriptedOptions options;
  options.vocabulary = 12;
  options.revealed = 20;
  ScriptedVerifier engine(options, prompt);
  static_cast<void>(engine.verify(Tokens{3, 7}, 1));
  const TokenSpan behind = engine.top_k(1);
  Tokens ranked(behind.begin(), behind.end());
  EXPECT_EQ(ranked[0], engine.greedy(Tokens{3, 7}));
  std::sort(ranked.begin(), ranked.end());
  EXPECT_THAT(ranked, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_EQ(engine.top_k(0)[0], engine.greedy(Tokens{2, 3}));
  EXPECT_THAT(engine.violations(), IsEmpty());
  EXPECT_THAT(engine.top_k(2), IsEmpty());
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V11")));
  options.revealed = 0;
  ScriptedVerifier silent(options, prompt);
  static_cast<void>(silent.verify(Tokens{3}, 0));
  EXPECT_THAT(silent.top_k(0), IsEmpty());
}
TEST(ScriptedRule, HoldsForGreedyAndSampledPicksAndForCandidates) {
  for (const bool sampled : {false, true}) {
    ScriptedOptions options;
    options.vocabulary = 6;
    options.sampled = sampled;
    options.rule = [](TokenSpan end, Token next) { return (end.back() + next) % 2 == 1; };
    ScriptedVerifier engine(options, prompt);
    Token anchor = 3;
    for (int i = 0; i < 30; ++i) {
      const Token next = (*engine.verify(Tokens{anchor}, 0))[0];
      for (const Token token : engine.top_k(0)) EXPECT_EQ((anchor + token) % 2, 1);
      EXPECT_EQ((anchor + next) % 2, 1);
      ASSERT_TRUE(engine.commit(1));
      EXPECT_EQ(engine.allowed(Tokens{next + 1, next + 2, next + 4, next}), 2U);
      anchor = next;
    }
  }
}
TEST(ScriptedRule, IsNotAppliedWhereTheTextIsNotKnown) {
  ScriptedOptions options = counting();
  options.rule = [](TokenSpan, Token) { return false; };
  ScriptedVerifier engine(options, prompt);
  EXPECT_EQ(engine.allowed(Tokens{1, 2}), 0U);
  engine.prefill(Tokens{3});
  EXPECT_EQ(engine.allowed(Tokens{1, 2}), 2U);
}
TEST(ScriptedDistributions, AddUpToOneAndAreReadInPlaceOfPicks) {
  ScriptedOptions options;
  options.vocabulary = 9;
  ScriptedVerifier engine(options, prompt);
  static_cast<void>(engine.verify(Tokens{3, 7, 8}, 2));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto weights = engine.probabilities(i);
    ASSERT_EQ(weights.size(), 9U);
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1, 1e-6);
    EXPECT_EQ(std::max_element(weights.begin(), weights.end()) - weights.begin(), engine.top_k(i)[0]);
  }
  ASSERT_TRUE(engine.commit(2));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedDistributions, AreHeldToTheOrderOfPicks) {
  ScriptedVerifier engine(counting(), prompt);
  static_cast<void>(engine.verify(Tokens{3, 4}, 1));
  static_cast<void>(engine.probabilities(1));
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V3")));
}
TEST(ScriptedDistributions, ComeWithRandomNumbersThatAVoidPassGivesBack) {
  ScriptedVerifier engine(counting(), prompt);
  double least = 1;
  double most = 0;
  for (int i = 0; i < 200; ++i) {
    const double number = engine.uniform();
    least = std::min(least, number);
    most = std::max(most, number);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 1);
  EXPECT_GT(most - least, 0.9);
  static_cast<void>(engine.verify(Tokens{3}, 0));
  const double first = engine.uniform();
  static_cast<void>(engine.verify(Tokens{3}, 0));
  EXPECT_EQ(engine.uniform(), first);
}
TEST(SelfWalkingScriptedVerifier, AnswersThePathThatItsPicksTake) {
  ScriptedOptions options = counting();
  options.capabilities.max_leaves = 3;
  SelfWalkingScriptedVerifier engine(options, prompt);
  const auto walked = engine.verify_and_walk(tree_batch, 5, tree_parents);
  ASSERT_TRUE(walked);
  EXPECT_THAT(walked->rows, ElementsAre(0, 2, 4, 5));
  EXPECT_THAT(walked->tokens, ElementsAre(4, 5, 6, 7));
  ASSERT_TRUE(engine.commit_rows(std::vector<std::size_t>{0, 2}));
  EXPECT_THAT(engine.cache(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(SelfWalkingScriptedVerifier, GivesBackWhatItDrewBeyondTheTokensThatAreKept) {
  ScriptedOptions options;
  options.sampled = true;
  options.penalty = 300;
  ScriptedVerifier plain(options, prompt);
  const ScriptedVerifier start = plain;
  Tokens right;
  for (int i = 0; i < 4; ++i) {
    right.push_back((*plain.verify(Tokens{i == 0 ? 3 : right.back()}, 0))[0]);
    ASSERT_TRUE(plain.commit(1));
  }
  SelfWalkingScriptedVerifier engine(start);
  const std::vector<NodeIndex> parents = {-1, 0, 1};
  EXPECT_THAT(engine.verify_and_walk(Tokens{3, right[0], right[1], right[2]}, 3, parents)->tokens,
              ElementsAre(right[0], right[1], right[2], right[3]));
  ASSERT_TRUE(engine.commit(2));
  EXPECT_EQ((*engine.verify(Tokens{right[1]}, 0))[0], right[2]);
  EXPECT_THAT(engine.violations(), IsEmpty());
}

}  // namespace
}  // namespace reprise::testing::scripted_verifier_test
