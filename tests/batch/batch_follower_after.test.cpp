// SPDX-License-Identifier: Apache-2.0
// Calls that pass the new tokens of a slot alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"

namespace reprise::testing {
namespace {

using Tokens = std::vector<Token>;
using Follower = BatchFollower<NgramDrafter<>>;

Follower two_slots() {
  BatchOptions options;
  options.curve = CostCurve::linear(0);
  return Follower::make(2, NgramDrafter<>(), std::move(options)).value();
}
Tokens drafted(Follower& follower, const FollowedSlot& slot) {
  const TokenSpan draft = follower.draft(std::vector{slot}).value().front();
  return {draft.begin(), draft.end()};
}

TEST(BatchFollowerAfter, NewTokensAreDraftedFromAsIfAllWerePassed) {
  auto all = two_slots();
  auto fresh = two_slots();
  Tokens ids = {1, 2, 3, 4, 5, 1, 2};
  EXPECT_EQ(drafted(all, {0, ids, 2}), drafted(fresh, {0, ids, 2}));
  for (const Tokens& more : {Tokens{3, 4, 5}, Tokens{}, Tokens{1, 9, 4, 5}, Tokens{1}}) {
    const std::size_t before = ids.size();
    ids.insert(ids.end(), more.begin(), more.end());
    EXPECT_EQ(drafted(all, {0, ids, 3}), drafted(fresh, {0, more, 3, {}, before}));
    EXPECT_TRUE(std::ranges::equal(fresh.context(0), ids));
  }
  EXPECT_EQ(all.statistics(0).accepted, fresh.statistics(0).accepted);
}

TEST(BatchFollowerAfter, AWrongNumberIsRefusedAndChangesNothing) {
  auto follower = two_slots();
  const Tokens ids = {1, 2, 3, 4, 5, 1, 2};
  static_cast<void>(drafted(follower, {0, ids, 2, 7}));
  const Tokens more = {3};
  for (const FollowedSlot& wrong :
       {FollowedSlot{0, more, 2, 7, 6}, FollowedSlot{0, more, 2, 7, 8}, FollowedSlot{0, more, 2, 8, 7},
        FollowedSlot{0, more, 2, {}, 7}, FollowedSlot{1, more, 2, 7, 7}, FollowedSlot{1, more, 2, 7, unlimited}}) {
    const auto refused = follower.draft(std::vector{wrong});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(drafted(follower, {0, more, 2, 7, 7}), (Tokens{4, 5}));
  follower.forget(0);
  EXPECT_FALSE(follower.draft(std::vector{FollowedSlot{0, more, 2, 7, 8}})) << "a forgotten request does not go on";
}

TEST(BatchFollowerAfter, TheSlotOfATextIsFound) {
  auto follower = two_slots();
  const Tokens ids = {1, 2, 3, 4};
  EXPECT_EQ(follower.known(0, ids), 0U);
  static_cast<void>(drafted(follower, {0, ids}));
  EXPECT_EQ(follower.known(0, ids), 4U);
  EXPECT_EQ(follower.known(0, Tokens{1, 2, 3, 4, 5, 6}), 4U);
  EXPECT_EQ(follower.known(0, Tokens{1, 2, 3}), 0U) << "a part of its tokens";
  EXPECT_EQ(follower.known(0, Tokens{1, 9, 3, 4, 5}), 0U);
  EXPECT_EQ(follower.known(1, ids), 0U);
  EXPECT_EQ(follower.known(2, ids), 0U) << "no such slot";
  follower.forget(0);
  EXPECT_EQ(follower.known(0, ids), 0U);
}

}  // namespace
}  // namespace reprise::testing
