// SPDX-License-Identifier: Apache-2.0
#include "reprise/engine/rejection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "reprise/loop/session.hpp"
#include "reprise_testing/random.hpp"
#include "support/strategies.hpp"

namespace reprise::rejection_test {
namespace {

using reprise::detail::residual_at;
using reprise::detail::UniformDecisions;
using reprise::detail::weight_at;

using ::testing::ElementsAre;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr double almost_one = 0x1.fffffffffffffp-1;

using Floats = std::vector<float>;
std::span<const float> view(const Floats& values) { return values; }

// ------------------------------------------------------------------------------------------------ weights
TEST(Weights, ThatAreNoProbabilitiesCountAsZero) {
  const Floats weights = {0.5F, nan_value, infinite, -infinite, -1.0F, 0.0F};
  EXPECT_EQ(weight_at(view(weights), 0), 0.5);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_EQ(weight_at(view(weights), i), 0.0) << i;
  EXPECT_EQ(weight_at(view(weights), static_cast<std::size_t>(Token{-1})), 0.0);
}
TEST(Weights, OfTheResidualAreTheExcessOfTheTarget) {
  const Floats p = {0.5F, 0.25F, 0.25F};
  const Floats q = {0.25F, 0.75F};
  EXPECT_EQ(residual_at(view(p), view(q), 0), 0.25);
  EXPECT_EQ(residual_at(view(p), view(q), 1), 0.0);
  EXPECT_EQ(residual_at(view(p), view(q), 2), 0.25) << "the drafter does not know this token";
  EXPECT_EQ(residual_at(view(q), view(p), 2), 0.0) << "the target does not know this token";
}
TEST(DrawIndex, FollowsTheRunningSum) {
  const Floats weights = {0, 1, 2, 0, 1, 0};
  EXPECT_EQ(draw_index(weights, 0.0), 1U);
  EXPECT_EQ(draw_index(weights, 0.2499), 1U);
  EXPECT_EQ(draw_index(weights, 0.25), 2U);
  EXPECT_EQ(draw_index(weights, 0.7499), 2U);
  EXPECT_EQ(draw_index(weights, 0.75), 4U);
  EXPECT_EQ(draw_index(weights, almost_one), 4U);
}
TEST(DrawIndex, IsNeverOneWithoutWeightWhateverTheNumber) {
  const Floats weights = {0, nan_value, 1e-30F, infinite, 3e38F, -2, 0};
  for (const double u : {-1.0, 0.0, 0.5, almost_one, 1.0, 2.0, std::numeric_limits<double>::quiet_NaN(),
                         std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    const auto index = draw_index(weights, u);
    ASSERT_TRUE(index);
    EXPECT_TRUE(*index == 2 || *index == 4) << u;
  }
}
TEST(DrawIndex, IsNoneWhereThereIsNoWeight) {
  EXPECT_FALSE(draw_index(Floats{}, 0.5));
  EXPECT_FALSE(draw_index(Floats{0, -1, nan_value, infinite}, 0.5));
}
TEST(DrawIndex, SurvivesSumsThatOverflow) {
  const std::vector<double> weights(3, std::numeric_limits<double>::max());
  EXPECT_LT(draw_index(weights, 0.5).value(), 3U);
  EXPECT_LT(draw_index(weights, 0.0).value(), 3U);
}

TEST(UniformDecisions, AcceptWithPartOfTheWhole) {
  double u = 0.5;
  UniformDecisions decisions{[&] { return u; }};
  EXPECT_TRUE(decisions.chance(0.5, 0.9));
  EXPECT_FALSE(decisions.chance(0.45, 0.9));
  EXPECT_TRUE(decisions.chance(0.46, 0.9));
  u = 0;
  EXPECT_FALSE(decisions.chance(0.0, 0.9)) << "the target never says this";
  u = almost_one;
  for (const double whole : {0.1, 1.0 / 3, 0.7, 1e-300, 5e-324}) EXPECT_TRUE(decisions.chance(whole, whole)) << whole;
}

// ------------------------------------------------------------------------------------------------ picks
/// A list of numbers in [0, 1), and how many of them have been used.
struct Numbers {
  std::vector<double> numbers;
  std::size_t used = 0;
  double operator()() { return numbers.at(used++); }
};

/// One drafted token: the target's distribution p, the drafter's q, and p again after it.
struct OneToken {
  Floats p;
  Floats q;
  Token drafted;
  Numbers random;

  Token pick(bool expect_failed = false) {
    const std::array draft = {drafted};
    RejectionPicks picks(
        draft, [&](std::size_t) { return view(p); }, [&](std::size_t) { return view(q); }, random);
    const Token token = picks[0];
    EXPECT_EQ(picks.failed(), expect_failed);
    return token;
  }
};

TEST(RejectionPicks, DrawFromTheTargetBehindTheDraftAndInPadRows) {
  const Floats p = {0.25F, 0.75F};
  const std::vector<Token> draft;
  RejectionPicks picks(
      draft, [&](std::size_t) { return view(p); }, [](std::size_t) -> std::span<const float> { std::abort(); },
      Numbers{{0.1, 0.3, 0.2}});
  EXPECT_EQ(picks[0], 0);
  EXPECT_EQ(picks[1], 1);
  EXPECT_EQ(picks[2], 0);
}
TEST(RejectionPicks, RefuseWhatIsNoToken) {
  for (const Token token : {-1, std::numeric_limits<Token>::min(), 2, std::numeric_limits<Token>::max()})
    for (const double u : {0.0, 0.4, almost_one}) {
      EXPECT_EQ((OneToken{{0.5F, 0.5F}, {0.5F, 0.5F}, token, {{u, u}}}.pick()), u < 0.5 ? 0 : 1);
    }
}
TEST(RejectionPicks, NeverGiveATokenThatTheTargetForbids) {
  testing::Random random(3);
  const auto unit = [&] { return static_cast<double>(random.next() >> 11) * 0x1p-53; };
  for (int round = 0; round < 20'000; ++round) {
    OneToken one{{}, {}, static_cast<Token>(random.below(6)), {{unit(), unit(), unit(), unit()}}};
    constexpr std::array<float, 8> odd = {0, 0, nan_value, infinite, -1, 1e-45F, 0.5F, 1};
    for (std::size_t i = 0; i < 5; ++i) one.p.push_back(odd[random.below(odd.size())]);
    for (std::size_t i = 0; i < 1 + random.below(6); ++i) one.q.push_back(odd[random.below(odd.size())]);
    bool any = false;
    for (std::size_t i = 0; i < 5; ++i) any = any || weight_at(view(one.p), i) > 0;
    const Token token = one.pick(!any);
    ASSERT_TRUE(any ? weight_at(view(one.p), static_cast<std::size_t>(token)) > 0 : token == 0);
  }
}
TEST(RejectionPicks, TakeATokenThatWasNotDrawnForAPointMass) {
  const Floats p = {0.5F, 0.25F, 0.25F};
  for (const Floats& q : {Floats{}, Floats{0.5F, 0, 0.5F}, Floats{0.5F, nan_value}})
    for (const auto& [u, token] : {std::pair(0.49, 0), std::pair(0.5, 1), std::pair(0.76, 2)}) {
      OneToken one{p, q, 1, {{u}}};
      EXPECT_EQ(one.pick(), token);
      EXPECT_EQ(one.random.used, 1U);
    }
}
TEST(RejectionPicks, KnowATokenThatTheDrafterLacks) {
  EXPECT_EQ((OneToken{{0.5F, 0, 0.5F}, {1}, 0, {{0.6, 0.0}}}.pick()), 2);
  EXPECT_EQ((OneToken{{1}, {0.5F, 0.5F}, 1, {{0.0, 0.0}}}.pick()), 0) << "the drafter has a larger vocabulary";
}
TEST(RejectionPicks, DoNotDrawARejectedTokenAgainHoweverNumbersAreRounded) {
  testing::Random random(5);
  std::size_t rejected = 0;
  for (int round = 0; round < 200'000; ++round) {
    const auto x = static_cast<Token>(random.below(4));
    Floats p;
    Floats q;
    for (std::size_t i = 0; i < 4; ++i) {
      q.push_back(static_cast<float>(1 + random.below(1000)) / 1777.0F);
      const std::array<float, 4> near = {q[i], std::nextafter(q[i], 0.0F), std::nextafter(q[i], 1.0F), 1e-9F};
      p.push_back(near[random.below(near.size())]);
    }
    OneToken one{p, q, x, {{almost_one, round % 2 == 0 ? 0.0 : almost_one, almost_one}}};
    const auto at = static_cast<std::size_t>(x);
    const bool accepts = p[at] >= q[at];
    ASSERT_EQ(one.pick() == x, accepts) << p[at] << " and " << q[at];
    rejected += accepts ? 0 : 1;
  }
  EXPECT_GT(rejected, 50'000U);
}
TEST(RejectionPicks, DrawAnotherTokenWhereRoundingLeavesNoResidual) {
  const float less = std::nextafter(0.5F, 0.0F);
  EXPECT_EQ((OneToken{{less, 0.5F}, {0.5F, 0.5F}, 0, {{almost_one, 0.0}}}.pick()), 1);
}
TEST(RejectionPicks, KeepTheOnlyTokenThatThereIs) {
  const float less = std::nextafter(1.0F, 0.0F);
  EXPECT_EQ((OneToken{{0, less}, {0, 1}, 1, {{almost_one, 0.0}}}.pick()), 1);
}
TEST(RejectionPicks, SayWhenTheTargetHasNoTokenAtAll) {
  EXPECT_EQ((OneToken{{nan_value, 0}, {1, 0}, 0, {{0.5, 0.5}}}.pick(true)), 0);
  EXPECT_EQ((OneToken{{}, {1, 0}, 0, {{0.5}}}.pick(true)), 0);
}
TEST(RejectionPicks, HaveFailedAfterOneTargetWithoutATokenWhateverFollows) {
  const Floats nothing = {0, 0};
  const Floats all = {0, 1};
  Numbers numbers{{0.5, 0.5}};
  RejectionPicks picks(
      TokenSpan(), [&](std::size_t i) { return view(i == 0 ? nothing : all); }, [&](std::size_t) { return view(all); },
      numbers);
  EXPECT_EQ(picks[0], 0);
  EXPECT_EQ(picks[1], 1);
  EXPECT_TRUE(picks.failed());
}
TEST(RejectionPicks, ReferToLvaluesAndKeepTheRest) {
  const Floats p = {1};
  const std::vector<Token> draft = {0};
  const auto target = [&](std::size_t) { return view(p); };
  Numbers mine{{0.5}};
  RejectionPicks picks(draft, target, target, mine);
  static_cast<void>(picks[0]);
  EXPECT_EQ(mine.used, 1U) << "a copy would draw the same numbers again";
  static_assert(Picks<decltype(picks)>);
  RejectionPicks keeps(
      draft, target, [&](std::size_t) { return view(p); }, Numbers{{0.5}});
  EXPECT_EQ(keeps[0], 0);
  static_assert(Picks<decltype(keeps)>);
}
TEST(RejectionPicks, AskForEachDistributionOnceAndInOrder) {
  const Floats p = {0.5F, 0.5F};
  const std::vector<Token> draft = {0, 1, 0};
  std::vector<std::size_t> asked_target;
  std::vector<std::size_t> asked_drafter;
  RejectionPicks picks(
      draft, [&](std::size_t i) { return asked_target.push_back(i), view(p); },
      [&](std::size_t i) { return asked_drafter.push_back(i), view(p); }, [] { return 0.25; });
  for (std::size_t i = 0; i < 4; ++i) static_cast<void>(picks[i]);
  EXPECT_THAT(asked_target, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(asked_drafter, ElementsAre(0, 1, 2));
}

// ------------------------------------------------------------------------------------------------ in a session
TEST(RejectionPicks, EndAtStopTokensAsOtherPicksDo) {
  const testing::Dictated drawn{{{.token = 1}, {.token = 2, .parent = 0}, {.token = 3, .parent = 1}},
                                DraftKind::sampled};
  Session session(drawn);
  const std::vector<Token> prompt = {0};
  Limits limits;
  limits.eos = {2};
  ASSERT_TRUE(session.begin(prompt));
  session.propose(limits);
  const auto pass = session.plan();
  ASSERT_EQ(pass->drafted, 2U) << "no row follows the end";
  const Floats p(4, 0.25F);
  Numbers numbers{{0, 0}};
  RejectionPicks picks(
      pass->batch.last(pass->drafted), [&](std::size_t) { return view(p); }, [&](std::size_t) { return view(p); },
      numbers);
  const auto decision = session.resolve(pass->ticket, picks);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->tokens.size(), 2U);
  EXPECT_EQ(decision->keep, 2U);
  EXPECT_EQ(numbers.used, 2U) << "nothing is drawn behind the end";
}

}  // namespace
}  // namespace reprise::rejection_test
