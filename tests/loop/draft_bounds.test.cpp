// SPDX-License-Identifier: Apache-2.0
// Every setting that bounds the length of a draft has its effect: up to 64 nodes, alone or together with others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"

namespace reprise::draft_bounds_test {
namespace {

/// Returns a text that repeats itself after `period` tokens.
std::vector<Token> copied(std::size_t size, std::size_t period = 600) {
  std::vector<Token> text(size);
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<Token>(i % period * 7919 % 30011);
  return text;
}
/// Returns the longest draft of a session that decodes a copy.
template <class S>
std::size_t longest(S session, const Limits& limits, std::optional<std::chrono::nanoseconds> row = {}) {
  const std::vector<Token> text = copied(12'000);
  std::size_t most = 0;
  EXPECT_TRUE(session.begin(TokenSpan(text).first(700)).has_value());
  while (session.context().size() + 400 < text.size()) {
    static_cast<void>(session.propose(limits));
    const auto pass = session.plan().value();
    most = std::max(most, pass.drafted);
    const TokenSpan picks = TokenSpan(text).subspan(session.context().size(), pass.drafted + 1);
    EXPECT_TRUE(session.resolve(pass.ticket, picks).has_value());
    std::optional<std::chrono::nanoseconds> time;
    if (row) time = std::chrono::microseconds(1000) + *row * static_cast<int>(pass.drafted);
    EXPECT_TRUE(session.commit(pass.ticket, time).has_value());
  }
  return most;
}
Limits limits_of(std::size_t nodes) { return {.draft = {.max_nodes = nodes}}; }
CostOptions costs(std::size_t nodes = unlimited) { return {.curve = CostCurve::linear(0.001), .max_nodes = nodes}; }
using Ngram = NgramDrafter<>;
using Costs = Session<Ngram, CostControl>;

TEST(DraftBounds, LimitsAloneRaiseAndLowerTheDraft) {
  EXPECT_EQ(longest(Speculator({}, costs()), {}), usual_draft_nodes);
  EXPECT_EQ(longest(Session<Ngram>(Ngram()), {}), usual_draft_nodes);
  for (const std::size_t nodes : {1U, 31U, 33U, 48U, 63U, 64U, 65U, 300U}) {
    EXPECT_EQ(longest(Speculator({}, costs()), limits_of(nodes)), std::min<std::size_t>(nodes, 64)) << nodes;
    EXPECT_EQ(longest(Session<Ngram>(Ngram()), limits_of(nodes)), std::min<std::size_t>(nodes, 64)) << nodes;
  }
}
TEST(DraftBounds, MaxDraftNodesOfASessionAloneRaisesAndLowersTheDraft) {
  for (const std::size_t nodes : {1U, 31U, 33U, 63U, 64U, 65U, 300U}) {
    EXPECT_EQ(longest(Costs(Ngram(), CostControl(costs()), nodes), {}), std::min<std::size_t>(nodes, 64)) << nodes;
    EXPECT_EQ(longest(Session<Ngram>(Ngram(), nodes), {}), std::min<std::size_t>(nodes, 64)) << nodes;
  }
}
TEST(DraftBounds, MaxNodesOfCostOptionsAloneRaisesAndLowersTheDraft) {
  for (const std::size_t nodes : {1U, 31U, 32U, 33U, 63U, 64U, 65U, 300U}) {
    EXPECT_EQ(longest(Speculator({}, costs(nodes)), {}), std::min<std::size_t>(nodes, 64)) << nodes;
    EXPECT_EQ(CostControl(costs(nodes)).options().max_nodes, std::min<std::size_t>(nodes, 64)) << "the clamp";
  }
}
TEST(DraftBounds, TheLowestOfSeveralHolds) {
  EXPECT_EQ(longest(Speculator({}, costs(32)), limits_of(64)), 32U);
  EXPECT_EQ(longest(Speculator({}, costs(64)), limits_of(20)), 20U);
  EXPECT_EQ(longest(Costs(Ngram(), CostControl(costs(64)), 40), limits_of(50)), 40U);
  EXPECT_EQ(longest(Costs(Ngram(), CostControl(costs(30)), 40), {}), 30U);
  EXPECT_EQ(longest(Session<Ngram>(Ngram(), 40), limits_of(300)), 40U);
}
TEST(DraftBounds, LearnedCostsReachTheBoundToo) {
  EXPECT_EQ(longest(Speculator(), limits_of(64), std::chrono::microseconds(1)), 64U);
  EXPECT_EQ(longest(Speculator(), {}, std::chrono::microseconds(1)), 32U);
}
TEST(DraftBounds, LongerDraftsOfASourceWithoutABoundAreForSessionsThatAreGivenOne) {
  const auto lookup = [] { return PromptLookupDrafter<>::make({.draft_length = 300}).value(); };
  using Lookup = Session<PromptLookupDrafter<>>;
  EXPECT_EQ(longest(Lookup(lookup(), 300), {}), 300U);
  EXPECT_EQ(longest(Lookup(lookup(), 300), limits_of(200)), 200U);
  EXPECT_EQ(longest(Lookup(lookup()), limits_of(300)), most_draft_nodes);
}
TEST(DraftBounds, AFollowerDraftsAsManyAsTheCallAsksFor) {
  const std::vector<Token> text = copied(1500);
  const auto drafted = [&](CostOptions options, std::size_t most) {
    return Follower<Speculator>(Speculator({}, std::move(options))).draft(text, most).value().size();
  };
  for (const std::size_t most : {1U, 33U, 64U, 300U})
    EXPECT_EQ(drafted(costs(), most), std::min<std::size_t>(most, 64)) << most;
  EXPECT_EQ(drafted(costs(), unlimited), usual_draft_nodes);
  EXPECT_EQ(drafted(costs(64), unlimited), 64U);
  EXPECT_EQ(drafted(costs(20), 64), 20U);
}

template <class S>
std::size_t drafted_in_batch(const S& strategy, std::size_t nodes, std::size_t most) {
  BatchOptions options{.curve = CostCurve::linear(0)};
  if (nodes != 0) options.max_nodes = nodes;
  auto follower = BatchFollower<S>::make(1, strategy, options).value();
  const std::vector<Token> text = copied(1500);
  const FollowedSlot slot{.slot = 0, .ids = text, .most = most};
  return (*follower.draft({&slot, 1}))[0].size();
}
TEST(DraftBounds, ABatchFollowerDraftsAsManyAsSlotAndOptionsAllow) {
  for (const std::size_t most : {1U, 33U, 63U, 64U, 300U})
    EXPECT_EQ(drafted_in_batch(Ngram(), 0, most), std::min<std::size_t>(most, 64)) << most;
  EXPECT_EQ(drafted_in_batch(Ngram(), 0, unlimited), 63U);
  for (const std::size_t nodes : {1U, 33U, 63U, 64U}) EXPECT_EQ(drafted_in_batch(Ngram(), nodes, unlimited), nodes);
  const auto lookup = PromptLookupDrafter<>::make({.draft_length = 300}).value();
  EXPECT_EQ(drafted_in_batch(lookup, 256, unlimited), 256U);
  EXPECT_EQ(drafted_in_batch(lookup, 0, 300), 64U);
}
TEST(DraftBounds, ABatchFollowerRefusesMoreThanTheLimits) {
  for (const std::size_t nodes : {std::size_t{65}, std::size_t{300}, unlimited - 1}) {
    const auto refused = BatchFollower<Ngram>::make(1, Ngram(), {.max_nodes = nodes});
    ASSERT_FALSE(refused.has_value()) << nodes;
    EXPECT_EQ(refused.error().code, ErrorCode::size_out_of_range);
    EXPECT_EQ(refused.error().value, nodes);
    EXPECT_EQ(refused.error().limit, 64U);
  }
  using Lookup = PromptLookupDrafter<>;
  EXPECT_EQ(BatchFollower<Lookup>::make(1, Lookup(), {.max_nodes = 257}).error().limit, 256U);
  EXPECT_TRUE(BatchFollower<Ngram>::make(1, Ngram(), {.max_nodes = 64}).has_value());
}

}  // namespace
}  // namespace reprise::draft_bounds_test
