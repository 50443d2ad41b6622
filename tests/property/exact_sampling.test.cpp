// SPDX-License-Identifier: Apache-2.0
// Proves without statistics that rejection sampling gives the target's distribution. A real session with its planner
// runs through every outcome of its random decisions, with exact probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "support/property_cases.hpp"
#include "support/sampled_world.hpp"

namespace reprise::testing::exact_sampling_test {
namespace {

/// Returns the number of random worlds of each size and control: one per 16,000 cases, 9 to 400.
std::uint64_t worlds() { return std::clamp<std::uint64_t>(property_cases(16'000), 9, 400); }

struct Size {
  std::size_t vocabulary;
  std::size_t draft;
  std::size_t tokens;
};
const std::vector<Size>& sizes() {
  static const std::vector<Size> all = {{2, 1, 4}, {2, 2, 4}, {2, 3, 4}, {3, 2, 3}, {3, 3, 2}, {4, 2, 2}, {4, 3, 2}};
  return all;
}

ExactDistribution plain(const ExactWorld& world, std::size_t tokens) {
  ExactDistribution sum;
  std::vector<Token> context = {0};
  add_plain(world.target, context, tokens, Rational(1), sum);
  return sum;
}

template <class Control>
Rational error(const ExactWorld& world, const Control& control, std::size_t tokens, ExactCoverage& coverage,
               const Capabilities& capabilities = {}) {
  return distance(decode_exactly(world, control, capabilities, tokens, coverage), plain(world, tokens));
}

/// Expects that every world of every size decodes exactly as plain decoding does.
template <class Control>
ExactCoverage prove(const Control& control, ExactDrafting drafting = {}, const Capabilities& capabilities = {}) {
  ExactCoverage coverage;
  for (const Size& size : sizes()) {
    drafting.length = size.draft;
    for (std::uint64_t seed = 0; seed < worlds(); ++seed) {
      const ExactWorld world(size.vocabulary, 6, drafting, seed);
      EXPECT_EQ(error(world, control, size.tokens, coverage, capabilities), Rational())
          << "world " << seed << " with a vocabulary of " << size.vocabulary << ", drafts of " << size.draft << " and "
          << size.tokens << " tokens";
    }
  }
  EXPECT_GT(coverage.accepted, 100U);
  EXPECT_GT(coverage.rejected, 100U);
  return coverage;
}

/// Returns the number of worlds whose output differs from plain decoding.
template <class Control>
std::size_t biased_worlds(const Control& control, ExactDrafting drafting, const Capabilities& capabilities = {}) {
  std::size_t biased = 0;
  ExactCoverage coverage;
  drafting.length = 2;
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    biased += error(ExactWorld(3, 6, drafting, seed), control, 3, coverage, capabilities) == Rational() ? 0 : 1;
  return biased;
}

CostOptions costs(double per_row) {
  CostOptions options;
  options.curve = CostCurve::linear(per_row);
  options.calibrated = true;
  return options;
}

TEST(ExactSampling, HoldsWhenEverythingIsSent) {
  const ExactCoverage coverage = prove(SendAll());
  EXPECT_GT(coverage.sent[3], 100U);
}
TEST(ExactSampling, HoldsWithThePlannerOnManyCurves) {
  for (const double per_row : {0.0, 0.1, 0.3, 0.5, 0.8}) {
    const ExactCoverage coverage = prove(CostControl(costs(per_row)));
    EXPECT_GT(coverage.sent[1] + coverage.sent[2], 100U) << per_row;
    if (per_row > 0.1) {
      EXPECT_GT(coverage.sent[0], 100U) << per_row;
    }
  }
}
TEST(ExactSampling, HoldsOnACurveThatFallsAgain) {
  CostOptions options = costs(0);
  options.curve = *CostCurve::from_points(
      std::vector<CostPoint>{{1, 0, 1, 100}, {1, 0, 2, 160}, {1, 0, 3, 140}, {1, 0, 4, 200}, {1, 0, 5, 210}});
  prove(CostControl(options));
}
TEST(ExactSampling, HoldsWhenRollingBackCosts) {
  CostOptions options = costs(0.1);
  options.rollback = to_cost(0.3);
  prove(CostControl(options));
}
TEST(ExactSampling, HoldsWhenThePlannerLearnsWhatTheProbabilitiesAreWorth) {
  CostOptions options = costs(0.2);
  options.calibrated = false;
  prove(CostControl(options));
}
TEST(ExactSampling, HoldsWhenADraftEndsAtADrawnToken) {
  prove(SendAll(), {.ends_at_zero = true});
  prove(CostControl(costs(0.3)), {.ends_at_zero = true});
}
TEST(ExactSampling, HoldsWithPadRowsUpToAWidth) {
  prove(CostControl(costs(0.1)), {}, {.allowed_widths = {1, 3, 5}, .pad_token = 1});
  prove(CostControl(costs(0.1)), {.ends_at_zero = true}, {.allowed_widths = {1, 3, 5}, .pad_token = 1});
}
TEST(ExactSampling, HoldsWithAllowedWidthsWhereTheLengthOfDraftsIsFixed) {
  prove(SendAll(), {}, {.allowed_widths = {1, 3}});
  prove(CostControl(costs(0.1)), {}, {.allowed_widths = {1, 3}});
}

TEST(ExactSampling, HoldsWhileThePlannerLearnsWhatPassesCost) {
  CostOptions options;
  options.calibrated = true;
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < 25 * worlds(); ++seed) {
    Random random(mix(seed));
    const std::size_t per_row = 10 * random.below(600);
    const auto time = [&](std::size_t rows) {
      return std::optional(std::chrono::nanoseconds(10'000 + static_cast<std::int64_t>(per_row * (rows - 1))));
    };
    // The passes before the run end with drafted ones. So the control must now run a plain pass, or try an untimed
    // length.
    CostControl control(options);
    const std::size_t passes = 1 + random.below(700);
    const std::size_t drafted = random.below(200);
    const std::size_t widest = 2 + random.below(3);
    for (std::size_t i = 0; i < passes; ++i) {
      const std::size_t rows = i + drafted >= passes ? widest : random.chance(30) ? 1 : 1 + random.below(widest);
      control.learn({}, {{1, 1, 10}, {1, rows, 10}, 1 + (rows - 1) / 2, time(rows)});
    }
    const ExactWorld world(3, 6, {.length = 2}, seed);
    ExactCoverage coverage;
    ASSERT_EQ(distance(decode_exactly(world, control, {}, 3, coverage, time), plain(world, 3)), Rational())
        << "world " << seed;
    sent += coverage.sent[1] + coverage.sent[2];
  }
  EXPECT_GT(sent, 1'000U);
}

/// Returns the number of nodes sent of a sampled draft that states these probabilities, in sixteenths.
std::size_t sent_of(CostControl control, std::initializer_list<std::uint32_t> stated) {
  std::array<DraftNode, 4> nodes;
  std::array<NodeIndex, 4> sendable{};
  Draft draft(nodes, {});
  draft.clear(DraftKind::sampled);
  Probability path = Probability::one();
  for (const std::uint32_t sixteenths : stated) {
    path = path * Probability::ratio(sixteenths, 16);
    sendable[draft.size()] = static_cast<NodeIndex>(draft.size());
    draft.extend({.token = 1, .path_probability = path});
  }
  const std::size_t sent = control.choose(draft.view(), std::span(sendable).first(draft.size()), {{1, 1, 10}, 8}).nodes;
  control.cancel();  // a pass that is forgotten would count as lost
  return sent;
}
/// Expects that the first node is sent or not whatever later nodes state. Counts it in `sent`.
void expect_no_look_ahead(const CostControl& control, Random& random, std::size_t& sent) {
  const auto stated = static_cast<std::uint32_t>(1 + random.below(16));
  const bool first = sent_of(control, {stated}) > 0;
  sent += first ? 1 : 0;
  for (const std::uint32_t next : {1U, 8U, 16U})
    ASSERT_EQ(sent_of(control, {stated, next, next}) > 0, first) << stated << ", " << next;
}
TEST(ExactSampling, WhetherANodeIsSentNeverDependsOnLaterOnes) {
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    Random random(mix(seed));
    CostOptions options;
    options.calibrated = true;
    CostControl control(options);
    const std::size_t per_row = 10 + random.below(3'000);
    const auto learn = [&](std::size_t rows) {
      control.learn({}, {{1, 1, 10},
                         {1, rows, 10},
                         1 + random.below(rows),
                         std::chrono::nanoseconds(1'000 + static_cast<std::int64_t>(per_row * (rows - 1)))});
    };
    // Lengths that were timed, some of them long ago. A trial is due in this pass, 32 passes after another.
    const std::size_t known = 2 + random.below(4);
    for (std::size_t i = 0; i < 64; ++i) learn(1 + i % known);
    const std::size_t plain = 32 * random.below(24);
    for (std::size_t i = 0; i < plain; ++i) learn(1);
    ASSERT_NO_FATAL_FAILURE(expect_no_look_ahead(control, random, sent)) << "seed " << seed;
  }
  EXPECT_GT(sent, 400U);
  EXPECT_LT(sent, 3'600U);
}

TEST(ExactSampling, WhetherTheLossBudgetAllowsANodeNeverDependsOnLaterOnes) {
  std::size_t sent = 0;
  for (std::uint64_t seed = 0; seed < 4'000; ++seed) {
    Random random(mix(seed));
    // Control reads the costs at context 0, and the budget those at context 10, which lies between the measured ones.
    std::vector<CostPoint> points;
    for (const std::size_t context : {0U, 20U})
      for (std::size_t rows = 1; rows < 8; ++rows)
        points.push_back(
            {1, context, rows, static_cast<double>(rows == 1 ? 100 : 80 + random.below(context * 5 + 30))});
    LossBudget budget(static_cast<Cost>(random.below(cost_one / 2)));
    CostControl control({.curve = CostCurve::from_points(points).value(), .calibrated = true, .loss_budget = &budget});
    ASSERT_NO_FATAL_FAILURE(expect_no_look_ahead(control, random, sent)) << "seed " << seed;
  }
  EXPECT_GT(sent, 400U);
  EXPECT_LT(sent, 3'600U);
}

// ---------------------------------------------------------------------------------------- violations are found
/// A planner that looks at the tokens: it does not send token 0.
struct PeekAtTokens : SendAll {
  static DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable, const PassLimits&) noexcept {
    std::size_t nodes = 0;
    while (nodes < sendable.size() && draft[nodes].token != 0) ++nodes;
    return {nodes, 0, Cut::unlikely};
  }
};
/// A planner that looks ahead: the probability of the second node depends on the token of the first.
struct PeekAhead : SendAll {
  static DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable, const PassLimits&) noexcept {
    if (sendable.size() < 2 || conditional_probability(draft, 1).raw() >= Probability::scale / 2)
      return {sendable.size(), 0, Cut::none};
    return {0, 0, Cut::unlikely};
  }
};

TEST(ExactSampling, FindsAPlannerThatLooksAtTheDrawnTokens) { EXPECT_GE(biased_worlds(PeekAtTokens(), {}), 6U); }
TEST(ExactSampling, FindsAPlannerThatLooksAhead) { EXPECT_GE(biased_worlds(PeekAhead(), {}), 3U); }
TEST(ExactSampling, FindsADrafterThatStatesWhatItHasDrawn) {
  EXPECT_GE(biased_worlds(CostControl(costs(0.3)), {.states_own_token = true}), 6U);
  EXPECT_EQ(biased_worlds(SendAll(), {.states_own_token = true}), 0U) << "nothing is cut";
}
TEST(ExactSampling, FindsADrafterThatStatesAnotherDistribution) {
  EXPECT_GE(biased_worlds(SendAll(), {.states_other_table = true}), 6U);
}
TEST(ExactSampling, FindsDraftsThatEndAtADrawnTokenWhereOnlySomeWidthsAreAllowed) {
  // Draft 0 is too short for any width, so the decision to send it reveals the drawn token.
  EXPECT_GE(biased_worlds(SendAll(), {.ends_at_zero = true}, {.allowed_widths = {1, 3}}), 3U);
  EXPECT_GE(biased_worlds(CostControl(costs(0.05)), {.ends_at_zero = true}, {.allowed_widths = {1, 3}}), 3U);
}
TEST(ExactSampling, ByAgreementHoldsWhateverIsCut) {
  EXPECT_EQ(biased_worlds(SendAll(), {.ends_at_zero = true, .by_agreement = true}, {.allowed_widths = {1, 3}}), 0U);
  EXPECT_EQ(biased_worlds(PeekAtTokens(), {.by_agreement = true}), 0U);
  EXPECT_EQ(biased_worlds(PeekAhead(), {.by_agreement = true}), 0U);
  EXPECT_EQ(biased_worlds(SendAll(), {.by_agreement = true, .states_other_table = true}), 0U);
}

}  // namespace
}  // namespace reprise::testing::exact_sampling_test
