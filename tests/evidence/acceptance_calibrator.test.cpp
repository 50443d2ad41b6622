// SPDX-License-Identifier: Apache-2.0
#include "reprise/evidence/acceptance_calibrator.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace reprise::acceptance_calibrator_test {
namespace {

TEST(AcceptanceCalibrator, IsHitsOverTests) {
  AcceptanceCalibrator credit;
  EXPECT_EQ(credit.factor(), 1U << 15);
  credit.learn(0, 0);
  EXPECT_EQ(credit.factor(), 1U << 15) << "nothing was tested";
  credit.learn(5, 1);  // one hit, one miss
  EXPECT_EQ(credit.factor(), 1U << 15);
  for (int i = 0; i < 200; ++i) credit.learn(4, 4);
  EXPECT_GT(credit.factor(), 62000U);
  EXPECT_LE(credit.factor(), 65536U);
  for (int i = 0; i < 200; ++i) credit.learn(4, 0);
  EXPECT_LT(credit.factor(), 5000U);
}

}  // namespace
}  // namespace reprise::acceptance_calibrator_test
