// SPDX-License-Identifier: Apache-2.0
#include "reprise/draft/detail/predicted_output_cursors.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "reprise_testing/random.hpp"

namespace reprise::detail::agreement_table_test {
namespace {

TEST(AgreementCalibrator, BeginsWithMoreForLongerAgreement) {
  const AgreementCalibrator table;
  for (std::size_t kind = 0; kind < AgreementCalibrator::kinds; ++kind) {
    for (std::size_t run = 1; run < 70; ++run) {
      for (const bool alone : {false, true})
        EXPECT_GE(table.probability(AgreementCalibrator::evidence(kind, run, alone)),
                  table.probability(AgreementCalibrator::evidence(kind, run - 1, alone)));
      EXPECT_GT(table.probability(AgreementCalibrator::evidence(kind, run, true)),
                table.probability(AgreementCalibrator::evidence(kind, run, false)));
    }
  }
}
TEST(AgreementCalibrator, ComesToTheShareThatWasPicked) {
  for (const std::size_t percent : {0U, 10U, 50U, 90U, 100U}) {
    AgreementCalibrator table;
    testing::Random random(percent);
    const auto evidence = AgreementCalibrator::evidence(1, 3, true);
    double mean = 0;
    for (int i = 0; i < 3000; ++i) {
      table.learn(evidence, random.chance(percent));
      if (i >= 1000) mean += table.probability(evidence).to_double() / 2000;
    }
    EXPECT_NEAR(mean, static_cast<double>(percent) / 100, 0.02);
    EXPECT_GT(table.probability(evidence), Probability::zero()) << "nothing is impossible";
    EXPECT_LT(table.probability(evidence), Probability::one()) << "and nothing certain";
  }
}
TEST(AgreementCalibrator, LearnsOfOneEntryOnly) {
  AgreementCalibrator table;
  const AgreementCalibrator before;
  for (int i = 0; i < 50; ++i) table.learn(AgreementCalibrator::evidence(2, 4, true), false);
  EXPECT_LT(table.probability(AgreementCalibrator::evidence(2, 5, true)), Probability::ratio(1, 10))
      << "the same class";
  for (std::size_t kind = 0; kind < AgreementCalibrator::kinds; ++kind) {
    for (std::size_t run = 0; run < 40; ++run) {
      const auto contested = AgreementCalibrator::evidence(kind, run, false);
      EXPECT_EQ(table.probability(contested), before.probability(contested));
      if (kind == 2 && (run == 4 || run == 5)) continue;
      const auto alone = AgreementCalibrator::evidence(kind, run, true);
      EXPECT_EQ(table.probability(alone), before.probability(alone));
    }
  }
}
TEST(AgreementCalibrator, ForgetsSlowly) {
  AgreementCalibrator table;
  const auto evidence = AgreementCalibrator::evidence(0, 9, true);
  for (int i = 0; i < 1000; ++i) table.learn(evidence, true);
  table.learn(evidence, false);
  EXPECT_GT(table.probability(evidence).to_double(), 0.98) << "one of 128";
  for (int i = 0; i < 300; ++i) table.learn(evidence, false);
  EXPECT_LT(table.probability(evidence).to_double(), 0.15);
}

}  // namespace
}  // namespace reprise::detail::agreement_table_test
