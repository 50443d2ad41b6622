// SPDX-License-Identifier: Apache-2.0
#include "reprise/stats/statistics.hpp"

#include <gtest/gtest.h>

namespace reprise {
namespace {

TEST(Statistics, AreZeroBeforeTheFirstPass) {
  const Statistics none;
  EXPECT_EQ(none.mean_accepted_tokens(), 0.0);
  EXPECT_EQ(none.acceptance_rate(), 0.0);
  EXPECT_EQ(none.drafted_per_pass(), 0.0);
  for (std::size_t i = 0; i < cut_count; ++i) EXPECT_EQ(none.count(static_cast<Cut>(i)), 0U);
}
TEST(Statistics, AddUpFieldByField) {
  Statistics one;
  one.tokens = 9;
  one.passes = 3;
  one.drafted = 8;
  one.accepted = 6;
  one.padding = 2;
  one.cuts[static_cast<std::size_t>(Cut::gated)] = 1;
  Statistics two = one;
  two += one;
  EXPECT_EQ(two.tokens, 18U);
  EXPECT_EQ(two.passes, 6U);
  EXPECT_EQ(two.drafted, 16U);
  EXPECT_EQ(two.accepted, 12U);
  EXPECT_EQ(two.padding, 4U);
  EXPECT_EQ(two.count(Cut::gated), 2U);
  EXPECT_EQ(two.mean_accepted_tokens(), 3.0);
  EXPECT_EQ(two.acceptance_rate(), 0.75);
  EXPECT_NE(two, one);
}

}  // namespace
}  // namespace reprise
