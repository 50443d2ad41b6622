// SPDX-License-Identifier: Apache-2.0
// Calls that pass the new tokens of a slot alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
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

// The tables of a slot are largest if one of them has just grown while the table of frequent tokens has just doubled.
// Which lengths of the prompt lead there depends on all the factors of growth.
TEST(BatchFollowerMemory, IsAtMostEightyBytesATokenAfterPromptsOfAnyLength) {
  constexpr std::size_t fixed = std::size_t{48} << 10;
  Tokens ids(25'000);
  std::iota(ids.begin(), ids.end(), 0);
  double worst = 0;
  for (const std::size_t prompt : {113U, 165U, 568U, 789U, 1'244U, 1'582U, 3'909U, 3'961U, 4'013U, 8'900U}) {
    auto follower = Follower::make(1).value();
    for (std::size_t known = 0, size = prompt; size <= ids.size(); known = std::exchange(size, size + 3)) {
      const TokenSpan fresh = TokenSpan(ids).subspan(known, size - known);
      ASSERT_TRUE(follower.draft(std::vector{FollowedSlot{.ids = fresh, .most = 0, .after = known}}));
      ASSERT_LE(follower.memory_bytes(), fixed + 80 * size) << "a prompt of " << prompt << ", then " << size;
      if (size > 10'000)
        worst = std::max(worst, static_cast<double>(follower.memory_bytes() - fixed) / static_cast<double>(size));
    }
  }
  EXPECT_GT(worst, 77) << "better than documented: say so";
}

}  // namespace
}  // namespace reprise::testing
