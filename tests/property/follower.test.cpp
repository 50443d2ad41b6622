// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>

#include "support/choices.hpp"
#include "support/committed_inputs.hpp"
#include "support/follower_world.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::property_follower_test {
namespace {

TEST(FollowerProperty, DraftsWhatASessionDraftsThatIsToldWhatHasHappened) {
  const std::uint64_t cases = property_cases(5);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_follower_world(choices), "") << run_again(seed);
  }
}

TEST(FollowerProperty, EveryHistoryThatBytesDescribeIsAgreedOn) {
  expect_no_fault_of_bytes("follower", [](Choices& choices) { return run_follower_world(choices); });
}

TEST(FollowerProperty, RandomHistoriesMeetEveryEvent) {
  FollowerCoverage all;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Choices choices(seed);
    static_cast<void>(run_follower_world(choices, &all));
  }
  EXPECT_GT(all.drafted, 5000U);
  EXPECT_GT(all.accepted, 2000U);
  EXPECT_GT(all.cut, 100U);
  EXPECT_GT(all.appended, 200U);
  EXPECT_GT(all.truncated, 50U);
  EXPECT_GT(all.edited, 50U);
  EXPECT_GT(all.continued, 1'000U);
  EXPECT_GT(all.begun, 500U);
  EXPECT_GT(all.shortened, 50U);
  EXPECT_GT(all.timed, 500U);
}

}  // namespace
}  // namespace reprise::testing::property_follower_test
