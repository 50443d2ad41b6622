// SPDX-License-Identifier: Apache-2.0
#include "support/scripted_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

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

TEST(ScriptedVerifier, DecidesFromTheLastTokensOnly) {
  ScriptedOptions options;
  options.order = 2;
  const ScriptedVerifier engine(options);
  EXPECT_EQ(engine.greedy(Tokens{1, 2, 3}), engine.greedy(Tokens{9, 9, 2, 3}));
  bool differs = false;
  for (Token t = 0; t < 20; ++t) differs = differs || engine.greedy(Tokens{t, 3}) != engine.greedy(Tokens{2, 3});
  EXPECT_TRUE(differs);
}

using Engine = ScriptedVerifier;

Tokens batch(auto... tokens) { return {tokens...}; }
/// Runs a pass, and reads its picks at these rows in this order.
void run(Engine& engine, const Tokens& batch, std::size_t drafted, auto... rows) {
  [[maybe_unused]] auto picks = engine.verify(batch, drafted);
  (static_cast<void>((*picks)[static_cast<std::size_t>(rows)]), ...);
}
/// As run(), for 8 and 4 after the anchor 3, and 5 after 4. The model picks 4, which row 2 holds.
void run_tree(Engine& engine, auto... rows) {
  auto picks = *engine.verify_tree(Tokens{3, 8, 4, 5}, 3, std::vector<NodeIndex>{-1, -1, 1});
  (static_cast<void>(picks[static_cast<std::size_t>(rows)]), ...);
}
/// Runs 3, 4, 5 and 6 with these parents.
void run_tree_of(Engine& engine, auto... parents) {
  static_cast<void>(engine.verify_tree(Tokens{3, 4, 5, 6}, 3, std::vector<NodeIndex>{parents...}));
}
void keep_rows(Engine& engine, auto... rows) {
  static_cast<void>(engine.commit_rows(std::vector{static_cast<std::size_t>(rows)...}));
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
  options.capabilities.max_leaves = 2;
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
    {"V4", [](Engine& e) { run(e, batch(3, 9), 1, 0), commit(e, 2); }},  // keeps the rejected 9
    {"V4", [](Engine& e) { run(e, batch(3, 4), 1, 0), commit(e, 3); }},
    {"than there were picks", [](Engine& e) { run(e, batch(3, 4), 1), commit(e, 1); }},
    {"max_rows", [](Engine& e) { run(e, batch(3, 4, 5, 6, 7), 2); }},
    {"max_depth", [](Engine& e) { run(e, batch(3, 4, 5, 6), 3); }},
    {"max_context", [](Engine& e) { e.prefill(batch(3, 4, 5, 6)), run(e, batch(7, 8), 1); }},
    {"max_rollback", [](Engine& e) { run(e, batch(3, 9, 9, 9), 3, 0), commit(e, 1); }},
    {"V11", [](Engine& e) { run(e, batch(3), 0), static_cast<void>(e.top_k(1)); }},
    {"allowed_widths", [](Engine& e) { run(e, batch(3, 4, 5, 6, 7), 1); }},
    {"V3", [](Engine& e) { run(e, batch(3, 4), 1), static_cast<void>(e.probabilities(1)); }},
    {"max_leaves", [](Engine& e) { run_tree_of(e, -1, -1, -1); }},
    {"max_depth", [](Engine& e) { run_tree_of(e, -1, 0, 1); }},
    {"V7", [](Engine& e) { run_tree(e, 0, 1); }},  // row 1 is off the path
    {"V8", [](Engine& e) { run_tree(e, 0, 2), keep_rows(e, 0, 1); }},
    {"V8", [](Engine& e) { run_tree(e, 0, 2), keep_rows(e, 0, 3); }}};
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
TEST(ScriptedVerifierOfTrees, GivesAllGreedyPicksOfATree) {
  ScriptedVerifier engine = tree_engine();
  static_cast<void>(engine.verify_tree(tree_batch, 5, tree_parents));
  EXPECT_THAT(engine.greedy_picks(), ElementsAre(4, 9, 5, 10, 6, 7));
  ASSERT_TRUE(engine.commit_rows(std::vector<std::size_t>{0, 2}));
  EXPECT_THAT(engine.violations(), IsEmpty());
}
TEST(ScriptedVerifierOfTrees, RefusesRowsThatDoNotAscend) {
  ScriptedVerifier engine = tree_engine();
  static_cast<void>((*engine.verify_tree(tree_batch, 5, tree_parents))[0]);
  EXPECT_FALSE(engine.commit_rows(std::vector<std::size_t>{0, 2, 2}));
  EXPECT_THAT(engine.violations(), Contains(HasSubstr("V4")));
}
TEST(ScriptedVerifierOfTrees, RefusesParentsThatAreNoTree) {
  for (const std::vector<NodeIndex>& parents :
       std::vector<std::vector<NodeIndex>>{{0}, {-2}, {-1, 1}, {}, {-1, -1, -1}}) {
    ScriptedVerifier engine = tree_engine();
    EXPECT_FALSE(engine.verify_tree(Tokens{3, 4, 5}, 2, parents));
    EXPECT_THAT(engine.violations(), Contains(HasSubstr("V6")));
  }
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

TEST(ScriptedRule, IsNotAppliedWhereTheTextIsNotKnown) {
  ScriptedOptions options = counting();
  options.rule = [](TokenSpan, Token) { return false; };
  ScriptedVerifier engine(options, prompt);
  EXPECT_EQ(engine.allowed(Tokens{1, 2}), 0U);
  engine.prefill(Tokens{3});
  EXPECT_EQ(engine.allowed(Tokens{1, 2}), 2U);
}

}  // namespace
}  // namespace reprise::testing::scripted_verifier_test
