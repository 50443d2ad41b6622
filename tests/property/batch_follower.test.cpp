// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/batch_follower_world.hpp"
#include "support/choices.hpp"
#include "support/property_cases.hpp"

namespace reprise::testing::property_batch_follower_test {
namespace {

TEST(BatchFollowerProperty, DraftsWhatSessionsAndAPlannerDraftThatAreToldWhatHasHappened) {
  const std::uint64_t cases = property_cases(10);
  const std::uint64_t first = property_seed();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    Choices choices(seed);
    ASSERT_EQ(run_batch_follower_world(choices), "") << run_again(seed);
  }
}

TEST(BatchFollowerProperty, RandomHistoriesMeetEveryEvent) {
  BatchFollowerCoverage all;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Choices choices(seed);
    static_cast<void>(run_batch_follower_world(choices, &all));
  }
  EXPECT_GT(all.drafted, 50'000U);
  EXPECT_GT(all.accepted, 20'000U);
  EXPECT_GT(all.cut, 300U);
  EXPECT_GT(all.appended, 500U);
  EXPECT_GT(all.begun, 1000U);
  EXPECT_GT(all.moved, 100U);
  EXPECT_GT(all.cancelled, 1000U);
  EXPECT_GT(all.shared, 2000U);
  EXPECT_GT(all.timed, 500U);
  EXPECT_GT(all.assigned, 500U);
  EXPECT_GT(all.truncated, 100U);
  EXPECT_GT(all.edited, 100U);
}

TEST(BatchFollower, RefusesWhatIsWrongBeforeAnythingChanges) {
  auto follower = BatchFollower<NgramDrafter<>>::make(2).value();
  const std::vector<Token> ids = {1, 2, 3};
  const std::vector<FollowedSlot> one = {{.slot = 1, .ids = ids}};
  ASSERT_TRUE(follower.draft(one));
  const auto refused = [&](const std::vector<FollowedSlot>& slots) {
    const auto drafts = follower.draft(slots);
    return drafts ? ErrorCode{} : drafts.error().code;
  };
  EXPECT_EQ(refused({{.slot = 2, .ids = ids}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({{.slot = 0, .ids = ids}, {.slot = 0, .ids = ids}}), ErrorCode::invalid_argument);
  EXPECT_EQ(refused({{.slot = 0, .ids = {}}}), ErrorCode::empty_context);
  EXPECT_TRUE(std::ranges::equal(follower.context(1), ids));
  EXPECT_TRUE(follower.context(0).empty());
  EXPECT_FALSE(follower.report_top_k(0, 0, ids)) << "no pass";
  EXPECT_TRUE(follower.report_top_k(1, 0, ids));
  EXPECT_FALSE(follower.assign(2, NgramDrafter<>()));
  follower.forget(1);
  EXPECT_TRUE(follower.context(1).empty());
  EXPECT_TRUE(follower.context(7).empty());
  EXPECT_EQ(follower.statistics(7), Statistics());
}

TEST(BatchFollower, ARequestDraftsWithTheStrategyThatWasAssignedForIt) {
  auto follower = BatchFollower<NgramDrafter<>>::make(1, NgramDrafter<>(), {.curve = CostCurve::linear(0)}).value();
  HistoryStore store = HistoryStore::make({.max_bytes = 1 << 14}).value();
  store.append(std::vector<Token>{1, 2, 3, 4, 5, 6, 7, 8}, Origin::output);
  const std::vector<Token> ids = {1, 2, 3};
  const std::vector<FollowedSlot> call = {{.slot = 0, .ids = ids}};
  EXPECT_TRUE(std::ranges::none_of(follower.draft(call).value()[0], [](Token token) { return token > 3; }));
  NgramOptions options;
  options.stores = {store};
  options.prior.all = 77;
  ASSERT_TRUE(follower.assign(0, NgramDrafter<>(options)));
  EXPECT_TRUE(follower.context(0).empty());
  EXPECT_EQ(follower.draft(call).value()[0][0], 4);
  EXPECT_EQ(follower.strategy(0).calibration().all, 77);
}

TEST(BatchFollower, KeepsToAConstantMemoryUnderManyRequests) {
  auto follower = BatchFollower<NgramDrafter<>>::make(4).value();
  std::vector<std::vector<Token>> texts(4);
  std::size_t after_some = 0;
  for (std::size_t request = 0; request < 3000; ++request) {
    std::vector<FollowedSlot> slots;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      texts[i].assign(50, static_cast<Token>(request * 4 + i));
      slots.push_back({.slot = i, .ids = texts[i]});
    }
    ASSERT_TRUE(follower.draft(slots));
    if (request == 500) after_some = follower.memory_bytes();
  }
  EXPECT_EQ(follower.memory_bytes(), after_some);
}

}  // namespace
}  // namespace reprise::testing::property_batch_follower_test
