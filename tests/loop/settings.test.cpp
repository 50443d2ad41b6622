// SPDX-License-Identifier: Apache-2.0
// Every limit and every capability has a visible effect, and limits may change between the rounds of one request. The
// tests in control/ and draft/ cover CostOptions, NgramOptions and PromptLookupOptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/loop/generate.hpp"
#include "support/choices.hpp"
#include "support/oracle_strategy.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

namespace reprise::settings_test {
namespace {

using testing::Choices;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::Following;
using testing::OracleStrategy;
using testing::ScriptedOptions;
using testing::ScriptedVerifier;

/// Always drafts the same tree, as far as it is likely enough:
///
///   anchor - 1 - 2 - 4
///          |   ` 5
///          ` 3
Following sapling() {
  using testing::node;
  return {{{node(1, anchor_parent, 90), node(2, 0, 80), node(3, anchor_parent, 50), node(4, 1, 40), node(5, 0, 5)}}};
}

/// The tokens that a round sent. If they are fewer than the draft's, `cut` is the reason.
struct Round {
  std::vector<Token> sent;
  Cut cut = Cut::none;
  FinishReason finish = FinishReason::none;
};

struct Request : ::testing::Test {
  Limits limits;
  Session<Following> session{sapling()};

  void begin(Capabilities capabilities) { ASSERT_TRUE(session.begin(std::vector<Token>{10, 11}, capabilities)); }
  /// A round in which the target rejects the whole draft, or picks `picks`.
  Round round(const std::vector<Token>& picks = {99}) {
    const auto before = session.statistics().cuts;
    Round result;
    session.propose(limits);
    const auto pass = session.plan();
    result.finish = session.finish_reason();
    if (!pass) return result;
    result.sent.assign(pass->batch.begin() + static_cast<std::ptrdiff_t>(pass->pending), pass->batch.end());
    EXPECT_TRUE(session.resolve(pass->ticket, TokenSpan(picks)));
    EXPECT_TRUE(session.commit(pass->ticket));
    for (std::size_t i = 0; i < cut_count; ++i)
      if (session.statistics().cuts[i] != before[i]) result.cut = static_cast<Cut>(i);
    result.finish = session.finish_reason();
    return result;
  }
  void expect_sent(const std::vector<Token>& tokens, Cut cut, const char* setting) {
    const Round now = round();
    EXPECT_THAT(now.sent, ElementsAreArray(tokens)) << setting;
    EXPECT_EQ(to_string(now.cut), to_string(cut)) << setting;
    EXPECT_EQ(now.finish, FinishReason::none) << setting;
  }
  /// Changes a setting for one round. The round before and the round after send the whole tree.
  template <class Change>
  void expect_only_with(Change&& change, const std::vector<Token>& tokens, Cut cut, const char* setting) {
    expect_sent({1, 2, 3, 4, 5}, Cut::none, setting);
    change(limits);
    expect_sent(tokens, cut, setting);
    limits = {};
    expect_sent({1, 2, 3, 4, 5}, Cut::none, setting);
  }
};

// ------------------------------------------------------------- limits, each changed in the middle of a request
TEST_F(Request, ChangesHowMuchIsDrafted) {
  begin({.max_leaves = 8});
  expect_only_with([](Limits& l) { l.draft.max_nodes = 0; }, {}, Cut::budget, "DraftBudget::max_nodes, off");
  expect_only_with([](Limits& l) { l.draft.max_nodes = 3; }, {1, 2, 3}, Cut::none, "DraftBudget::max_nodes");
  expect_only_with([](Limits& l) { l.draft.max_depth = 1; }, {1, 3}, Cut::none, "DraftBudget::max_depth");
  expect_only_with([](Limits& l) { l.draft.max_leaves = 2; }, {1, 2, 3, 4}, Cut::none, "DraftBudget::max_leaves");
  expect_only_with([](Limits& l) { l.draft.shape = DraftShape::chain; }, {1, 2, 4}, Cut::none, "DraftBudget::shape");
  expect_only_with([](Limits& l) { l.draft.min_path_probability = Probability::ratio(1, 2); }, {1, 2, 3}, Cut::none,
                   "DraftBudget::min_path_probability");
  expect_only_with([](Limits& l) { l.draft.min_path_probability = Probability::one(); }, {}, Cut::unlikely,
                   "DraftBudget::min_path_probability, nothing left");
  expect_only_with([](Limits& l) { l.max_rows = 3; }, {1, 2}, Cut::rows, "Limits::max_rows");
  expect_only_with([&](Limits& l) { l.max_context = session.context().size() + 2; }, {1}, Cut::context,
                   "Limits::max_context");
  expect_only_with([&](Limits& l) { l.max_tokens = session.output().size() + 2; }, {1, 3}, Cut::max_tokens,
                   "Limits::max_tokens");
}
TEST_F(Request, ChangesWhatEndsIt) {
  begin({.max_leaves = 8});
  const auto ends_with = [&](FinishReason reason, const std::vector<Token>& picks, const char* setting) {
    EXPECT_EQ(round(picks).finish, reason) << setting;
    ASSERT_TRUE(session.truncate(session.context().size() - picks.size()));
    limits = {};
    EXPECT_EQ(round(picks).finish, FinishReason::none) << setting;
  };
  limits.eos = {2};
  ends_with(FinishReason::eos, {1, 2}, "Limits::eos");
  limits.stop_ids = {1, 7};
  ends_with(FinishReason::stop_id, {7}, "Limits::stop_ids");
  limits.stop_sequences = {{1, 2}};
  ends_with(FinishReason::stop_sequence, {1, 2}, "Limits::stop_sequences");
  // A limit that was reached may be raised, and the request continues.
  limits.max_tokens = session.output().size() + 1;
  EXPECT_EQ(round().finish, FinishReason::max_tokens) << "Limits::max_tokens";
  limits = {};
  limits.max_context = session.context().size() + 1;
  EXPECT_EQ(round().finish, FinishReason::context_full) << "Limits::max_context";
  limits = {};
  expect_sent({1, 2, 3, 4, 5}, Cut::none, "raised again");
}
TEST_F(Request, IsFollowedByTheStrategyWhileDraftingIsOff) {
  begin({.max_leaves = 8});
  limits.draft.max_nodes = 0;
  for (Token i = 0; i < 5; ++i) EXPECT_THAT(round({50 + i}).sent, ElementsAre());
  EXPECT_THAT(session.strategy().told, ElementsAreArray(session.context()));
  EXPECT_EQ(session.statistics().count(Cut::budget), 5U);
  EXPECT_EQ(session.statistics().drafted_passes, 0U);
  limits.draft.max_nodes = 8;
  expect_sent({1, 2, 3, 4, 5}, Cut::none, "on again");
}
TEST(LimitsProperty, MayChangeInEveryRoundWithoutChangingTheOutput) {
  for (std::uint64_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    Choices choices(seed);
    ScriptedOptions options;
    options.seed = seed;
    options.vocabulary = 8;
    options.sampled = seed % 2 == 0;
    options.capabilities.max_leaves = choices.between(1, 4);
    const std::vector<Token> prompt = {1, 2, 3};
    Limits limits;
    limits.max_tokens = choices.between(1, 80);
    limits.eos = {7};
    ScriptedVerifier plain_engine(options, prompt);
    Session<archetype::Strategy> plain;
    const auto expected = generate(plain, plain_engine, prompt, limits);
    ASSERT_TRUE(expected);

    const std::vector<Token> truth(plain.context().begin(), plain.context().end());
    Session<OracleStrategy> session{
        OracleStrategy(truth, {.right_percent = 70, .length = 6, .seed = seed, .siblings = true})};
    ScriptedVerifier engine(options, prompt);
    ASSERT_TRUE(session.begin(prompt, options.capabilities));
    for (;;) {
      limits.draft.max_nodes = choices.chance(30) ? 0 : choices.below(12);
      limits.draft.max_depth = choices.chance(70) ? unlimited : choices.below(5);
      limits.draft.max_leaves = choices.chance(70) ? unlimited : choices.below(4);
      limits.draft.shape = choices.chance(50) ? DraftShape::tree : DraftShape::chain;
      limits.max_rows = choices.chance(50) ? unlimited : choices.between(1, 8);
      session.propose(limits);
      if (session.finished()) break;
      const auto pass = session.plan();
      ASSERT_TRUE(pass);
      const auto picks = engine.verify_tree(pass->batch, pass->drafted, pass->parents);
      ASSERT_TRUE(picks);
      const auto decision = session.resolve(pass->ticket, *picks);
      ASSERT_TRUE(decision);
      ASSERT_TRUE(engine.commit_rows(decision->rows));
      ASSERT_TRUE(session.commit(pass->ticket));
    }
    EXPECT_THAT(session.output(), ElementsAreArray(expected->tokens)) << seed;
    EXPECT_EQ(session.finish_reason(), expected->finish) << seed;
    EXPECT_THAT(engine.violations(), ElementsAre()) << seed;
  }
}

// ------------------------------------------------------------------------------------------- capabilities
TEST_F(Request, SendsWhatTheEngineCanTake) {
  begin({.max_leaves = 8});
  expect_sent({1, 2, 3, 4, 5}, Cut::none, "everything");
  begin({.max_rows = 3, .max_leaves = 8});
  expect_sent({1, 2}, Cut::rows, "Capabilities::max_rows");
  begin({.max_context = 5, .max_leaves = 8});
  expect_sent({1, 2}, Cut::context, "Capabilities::max_context");
  begin({.allowed_widths = {1, 4}, .max_leaves = 8});
  expect_sent({1, 2, 3}, Cut::width, "Capabilities::allowed_widths");
  begin({.max_depth = 1, .max_leaves = 8});
  expect_sent({1, 3}, Cut::depth, "Capabilities::max_depth");
  begin({.max_leaves = 1});
  expect_sent({1, 2, 4}, Cut::none, "Capabilities::max_leaves");
  begin({.max_leaves = 8, .max_rollback = 2});
  expect_sent({1, 2}, Cut::rollback, "Capabilities::max_rollback");
}
TEST(CapabilitiesSetting, PadTokenFillsThePassUpToAnAllowedWidth) {
  const auto rows_with = [](std::optional<Token> pad) {
    Session<Following, CostControl> session(sapling(),
                                            CostControl({.curve = CostCurve::linear(0), .calibrated = true}));
    EXPECT_TRUE(session.begin(std::vector<Token>{10, 11},
                              {.allowed_widths = {1, 8}, .pad_token = pad, .max_leaves = unlimited}));
    const Limits limits;
    session.propose(limits);
    const auto pass = session.plan();
    EXPECT_TRUE(pass);
    return std::vector<Token>(pass->batch.begin(), pass->batch.end());
  };
  EXPECT_THAT(rows_with({}), ElementsAre(11)) << "no width for six rows";
  EXPECT_THAT(rows_with(77), ElementsAre(11, 1, 2, 3, 4, 5, 77, 77));
}
TEST_F(Request, SaysHowTheEngineRollsBack) {
  EXPECT_FALSE(session.begin(std::vector<Token>{10, 11}, {.rollback = Rollback::none}));
  const auto restores = [&](Rollback rollback) {
    begin({.rollback = rollback});
    session.propose(limits);
    const auto pass = session.plan();
    return session.resolve(pass->ticket, std::array<Token, 1>{99})->restore;
  };
  EXPECT_FALSE(restores(Rollback::trim));
  EXPECT_FALSE(restores(Rollback::per_row));
  EXPECT_TRUE(restores(Rollback::snapshot));
}

// ------------------------------------------------------------------- settings of control that no other test shows
TEST(CostOptionsSetting, RollbackMakesDraftsThatMayFailDearer) {
  std::array<DraftNode, 1> nodes = {DraftNode{.token = 1, .path_probability = Probability::ratio(1, 2)}};
  const std::array<NodeIndex, 1> sendable = {0};
  const auto sent = [&](double rollback) {
    CostControl control({.curve = CostCurve::linear(0.01), .rollback = to_cost(rollback), .calibrated = true});
    return control.choose({nodes, DraftKind::ordered}, sendable, {}).nodes;
  };
  EXPECT_EQ(sent(0), 1U);
  EXPECT_EQ(sent(2), 0U) << "one time in two, two plain passes more";
}

}  // namespace
}  // namespace reprise::settings_test
