// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/detail/claim_calibrator.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "reprise_testing/random.hpp"

namespace reprise::detail::claim_calibrator_test {
namespace {

std::uint32_t fixed(double probability) { return static_cast<std::uint32_t>(probability * ClaimCalibrator::one); }
double trusted(const ClaimCalibrator& trust, double claim) {
  return static_cast<double>(trust.trusted(fixed(claim))) / ClaimCalibrator::one;
}

void expect_rising(const ClaimCalibrator& trust) {
  for (std::uint32_t claim = 64; claim <= ClaimCalibrator::one; claim += 64)
    ASSERT_LE(trust.trusted(claim - 64), trust.trusted(claim)) << claim;
  ASSERT_LE(trust.trusted(ClaimCalibrator::one), ClaimCalibrator::one);
}

/// Returns a calibrator after `tests` random claims, each true with probability `truth(claim)`.
ClaimCalibrator after(std::size_t tests, const std::function<double(double)>& truth, std::uint64_t seed = 1) {
  ClaimCalibrator trust;
  testing::Random random(testing::mix(seed));
  for (std::size_t i = 0; i < tests; ++i) {
    const auto claim = static_cast<std::uint32_t>(random.below(ClaimCalibrator::one + 1));
    const bool hit = static_cast<double>(random.below(1 << 20)) <
                     truth(static_cast<double>(claim) / ClaimCalibrator::one) * (1 << 20);
    trust.learn(claim, hit);
  }
  return trust;
}

TEST(ClaimCalibrator, BelievesHalfAtFirst) {
  const ClaimCalibrator trust;
  for (std::uint32_t claim = 0; claim <= ClaimCalibrator::one; claim += 257)
    EXPECT_NEAR(trust.trusted(claim), claim / 2, 1);
  EXPECT_EQ(trust.trusted(ClaimCalibrator::one), ClaimCalibrator::one / 2);
  EXPECT_EQ(trust.trusted(~0U), ClaimCalibrator::one / 2);
}

TEST(ClaimCalibrator, BelievesACalibratedStrategyAndGivesUpSlowly) {
  ClaimCalibrator trust = ClaimCalibrator::of_calibrated();
  for (std::uint32_t claim = 0; claim <= ClaimCalibrator::one; claim += 257)
    EXPECT_NEAR(trust.trusted(claim), claim, 1);
  for (int i = 0; i < 10; ++i) trust.learn(fixed(0.75), false);
  EXPECT_GT(trusted(trust, 0.75), 0.5) << "ten tests against sixty";
  for (int i = 0; i < 300; ++i) trust.learn(fixed(0.75), false);
  EXPECT_LT(trusted(trust, 0.75), 0.35) << "claims below are taken along, and nothing was learned of them";
  expect_rising(trust);
}

TEST(ClaimCalibrator, ComesToBelieveCalibratedClaimsButForNoise) {
  double worst_mean = 0;
  for (const std::size_t tests : {1000U, 20'000U}) {
    double sum = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const ClaimCalibrator trust = after(
          tests, [](double claim) { return claim; }, seed);
      expect_rising(trust);
      for (double claim = 0.05; claim < 1; claim += 0.1) sum += std::abs(trusted(trust, claim) - claim);
    }
    worst_mean = std::max(worst_mean, sum / 200);
  }
  EXPECT_LT(worst_mean, 0.03);
}

TEST(ClaimCalibrator, LearnsWhatClaimsAreWorth) {
  const std::array<std::function<double(double)>, 4> truths = {
      [](double claim) { return claim * claim; }, [](double claim) { return std::sqrt(claim); },
      [](double claim) { return 0.5 * claim; }, [](double claim) { return claim < 0.5 ? 0.1 : 0.8; }};
  for (std::size_t t = 0; t < truths.size(); ++t) {
    double error = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const ClaimCalibrator trust = after(20'000, truths[t], seed);
      expect_rising(trust);
      for (double claim = 0.05; claim < 1; claim += 0.1)
        error += std::abs(trusted(trust, claim) - truths[t](claim)) / 100;
    }
    EXPECT_LT(error, 0.04) << t;
  }
}

TEST(ClaimCalibrator, LearnsQuicklyThatCertaintyIsNone) {
  for (const std::size_t percent : {0U, 20U, 50U, 90U, 100U}) {
    double after_50 = 0;
    double after_1000 = 0;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      testing::Random random(testing::mix(seed));
      ClaimCalibrator trust;
      for (int i = 0; i < 1000; ++i) {
        trust.learn(ClaimCalibrator::one, random.chance(percent));
        if (i == 49) after_50 += trusted(trust, 1) / 50;
      }
      expect_rising(trust);
      after_1000 += trusted(trust, 1) / 50;
    }
    const double truth = static_cast<double>(percent) / 100;
    EXPECT_NEAR(after_50, truth, 0.08) << percent;
    EXPECT_NEAR(after_1000, truth, 0.03) << percent;
  }
}

TEST(ClaimCalibrator, ForgetsOldHabits) {
  ClaimCalibrator trust;
  for (int i = 0; i < 2000; ++i) trust.learn(ClaimCalibrator::one, true);
  for (int i = 0; i < 600; ++i) trust.learn(ClaimCalibrator::one, false);
  EXPECT_LT(trusted(trust, 1), 0.15);
}

TEST(ClaimCalibrator, KeepsTheOrderWhateverHappens) {
  testing::Random random(5);
  for (int trial = 0; trial < 50; ++trial) {
    ClaimCalibrator trust;
    for (int i = 0; i < 300; ++i) {
      const std::uint32_t claim =
          random.chance(50) ? ClaimCalibrator::one : static_cast<std::uint32_t>(random.below(ClaimCalibrator::one));
      trust.learn(claim, random.chance(random.chance(50) ? 95 : 5));
    }
    expect_rising(trust);
  }
}

TEST(ClaimCalibrator, LearnsFromEveryNodeThatWasTested) {
  const std::vector<DraftNode> nodes = {{1, anchor_parent}, {2, 0}, {3, 1}};
  const std::vector<NodeIndex> chain = {0, 1, 2};
  Outcome outcome{{nodes, DraftKind::ordered}, chain, std::span(chain).first(1), Token{9}, Cut::none, {}};
  ClaimCalibrator by_outcome;
  by_outcome.learn(outcome);
  ClaimCalibrator by_hand;
  by_hand.learn(ClaimCalibrator::one, true);
  by_hand.learn(ClaimCalibrator::one, false);
  EXPECT_EQ(by_outcome.trusted(ClaimCalibrator::one), by_hand.trusted(ClaimCalibrator::one));
}

}  // namespace
}  // namespace reprise::detail::claim_calibrator_test
